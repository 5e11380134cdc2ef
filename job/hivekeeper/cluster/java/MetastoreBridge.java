package hivekeeper;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.StatsSetupConst;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.LockComponentBuilder;
import org.apache.hadoop.hive.metastore.LockRequestBuilder;
import org.apache.hadoop.hive.metastore.RetryingMetaStoreClient;
import org.apache.hadoop.hive.metastore.Warehouse;
import org.apache.hadoop.hive.metastore.api.AlreadyExistsException;
import org.apache.hadoop.hive.metastore.api.DataOperationType;
import org.apache.hadoop.hive.metastore.api.EnvironmentContext;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.InvalidOperationException;
import org.apache.hadoop.hive.metastore.api.LockResponse;
import org.apache.hadoop.hive.metastore.api.LockState;
import org.apache.hadoop.hive.metastore.api.NoSuchObjectException;
import org.apache.hadoop.hive.metastore.api.Order;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * The metastore's client with a bulk interface: strings of JSON in and out, batches made here.
 *
 * Compiled at run time by Janino, so: no generics, lambdas or diamonds. Only calls that Hive's clients 2.3 and 3.1
 * share. The client is not thread-safe; the heartbeat has one of its own.
 */
public class MetastoreBridge {
  private static final int TABLES_AT_ONCE = 500;
  private static final int PARTITIONS_AT_ONCE = 1000;
  // Servers give a lock up after hive.txn.timeout without a heartbeat: 300 s unless a site changed it.
  private static final long HEARTBEAT_MS = 20000L;
  private static final long LOCK_POLL_MS = 200L;

  private final ObjectMapper mapper = new ObjectMapper();
  private HiveConf conf;
  private IMetaStoreClient client;
  private long lockId;
  private Thread heart;

  /** Like Spark's own Hive client: hive-site.xml first, then everything that the session's configuration says. */
  public void connect(Configuration hadoop) throws Exception {
    conf = new HiveConf(hadoop, HiveConf.class);
    conf.setClassLoader(Thread.currentThread().getContextClassLoader());
    for (Iterator it = hadoop.iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      conf.set((String) entry.getKey(), (String) entry.getValue());
    }
    if (conf.get("javax.jdo.option.ConnectionURL", "").startsWith("jdbc:derby:")) {
      prepareForDerby(hadoop);
    }
    client = RetryingMetaStoreClient.getProxy(conf, true);
  }

  /** Spark makes the schema of an embedded Derby when it first meets it; whoever comes first, the same happens here. */
  private void prepareForDerby(Configuration hadoop) {
    // A new one needs a second try; one that another process has open stays so through ten tries of two seconds.
    conf.set("hive.hmshandler.retry.attempts", "2");
    conf.set("hive.hmshandler.retry.interval", "200ms");
    if (hadoop.get("datanucleus.schema.autoCreateAll") == null) {
      conf.set("datanucleus.schema.autoCreateAll", "true");
    }
    if (hadoop.get("hive.metastore.schema.verification") == null) {
      conf.set("hive.metastore.schema.verification", "false");
    }
  }

  public String databases() throws Exception {
    return json(client.getAllDatabases());
  }

  /** JSON null where the database does not exist. */
  public String tableNames(String database) throws Exception {
    try {
      client.getDatabase(database);
    } catch (NoSuchObjectException e) {
      return "null";
    }
    return json(client.getAllTables(database));
  }

  public String tables(String database, String names) throws Exception {
    List found = new ArrayList();
    for (Iterator it = tablesNamed(database, list(names)).iterator(); it.hasNext();) {
      found.add(describe((Table) it.next()));
    }
    return json(found);
  }

  /** Qualified location of every table of a database that has one. */
  public String locations(String database) throws Exception {
    Map found = new LinkedHashMap();
    for (Iterator it = tablesNamed(database, client.getAllTables(database)).iterator(); it.hasNext();) {
      Table table = (Table) it.next();
      String location = table.getSd() == null ? null : table.getSd().getLocation();
      if (location != null && location.length() > 0) {
        found.put(table.getTableName(), qualify(location));
      }
    }
    return json(found);
  }

