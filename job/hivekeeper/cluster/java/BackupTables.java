package hivekeeper;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.common.StatsSetupConst;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.TableType;
import org.apache.hadoop.hive.metastore.api.InvalidOperationException;
import org.apache.hadoop.hive.metastore.api.NoSuchObjectException;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;

/**
 * External tables with the definition of another table, over files elsewhere. Touches no file.
 *
 * A table that lacks any of `parameters`, or whose files may go with it, is not ours.
 *
 * Before Hive 3 a metastore drops all indexes of a table with it, and with an index a table with all of its files, whatever is asked for: the
 * one that the index names, which may be anybody's. To add an index takes no right, and may be done just before the drop.
 */
public class BackupTables {
  // Not copied to a backup table: statistics that only the table's own writers keep right, and properties that let others delete files.
  private static final List<String> ROW_STATISTICS =
      Arrays.asList("numRows", "rawDataSize", "COLUMN_STATS_ACCURATE", "STATS_GENERATED_VIA_STATS_TASK", "numFilesErasureCoded");
  private static final List<String> RIGHTS_OVER_FILES =
      Arrays.asList("TRANSLATED_TO_EXTERNAL", "transactional", "transactional_properties", "auto.purge", "partition.retention.period");
  private static final String DDL_TIME = "transient_lastDdlTime";
  private static final String WHY_NONE =
      "the metastore is of a Hive before 3.0: with a table to which somebody adds an index it drops another one, with its files";

  private static final String WHY_NOT_DROPPED =
      "somebody has added an index to it, and with that the metastore would drop the table that the index names, with its files";

  private final MetastoreConnection connection;

  public BackupTables(MetastoreConnection connection) {
    this.connection = connection;
  }

  /** Why none may be made or dropped, "" if they may. Nobody else adds indexes by the metastore of this process. */
  public String whyNone() throws Exception {
    return connection.hasIndexes() && !connection.client.isLocalMetaStore() ? WHY_NONE : "";
  }

  private void requireAllowed() throws Exception {
    String why = whyNone();
    if (!why.isEmpty()) throw new InvalidOperationException(why);
  }

  /**
   * The table and the named partitions, all at one location, which exists: the server makes the directory of a new table or partition if it is
   * missing (and removes it again if the request fails), though somebody may be about to rename another one to that place. It lists one whose
   * file count and size are not given; nothing else. `seen` is {owner, create_time, location} of the source.
   */
  public void make(
      String database, String name, String ofDatabase, String of, String seen, String location, String parameters, String partitions)
      throws Exception {
    requireAllowed();
    Table source = connection.client.getTable(ofDatabase, of);
    Map<String, Object> wanted = Json.readMap(seen);
    // The owner of another one would own what shows the files of the one that was seen.
    connection.requireSame(source, wanted);
    Table made = source.deepCopy();
    made.setDbName(database);
    made.setTableName(name);
    made.setTableType(TableType.EXTERNAL_TABLE.toString());
    made.setCreateTime(0);
    made.setParameters(parametersLike(source, Json.readMap(parameters)));
    move(made.getSd(), location);
    connection.client.createTable(made);
    try {
      addPartitions(source, wanted, made, Json.readStrings(partitions));
    } catch (Exception failed) {
      dropQuietly(database, name, parameters);
      throw failed;
    }
  }

  private static Map<String, String> parametersLike(Table source, Map<String, Object> own) {
    Map<String, String> found = withoutStatistics(source.getParameters());
    found.keySet().removeAll(RIGHTS_OVER_FILES);
    if (MetastoreConnection.isPartitioned(source)) {
      // These count all files of the table, of which the backup shows only some.
      found.remove(StatsSetupConst.NUM_FILES);
      found.remove(StatsSetupConst.TOTAL_SIZE);
    } else {
      // Servers treat it as a request and remove it; one that gathers no statistics keeps it, without effect.
      found.put(StatsSetupConst.DO_NOT_UPDATE_STATS, StatsSetupConst.TRUE);
    }
    found.putAll((Map) own);
    found.put("EXTERNAL", "TRUE");
    found.put("external.table.purge", "false");
    found.put("discover.partitions", "false");
    return found;
  }

  /** Keeps the number and size of files: they describe the files shown, and without them a server lists the directory. */
  private static Map<String, String> withoutStatistics(Map<String, String> stored) {
    Map<String, String> found = MetastoreReader.parameters(stored);
    found.keySet().removeAll(ROW_STATISTICS);
    found.remove(DDL_TIME);
    for (Iterator<String> keys = found.keySet().iterator(); keys.hasNext();) {
      String key = (String) keys.next();
      if (key.startsWith("spark.sql.statistics.") || key.startsWith("impala_intermediate_stats_")) keys.remove();
    }
    return found;
  }

  /** Partitions are read by the table's name: what another one has under it by now is not to be told to the owner of the one that was seen. */
  private void addPartitions(Table source, Map<String, Object> seen, Table made, List<String> names) throws Exception {
    for (List<String> batch : batches(source, names)) {
      List<Partition> added = new ArrayList<Partition>();
      for (Partition partition : connection.partitions(source, batch).values()) {
        partition.setDbName(made.getDbName());
        partition.setTableName(made.getTableName());
        partition.setCreateTime(0);
        partition.setParameters(withoutStatistics(partition.getParameters()));
        move(partition.getSd(), made.getSd().getLocation());
        added.add(partition);
      }
      connection.requireSame(connection.client.getTable(source.getDbName(), source.getTableName()), seen);
      if (!added.isEmpty()) connection.client.add_partitions(added, true, false);
    }
  }

