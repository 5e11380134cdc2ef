package hivekeeper;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.StatsSetupConst;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.RetryingMetaStoreClient;
import org.apache.hadoop.hive.metastore.Warehouse;
import org.apache.hadoop.hive.metastore.api.EnvironmentContext;
import org.apache.hadoop.hive.metastore.api.NoSuchObjectException;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.api.UnknownDBException;
import org.apache.thrift.TApplicationException;

/**
 * Hive's own metastore client, and what all that use it share: bulk reads in batches, spelling of locations.
 *
 * Only calls that Hive's clients 2.3 and 3.1 have in common. The client is not thread-safe.
 */
public class MetastoreConnection {
  static final int PARTITIONS_AT_ONCE = 1000;
  private static final int TABLES_AT_ONCE = 500;

  final HiveConf conf;
  IMetaStoreClient client;

  /** Like Spark's own Hive client: hive-site.xml first, then everything that the session's configuration says. */
  public MetastoreConnection(Configuration hadoop) {
    conf = new HiveConf(hadoop, HiveConf.class);
    conf.setClassLoader(Thread.currentThread().getContextClassLoader());
    for (Map.Entry<String, String> entry : hadoop) {
      conf.set((String) entry.getKey(), (String) entry.getValue());
    }
    if (conf.get("javax.jdo.option.ConnectionURL", "").startsWith("jdbc:derby:")) prepareForDerby(hadoop);
  }

  /** Spark makes the schema of an embedded Derby when it first meets it; whoever comes first, the same happens here. */
  private void prepareForDerby(Configuration hadoop) {
    // A new one needs a second try; one that another process has open stays so through ten tries of two seconds.
    conf.set("hive.hmshandler.retry.attempts", "2");
    conf.set("hive.hmshandler.retry.interval", "200ms");
    if (hadoop.get("datanucleus.schema.autoCreateAll") == null) conf.set("datanucleus.schema.autoCreateAll", "true");
    if (hadoop.get("hive.metastore.schema.verification") == null) conf.set("hive.metastore.schema.verification", "false");
  }

  public void connect() throws Exception {
    client = newClient();
  }

  IMetaStoreClient newClient() throws Exception {
    return RetryingMetaStoreClient.getProxy(conf, true);
  }

  boolean isDatabase(String name) throws Exception {
    try {
      client.getDatabase(name);
      return true;
    } catch (NoSuchObjectException absent) {
      return false;
    }
  }

  /** Those of the named tables that exist; none where the database does not. */
  List<Table> tables(String database, List<String> names) throws Exception {
    List<Table> found = new ArrayList<Table>();
    try {
      for (List<String> batch : batches(names, TABLES_AT_ONCE)) found.addAll(client.getTableObjectsByName(database, batch));
    } catch (UnknownDBException absent) {
      return Collections.emptyList();
    } catch (TApplicationException failed) {
      // Servers from Hive 3.0 on say no more than this where the database is missing: the call has lost its declared exceptions.
      if (failed.getType() != TApplicationException.INTERNAL_ERROR || isDatabase(database)) throw failed;
      return Collections.emptyList();
    }
    return found;
  }

  /** Those of the named partitions that exist, by name; a database may take names for the same that differ in case. */
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

  /** A location on a file system that this client does not know stays as it is: no location of this run can equal it. */
  String qualify(String location) {
    try {
      Path path = new Path(location);
      return path.getFileSystem(conf).makeQualified(path).toString();
    } catch (Exception unknown) {
      return location;
    }
  }

  /** Whether the files lie somewhere else than expected; a null expects nothing. */
  boolean isElsewhere(StorageDescriptor sd, String expected) {
    String location = sd.getLocation() == null ? "" : sd.getLocation();
    return expected != null && !qualify(expected).equals(qualify(location));
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