  /** Locations in the spelling of locations(): what a caller's text is compared with. */
  public String qualified(String locations) throws Exception {
    List found = new ArrayList();
    for (Iterator it = list(locations).iterator(); it.hasNext();) {
      found.add(qualify((String) it.next()));
    }
    return json(found);
  }

  /** The named partitions that exist, all where names is null. Storage that partitions share is sent once. */
  public String partitions(String database, String table, String names) throws Exception {
    List wanted = names == null ? client.listPartitionNames(database, table, (short) -1) : list(names);
    List keys = wanted.isEmpty() ? Collections.EMPTY_LIST : client.getTable(database, table).getPartitionKeys();
    Map storages = new LinkedHashMap();
    List rows = new ArrayList();
    for (int start = 0; start < wanted.size(); start += PARTITIONS_AT_ONCE) {
      List batch = part(wanted, start, PARTITIONS_AT_ONCE);
      for (Iterator it = client.getPartitionsByNames(database, table, batch).iterator(); it.hasNext();) {
        rows.add(row((Partition) it.next(), keys, storages));
      }
    }
    Map answer = new LinkedHashMap();
    answer.put("storages", new ArrayList(storages.keySet()));
    answer.put("partitions", rows);
    return json(answer);
  }

  private Object[] row(Partition partition, List keys, Map storages) throws Exception {
    Map storage = storage(partition.getSd());
    Integer index = (Integer) storages.get(storage);
    if (index == null) {
      index = Integer.valueOf(storages.size());
      storages.put(storage, index);
    }
    String name = Warehouse.makePartName(keys, partition.getValues());
    return new Object[] {name, partition.getValues(), text(partition.getSd().getLocation()), index, parameters(partition.getParameters())};
  }

  /** Sets two numbers of a table; `live` is where its files were counted, null for anywhere. */
  public void updateTable(String database, String name, long files, long bytes, String live) throws Exception {
    List found = tablesNamed(database, Collections.singletonList(name));
    if (found.isEmpty()) {
      return;
    }
    Table table = (Table) found.get(0);
    if (isElsewhere(table.getSd(), live)) {
      return;
    }
    setSizes(table.getParameters(), files, bytes);
    client.alter_table_with_environmentContext(database, name, table, keepStatistics());
  }

  /** Sets two numbers of each partition named in changes: name -> [files, bytes, live or null]. */
  public void updatePartitions(String database, String table, String changes) throws Exception {
    Map wanted = (Map) mapper.readValue(changes, Map.class);
    List names = new ArrayList(wanted.keySet());
    for (int start = 0; start < names.size(); start += PARTITIONS_AT_ONCE) {
      updateBatch(database, table, part(names, start, PARTITIONS_AT_ONCE), wanted);
    }
  }

  private void updateBatch(String database, String table, List names, Map wanted) throws Exception {
    for (int attempt = 1; ; attempt++) {
      List changed = readChanged(database, table, names, wanted);
      if (changed.isEmpty()) {
        return;
      }
      try {
        client.alter_partitions(database, table, changed, keepStatistics());
        return;
      } catch (InvalidOperationException e) {
        // One partition that was dropped since the read fails the whole batch: read again without it.
        if (attempt == 3) {
          throw e;
        }
      }
    }
  }

  private List readChanged(String database, String table, List names, Map wanted) throws Exception {
    List keys = client.getTable(database, table).getPartitionKeys();
    List changed = new ArrayList();
    for (Iterator it = client.getPartitionsByNames(database, table, names).iterator(); it.hasNext();) {
      Partition partition = (Partition) it.next();
      List change = (List) wanted.get(Warehouse.makePartName(keys, partition.getValues()));
      if (change != null && !isElsewhere(partition.getSd(), (String) change.get(2))) {
        setSizes(partition.getParameters(), ((Number) change.get(0)).longValue(), ((Number) change.get(1)).longValue());
        changed.add(partition);
      }
    }
    return changed;
  }