  /** Batches of partition values; none for an unpartitioned table. */
  private static List<List<String>> batches(Table table, Iterable<String> names) {
    List<String> all = new ArrayList<String>();
    if (MetastoreConnection.isPartitioned(table)) {
      for (String name : names) all.add(name);
    }
    return MetastoreConnection.batches(all, MetastoreConnection.PARTITIONS_AT_ONCE);
  }

  /** Spark reads its own tables from the SerDe's `path`, whatever the location is. */
  private static void move(StorageDescriptor sd, String place) {
    sd.setLocation(place);
    Map<String, String> properties = sd.getSerdeInfo() == null ? null : sd.getSerdeInfo().getParameters();
    if (properties == null) return;
    for (Map.Entry<String, String> entry : properties.entrySet()) {
      if ("path".equalsIgnoreCase((String) entry.getKey())) entry.setValue(place);
    }
  }

  /** Drops a half-made table, which would stay for ever because the caller treats it as missing. */
  private void dropQuietly(String database, String name, String parameters) {
    try {
      drop(database, name, parameters);
    } catch (Exception alsoFailed) {
      // The first failure is the one to report.
    }
  }

  /**
   * Points partitions, or the table, at other directories; those already pointing there are left unchanged. `places` is {partition name, or ""
   * for an unpartitioned table: location}. The server makes none of these.
   */
  public void point(String database, String name, String parameters, String places) throws Exception {
    Table table = find(database, name, parameters);
    if (table == null) return;
    Map<String, Object> wanted = Json.readMap(places);
    if (!MetastoreConnection.isPartitioned(table)) {
      pointTable(table, (String) wanted.get(""));
      return;
    }
    for (List<String> batch : batches(table, wanted.keySet())) {
      List<Partition> moved = new ArrayList<Partition>();
      for (Map.Entry<String, Partition> entry : connection.partitions(table, batch).entrySet()) {
        Partition partition = (Partition) entry.getValue();
        String place = (String) wanted.get(entry.getKey());
        if (connection.isElsewhere(partition.getSd(), place)) {
          move(partition.getSd(), place);
          moved.add(partition);
        }
      }
      if (!moved.isEmpty()) connection.client.alter_partitions(database, name, moved, MetastoreConnection.keepStatistics());
    }
  }

  private void pointTable(Table table, String place) throws Exception {
    if (!connection.isElsewhere(table.getSd(), place)) return;
    move(table.getSd(), place);
    connection.client.alter_table_with_environmentContext(
        table.getDbName(), table.getTableName(), table, MetastoreConnection.keepStatistics());
  }

  /**
   * One request per partition: the client drops several only by Hive's own expressions, which a server reads with the same version of its
   * classes. To drop and make the table again would need its definition, which may not be the one of its table any more.
   */
  public void trim(String database, String name, String parameters, String partitions) throws Exception {
    Table table = find(database, name, parameters);
    if (table == null) return;
    for (List<String> batch : batches(table, Json.readStrings(partitions))) {
      for (Partition partition : connection.partitions(table, batch).values()) {
        try {
          connection.client.dropPartition(database, name, partition.getValues(), false);
        } catch (NoSuchObjectException gone) {
          // It was dropped since it was read.
        }
      }
    }
  }

  public boolean drop(String database, String name, String parameters) throws Exception {
    if (find(database, name, parameters) == null) return false;
    requireAllowed();
    if (connection.hasIndexes() && isIndexed(database, name)) throw new InvalidOperationException(WHY_NOT_DROPPED);
    connection.client.dropTable(database, name, false, true);
    return true;
  }

  private boolean isIndexed(String database, String name) throws Exception {
    Method list;
    try {
      list = IMetaStoreClient.class.getMethod("listIndexNames", new Class[] {String.class, String.class, Short.TYPE});
    } catch (NoSuchMethodException ofHive3) {
      return false;
    }
    return !((List) list.invoke(connection.client, new Object[] {database, name, Short.valueOf((short) 1)})).isEmpty();
  }

  /** Null if the table is gone or not ours: anybody can give a table a property, and a managed one takes what it shows along. */
  private Table find(String database, String name, String parameters) throws Exception {
    Table table;
    try {
      table = connection.client.getTable(database, name);
    } catch (NoSuchObjectException gone) {
      return null;
    }
    Map<String, Object> wanted = Json.readMap(parameters);
    Map<String, String> found = MetastoreReader.parameters(table.getParameters());
    return found.entrySet().containsAll(wanted.entrySet()) && isHarmless(table, found) ? table : null;
  }

  private static boolean isHarmless(Table table, Map<String, String> parameters) {
    return TableType.EXTERNAL_TABLE.toString().equals(table.getTableType())
        && "false".equalsIgnoreCase((String) parameters.get("external.table.purge"))
        && !parameters.containsKey("TRANSLATED_TO_EXTERNAL");
  }
}
