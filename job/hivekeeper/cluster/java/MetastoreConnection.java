package hivekeeper;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.StatsSetupConst;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.RetryingMetaStoreClient;
import org.apache.hadoop.hive.metastore.Warehouse;
import org.apache.hadoop.hive.metastore.api.EnvironmentContext;
import org.apache.hadoop.hive.metastore.api.InvalidOperationException;
import org.apache.hadoop.hive.metastore.api.NoSuchObjectException;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.api.UnknownDBException;
import org.apache.thrift.TApplicationException;

/**
 * Hive's own metastore client, and what its users share: bulk reads in batches, spelling of locations.
 *
 * Uses only calls common to Hive's clients 2.3 and 3.1. The client is not thread-safe.
 */
public class MetastoreConnection {
  static final int PARTITIONS_AT_ONCE = 1000;
  private static final int TABLES_AT_ONCE = 500;
  // Hive before 3.0 has a default for it; with the indexes, their properties went (HIVE-18448).
  private static final String OF_INDEXES = "hive.index.compact.query.max.size";
  /** SQL patterns of keys. The first is `impala_intermediate_stats_chunk%` in Cloudera's metastores, as Impala's own test cluster says. */
  private static final String[] LEAVING_OUT = {
    "metastore.partitions.parameters.exclude.pattern", "metastore.partitions.parameters.include.pattern"
  };
  private static final String WITHOUT_COLUMNS = "metastore.client.skip.columns.for.partitions";

  final HiveConf conf;
  private final Locations locations;
  IMetaStoreClient client;
  private Boolean hasIndexes;
  private Boolean leavesOut;

  /**
   * Like Spark's own Hive client: hive-site.xml first, then everything in the session's configuration. But a client of Hive 4 is to ask for
   * whole partitions, as what it has left out is lost when they are written back (HIVE-27114).
   */
  public MetastoreConnection(Configuration hadoop) {
    conf = new HiveConf(hadoop, HiveConf.class);
    conf.setClassLoader(Thread.currentThread().getContextClassLoader());
    for (Map.Entry<String, String> entry : hadoop) {
      conf.set((String) entry.getKey(), (String) entry.getValue());
    }
    for (String key : LEAVING_OUT) setByBothNames(key, "");
    setByBothNames(WITHOUT_COLUMNS, "false");
    if (conf.get("javax.jdo.option.ConnectionURL", "").startsWith("jdbc:derby:")) prepareForDerby(hadoop);
    locations = new Locations(conf);
  }

  private void setByBothNames(String key, String value) {
    conf.set(key, value);
    conf.set("hive." + key, value);
  }

  /** Spark creates the schema of an embedded Derby on first use; if we come first, the same happens here. */
  private void prepareForDerby(Configuration hadoop) {
    // A new Derby needs a second try; one opened by another process would stay busy through the default ten tries of two seconds.
    conf.set("hive.hmshandler.retry.attempts", "2");
    conf.set("hive.hmshandler.retry.interval", "200ms");
    if (hadoop.get("datanucleus.schema.autoCreateAll") == null) conf.set("datanucleus.schema.autoCreateAll", "true");
    if (hadoop.get("hive.metastore.schema.verification") == null) conf.set("hive.metastore.schema.verification", "false");
  }

  public void connect() throws Exception {
    client = SteadyClient.around(newClient());
  }

  IMetaStoreClient newClient() throws Exception {
    return RetryingMetaStoreClient.getProxy(conf, true);
  }

  /**
   * By names alone: whoever owns a database may have given it more properties than can be read. First by the names that are like this one,
   * because all are many, and may be asked for each. Only what is no pattern, and names no catalog, is asked for so.
   */
  boolean isDatabase(String name) throws Exception {
    String small = name.toLowerCase(Locale.ROOT);
    return (small.matches("[a-z0-9_]+") && client.getDatabases(small).contains(small)) || client.getAllDatabases().contains(small);
  }

  /** Whether the metastore is of a Hive before 3.0, which has indexes on tables: it is asked once. */
  boolean hasIndexes() throws Exception {
    if (hasIndexes == null) hasIndexes = !client.getConfigValue(OF_INDEXES, "").isEmpty();
    return hasIndexes.booleanValue();
  }

  /** Whether the metastore may leave out properties of partitions of which it is asked for many: it is asked once. */
  private boolean leavesOut() throws Exception {
    if (leavesOut == null) {
      boolean isConfigured = false;
      for (String key : LEAVING_OUT) isConfigured |= !client.getConfigValue("hive." + key, "").isEmpty();
      leavesOut = isConfigured;
    }
    return leavesOut.booleanValue();
  }