  private static void setSizes(Map parameters, long files, long bytes) {
    parameters.put(StatsSetupConst.NUM_FILES, String.valueOf(files));
    parameters.put(StatsSetupConst.TOTAL_SIZE, String.valueOf(bytes));
    if (parameters.containsKey("spark.sql.statistics.totalSize")) {
      parameters.put("spark.sql.statistics.totalSize", String.valueOf(bytes));
    }
  }

  /** Without this the metastore counts files itself and marks the column statistics as stale. */
  private static EnvironmentContext keepStatistics() {
    Map properties = new HashMap();
    properties.put(StatsSetupConst.DO_NOT_UPDATE_STATS, StatsSetupConst.TRUE);
    return new EnvironmentContext(properties);
  }

  private boolean isElsewhere(StorageDescriptor sd, String live) {
    return live != null && !qualify(live).equals(qualify(text(sd.getLocation())));
  }

  /** False where the partition exists. Columns are the table's, as every new partition's are. */
  public boolean addPartition(String database, String name, String record) throws Exception {
    Map wanted = (Map) mapper.readValue(record, Map.class);
    Map form = (Map) wanted.get("storage");
    Table table = client.getTable(database, name);
    Partition partition = new Partition();
    partition.setDbName(table.getDbName());
    partition.setTableName(table.getTableName());
    partition.setValues((List) wanted.get("values"));
    StorageDescriptor sd = table.getSd().deepCopy();
    sd.setLocation((String) wanted.get("location"));
    sd.setInputFormat((String) form.get("input_format"));
    sd.setOutputFormat((String) form.get("output_format"));
    sd.setSerdeInfo(new SerDeInfo(table.getSd().getSerdeInfo().getName(), (String) form.get("serde"), (Map) form.get("serde_parameters")));
    partition.setSd(sd);
    partition.setParameters((Map) wanted.get("parameters"));
    // The drop took the column statistics with it; what says that they are right must not come back alone.
    StatsSetupConst.clearColumnStatsState(partition.getParameters());
    try {
      client.add_partition(partition);
      return true;
    } catch (AlreadyExistsException e) {
      return false;
    }
  }

  /** "" where the lock is held now, else why not; nothing is thrown. */
  public String lock(String database, String table, long timeoutMs) {
    try {
      LockComponentBuilder component = new LockComponentBuilder();
      component.setExclusive();
      component.setOperationType(DataOperationType.NO_TXN);
      component.setDbName(database);
      component.setTableName(table);
      LockRequestBuilder request = new LockRequestBuilder("hivekeeper");
      request.setUser(UserGroupInformation.getCurrentUser().getShortUserName());
      request.addLockComponent(component.build());
      LockResponse answer = client.lock(request.build());
      lockId = answer.getLockid();
      long end = System.currentTimeMillis() + timeoutMs;
      while (answer.getState() == LockState.WAITING && System.currentTimeMillis() < end) {
        Thread.sleep(LOCK_POLL_MS);
        answer = client.checkLock(lockId);
      }
      if (answer.getState() == LockState.ACQUIRED) {
        startHeart(lockId);
        return "";
      }
      unlock();
      return "another holds Hive's lock on it";
    } catch (Throwable e) {
      unlock();
      return firstLine(e);
    }
  }

  /** Never throws: a lock that cannot be given back ends by itself when its heartbeats stop. */
  public void unlock() {
    if (heart != null) {
      heart.interrupt();
      heart = null;
    }
    if (lockId == 0) {
      return;
    }
    try {
      client.unlock(lockId);
    } catch (Throwable e) {
      // Said above: it ends by itself.
    }
    lockId = 0;
  }

  private void startHeart(final long lock) throws Exception {
    final HiveConf own = conf;
    heart = new Thread("hivekeeper-hive-lock") {
      public void run() {
        IMetaStoreClient beating = null;
        try {
          beating = RetryingMetaStoreClient.getProxy(own, true);
          while (true) {
            beating.heartbeat(0L, lock);
            Thread.sleep(HEARTBEAT_MS);
          }
        } catch (Throwable e) {
          // Released, or lost: the lock is best effort, and nothing relies on it alone.
        } finally {
          if (beating != null) {
            beating.close();
          }
        }
      }
    };
    heart.setDaemon(true);
    heart.start();
  }

