package hivekeeper;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.common.StatsSetupConst;
import org.apache.hadoop.hive.metastore.Warehouse;
import org.apache.hadoop.hive.metastore.api.AlreadyExistsException;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.InvalidOperationException;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;

/** Sets the counts of files and rows and the sizes of tables and partitions, and puts dropped partitions back. */
public class MetastoreWriter {
  private static final int TRIES = 3;
  private static final String OF_SPARK = "spark.sql.statistics.";

  private final MetastoreConnection connection;

  public MetastoreWriter(MetastoreConnection connection) {
    this.connection = connection;
  }

  /** Files, bytes and rows of a table or partition, null rows if unknown; `live` is where they were counted, null for anywhere. */
  public static class Sizes {
    public long files;
    public long bytes;
    public Long rows;
    public String live;

    void putInto(Map<String, String> parameters) {
      // Spark prefers its own numbers to Hive's if it has a size, and takes both from Hive's if not.
      boolean sparkToo = parameters.containsKey(OF_SPARK + StatsSetupConst.TOTAL_SIZE);
      parameters.put(StatsSetupConst.NUM_FILES, String.valueOf(files));
      put(parameters, StatsSetupConst.TOTAL_SIZE, bytes, sparkToo);
      if (rows != null) put(parameters, StatsSetupConst.ROW_COUNT, rows, sparkToo);
    }

    private static void put(Map<String, String> parameters, String key, long value, boolean sparkToo) {
      parameters.put(key, String.valueOf(value));
      if (sparkToo) parameters.put(OF_SPARK + key, String.valueOf(value));
    }
  }

  /** `sizes` is {"": {files, bytes, rows, live}}. */
  public void updateTable(String database, String name, String sizes) throws Exception {
    Sizes wanted = (Sizes) Json.readMapOf(Sizes.class, sizes).get("");
    List<String> names = new ArrayList<String>();
    names.add(name);
    for (Table table : connection.tables(database, names)) {
      if (connection.isElsewhere(table.getSd(), wanted.live)) return;
      wanted.putInto(table.getParameters());
      connection.client.alter_table_with_environmentContext(database, name, table, MetastoreConnection.keepStatistics());
    }
  }

  /** `sizes` is {partition name: {files, bytes, rows, live}, …}. */
  public void updatePartitions(String database, String table, String sizes) throws Exception {
    Map<String, Object> wanted = Json.readMapOf(Sizes.class, sizes);
    List<String> names = new ArrayList<String>(wanted.keySet());
    for (List<String> batch : MetastoreConnection.batches(names, MetastoreConnection.PARTITIONS_AT_ONCE)) {
      updateBatch(database, table, batch, wanted);
    }
  }

  private void updateBatch(String database, String table, List<String> names, Map<String, Object> wanted) throws Exception {
    for (int attempt = 1; ; attempt++) {
      List<Partition> changed = readChanged(database, table, names, wanted);
      if (changed.isEmpty()) return;
      try {
        connection.client.alter_partitions(database, table, changed, MetastoreConnection.keepStatistics());
        return;
      } catch (InvalidOperationException refused) {
        // One partition that was dropped since the read fails the whole batch: read again without it.
        if (attempt == TRIES) throw refused;
      }
    }
  }

  private List<Partition> readChanged(String database, String table, List<String> names, Map<String, Object> wanted) throws Exception {
    List<FieldSchema> keys = connection.client.getTable(database, table).getPartitionKeys();
    List<Partition> changed = new ArrayList<Partition>();
    for (Partition partition : connection.wholePartitions(database, table, names)) {
      Sizes sizes = (Sizes) wanted.get(Warehouse.makePartName(keys, partition.getValues()));
      if (sizes != null && !connection.isElsewhere(partition.getSd(), sizes.live)) {
        sizes.putInto(partition.getParameters());
        changed.add(partition);
      }
    }
    return changed;
  }

  /** False if the partition exists. Columns are the table's, as for any new partition. `seen` is {owner, create_time} of the table. */
  public boolean addPartition(String database, String name, String seen, String record) throws Exception {
    Map<String, Object> wanted = Json.readMap(record);
    Table table = connection.client.getTable(database, name);
    connection.requireSame(table, Json.readMap(seen));
    Partition partition = new Partition();
    partition.setDbName(table.getDbName());
    partition.setTableName(table.getTableName());
    partition.setValues((List) wanted.get("values"));
    partition.setSd(storage(table, (String) wanted.get("location"), (Map) wanted.get("storage")));
    partition.setParameters((Map) wanted.get("parameters"));
    // The drop removed the column statistics, so the flag that they are accurate must not come back.
    StatsSetupConst.clearColumnStatsState(partition.getParameters());
    try {
      connection.client.add_partition(partition);
      return true;
    } catch (AlreadyExistsException standing) {
      return false;
    }
  }

  private static StorageDescriptor storage(Table table, String location, Map<String, Object> wanted) {
    StorageDescriptor sd = table.getSd().deepCopy();
    sd.setLocation(location);
    sd.setInputFormat((String) wanted.get("input_format"));
    sd.setOutputFormat((String) wanted.get("output_format"));
    String name = table.getSd().getSerdeInfo().getName();
    sd.setSerdeInfo(new SerDeInfo(name, (String) wanted.get("serde"), (Map) wanted.get("serde_parameters")));
    return sd;
  }
}