  /** Those of these partitions that exist, to be written back: with all of their properties. */
  List<Partition> wholePartitions(String database, String table, List<String> names) throws Exception {
    List<Partition> found = client.getPartitionsByNames(database, table, names);
    if (!leavesOut()) return found;
    List<Partition> whole = new ArrayList<Partition>();
    for (Partition partition : found) {
      try {
        whole.add(client.getPartition(database, table, partition.getValues()));
      } catch (NoSuchObjectException dropped) {
        continue;
      }
    }
    return whole;
  }

  /** A name that nothing has, and that nobody can foresee, to ask whether the metastore answers at all. */
  static String nobodysName() {
    return "hivekeeper_" + UUID.randomUUID().toString().replace("-", "");
  }

  /** Throws the failure of a question about a database again if not even the names of no tables in it are told. */
  void requireAnswers(String database, Exception failed) throws Exception {
    try {
      client.getTables(database, nobodysName());
    } catch (Exception alsoFailed) {
      throw failed;
    }
  }

  /** Null if the database has none or does not exist. */
  String databaseLocation(String name) throws Exception {
    try {
      return client.getDatabase(name).getLocationUri();
    } catch (NoSuchObjectException absent) {
      return null;
    }
  }

  /** The named tables that exist; none if the database does not. */
  List<Table> tables(String database, List<String> names) throws Exception {
    List<Table> found = new ArrayList<Table>();
    try {
      for (List<String> batch : batches(names, TABLES_AT_ONCE)) found.addAll(client.getTableObjectsByName(database, batch));
    } catch (UnknownDBException absent) {
      return Collections.emptyList();
    } catch (TApplicationException failed) {
      // From Hive 3.0 on servers report only this for a missing database: the call has lost its declared exceptions.
      if (failed.getType() != TApplicationException.INTERNAL_ERROR || isDatabase(database)) throw failed;
      return Collections.emptyList();
    }
    return found;
  }

  /** The named partitions that exist, by name; a database may treat names that differ in case as equal. */
  Map<String, Partition> partitions(Table table, List<String> names) throws Exception {
    Map<String, Partition> found = new LinkedHashMap<String, Partition>();
    for (Partition partition : client.getPartitionsByNames(table.getDbName(), table.getTableName(), names)) {
      found.put(Warehouse.makePartName(table.getPartitionKeys(), partition.getValues()), partition);
    }
    found.keySet().retainAll(names);
    return found;
  }

  static boolean isPartitioned(Table table) {
    return table.getPartitionKeysSize() > 0;
  }

  /** A location on a file system unknown to this client is left unchanged: no location of this run can equal it. */
  String qualify(String location) {
    try {
      return locations.spell(location);
    } catch (Exception unknown) {
      return location;
    }
  }

  /** Whether the files are in another place than expected; null means no expectation. */
  boolean isElsewhere(StorageDescriptor sd, String expected) {
    String location = sd.getLocation() == null ? "" : sd.getLocation();
    return expected != null && !qualify(expected).equals(qualify(location));
  }

  /** Another table may have got the name by now. `seen`: {owner, create_time, location}; a location that is null may be any. */
  void requireSame(Table found, Map<String, Object> seen) throws InvalidOperationException {
    boolean isSame =
        MetastoreReader.text(found.getOwner()).equals(seen.get("owner"))
            && found.getCreateTime() == ((Number) seen.get("create_time")).intValue()
            && !isElsewhere(found.getSd(), (String) seen.get("location"));
    if (!isSame) throw new InvalidOperationException(found.getDbName() + "." + found.getTableName() + " is another table by now");
  }

  /** Without this the metastore counts files itself and marks the column statistics as stale. */
  static EnvironmentContext keepStatistics() {
    Map<String, String> properties = new HashMap<String, String>();
    properties.put(StatsSetupConst.DO_NOT_UPDATE_STATS, StatsSetupConst.TRUE);
    return new EnvironmentContext(properties);
  }

  static List<List<String>> batches(List<String> whole, int size) {
    List<List<String>> batches = new ArrayList<List<String>>();
    for (int start = 0; start < whole.size(); start += size) {
      batches.add(new ArrayList<String>(whole.subList(start, Math.min(start + size, whole.size()))));
    }
    return batches;
  }
}