  private List tablesNamed(String database, List names) throws Exception {
    List found = new ArrayList();
    for (int start = 0; start < names.size(); start += TABLES_AT_ONCE) {
      found.addAll(client.getTableObjectsByName(database, part(names, start, TABLES_AT_ONCE)));
    }
    return found;
  }

  private static Map describe(Table table) {
    Map map = new LinkedHashMap();
    StorageDescriptor sd = table.getSd();
    map.put("database", table.getDbName());
    map.put("name", table.getTableName());
    map.put("kind", text(table.getTableType()));
    map.put("location", sd == null ? "" : text(sd.getLocation()));
    map.put("storage", storage(sd));
    map.put("columns", columns(sd == null ? null : sd.getCols()));
    map.put("partition_columns", columns(table.getPartitionKeys()));
    map.put("parameters", parameters(table.getParameters()));
    map.put("bucket_columns", sd == null || sd.getBucketCols() == null ? Collections.EMPTY_LIST : sd.getBucketCols());
    map.put("buckets", Integer.valueOf(sd == null ? -1 : sd.getNumBuckets()));
    map.put("sort_columns", sortColumns(sd));
    boolean skewed = sd != null && sd.getSkewedInfo() != null && sd.getSkewedInfo().getSkewedColNames() != null;
    map.put("skewed_columns", skewed ? sd.getSkewedInfo().getSkewedColNames() : Collections.EMPTY_LIST);
    map.put("owner", text(table.getOwner()));
    map.put("create_time", Integer.valueOf(table.getCreateTime()));
    return map;
  }

  private static Map storage(StorageDescriptor sd) {
    SerDeInfo serde = sd == null ? null : sd.getSerdeInfo();
    Map map = new LinkedHashMap();
    map.put("input_format", sd == null ? "" : text(sd.getInputFormat()));
    map.put("output_format", sd == null ? "" : text(sd.getOutputFormat()));
    map.put("serde", serde == null ? "" : text(serde.getSerializationLib()));
    map.put("serde_parameters", parameters(serde == null ? null : serde.getParameters()));
    return map;
  }

  private static List columns(List fields) {
    List found = new ArrayList();
    if (fields != null) {
      for (Iterator it = fields.iterator(); it.hasNext();) {
        FieldSchema field = (FieldSchema) it.next();
        found.add(new Object[] {field.getName(), text(field.getType())});
      }
    }
    return found;
  }

  private static List sortColumns(StorageDescriptor sd) {
    List found = new ArrayList();
    if (sd != null && sd.getSortCols() != null) {
      for (Iterator it = sd.getSortCols().iterator(); it.hasNext();) {
        found.add(((Order) it.next()).getCol());
      }
    }
    return found;
  }

  private static Map parameters(Map stored) {
    Map found = new LinkedHashMap();
    if (stored != null) {
      for (Iterator it = stored.entrySet().iterator(); it.hasNext();) {
        Map.Entry entry = (Map.Entry) it.next();
        found.put(entry.getKey(), text((String) entry.getValue()));
      }
    }
    return found;
  }

  /** A location on a file system that this client does not know stays as it is: it can equal nothing of ours. */
  private String qualify(String location) {
    try {
      Path path = new Path(location);
      return path.getFileSystem(conf).makeQualified(path).toString();
    } catch (Exception e) {
      return location;
    }
  }

  private List list(String text) throws Exception {
    return Arrays.asList((Object[]) mapper.readValue(text, String[].class));
  }

  private static List part(List whole, int start, int size) {
    return new ArrayList(whole.subList(start, Math.min(start + size, whole.size())));
  }

  private String json(Object value) throws Exception {
    return mapper.writeValueAsString(value);
  }

  private static String text(String value) {
    return value == null ? "" : value;
  }

  private static String firstLine(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    String message = text(cause.getMessage()).trim();
    int end = message.indexOf('\n');
    return message.length() == 0 ? cause.getClass().getName() : end < 0 ? message : message.substring(0, end);
  }
}
