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
import org.apache.hadoop.hive.metastore.TableType;
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
import org.apache.hadoop.hive.metastore.api.UnknownDBException;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.thrift.TApplicationException;

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

  // What a backup table does not take over: numbers that only the table's own writers keep right, and what lets others delete its files.
  private static final List ROW_STATISTICS = Arrays.asList(new Object[] {
      "numRows", "rawDataSize", "COLUMN_STATS_ACCURATE", "STATS_GENERATED_VIA_STATS_TASK", "numFilesErasureCoded"});
  private static final List RIGHTS_OVER_FILES = Arrays.asList(new Object[] {
      "TRANSLATED_TO_EXTERNAL", "transactional", "transactional_properties", "auto.purge", "partition.retention.period"});
  private static final String DDL_TIME = "transient_lastDdlTime";

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
    return isDatabase(database) ? json(client.getAllTables(database)) : "null";
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

  /**
   * An external table with the definition of another over files that lie elsewhere; places: partition name, or "", -> location.
   *
   * The server makes a directory that is missing, and lists one whose number and size of files it is not told; nothing else.
   */
  public void makeBackupTable(String database, String name, String ofDatabase, String of, String location, String parameters, String places)
      throws Exception {
    Table source = client.getTable(ofDatabase, of);
    Map wanted = (Map) mapper.readValue(places, Map.class);
    Table made = source.deepCopy();
    made.setDbName(database);
    made.setTableName(name);
    made.setTableType(TableType.EXTERNAL_TABLE.toString());
    made.setCreateTime(0);
    made.setParameters(backupParameters(source, (Map) mapper.readValue(parameters, Map.class)));
    move(made.getSd(), wanted.containsKey("") ? (String) wanted.get("") : location);
    client.createTable(made);
    try {
      addPartitions(source, made, wanted);
    } catch (Exception e) {
      dropQuietly(database, name);
      throw e;
    }
  }

  private static Map backupParameters(Table source, Map own) {
    Map found = withoutStatistics(source.getParameters());
    found.keySet().removeAll(RIGHTS_OVER_FILES);
    if (source.getPartitionKeysSize() == 0) {
      // Servers take it for a request and take it out; one that gathers no statistics keeps it, to no effect.
      found.put(StatsSetupConst.DO_NOT_UPDATE_STATS, StatsSetupConst.TRUE);
    } else {
      // Of all the table's files, of which the backup shows some.
      found.remove(StatsSetupConst.NUM_FILES);
      found.remove(StatsSetupConst.TOTAL_SIZE);
    }
    found.putAll(own);
    found.put("EXTERNAL", "TRUE");
    found.put("external.table.purge", "false");
    found.put("discover.partitions", "false");
    return found;
  }

  /** Number and size of files stay: they are those of the files shown, and a server that misses them lists the directory. */
  private static Map withoutStatistics(Map stored) {
    Map found = parameters(stored);
    found.keySet().removeAll(ROW_STATISTICS);
    found.remove(DDL_TIME);
    for (Iterator it = found.keySet().iterator(); it.hasNext();) {
      String key = (String) it.next();
      if (key.startsWith("spark.sql.statistics.") || key.startsWith("impala_intermediate_stats_")) {
        it.remove();
      }
    }
    return found;
  }

  private void addPartitions(Table source, Table made, Map places) throws Exception {
    List names = source.getPartitionKeysSize() == 0 ? Collections.EMPTY_LIST : new ArrayList(places.keySet());
    for (int start = 0; start < names.size(); start += PARTITIONS_AT_ONCE) {
      List added = new ArrayList();
      for (Iterator it = named(source, part(names, start, PARTITIONS_AT_ONCE)).entrySet().iterator(); it.hasNext();) {
        Map.Entry entry = (Map.Entry) it.next();
        Partition partition = (Partition) entry.getValue();
        partition.setDbName(made.getDbName());
        partition.setTableName(made.getTableName());
        partition.setCreateTime(0);
        partition.setParameters(withoutStatistics(partition.getParameters()));
        move(partition.getSd(), (String) places.get(entry.getKey()));
        added.add(partition);
      }
      if (!added.isEmpty()) {
        client.add_partitions(added, true, false);
      }
    }
  }

  /** Spark reads its own tables where the SerDe's `path` says, whatever the location is. */
  private static void move(StorageDescriptor sd, String place) {
    sd.setLocation(place);
    Map properties = sd.getSerdeInfo() == null ? null : sd.getSerdeInfo().getParameters();
    if (properties != null) {
      for (Iterator it = properties.entrySet().iterator(); it.hasNext();) {
        Map.Entry entry = (Map.Entry) it.next();
        if ("path".equalsIgnoreCase((String) entry.getKey())) {
          entry.setValue(place);
        }
      }
    }
  }

  /** Half a table that its maker takes for missing would stay for ever. */
  private void dropQuietly(String database, String name) {
    try {
      client.dropTable(database, name, false, true);
    } catch (Exception e) {
      // The first failure is the one to tell.
    }
  }

  public void pointBackupTable(String database, String name, String parameters, String places) throws Exception {
    Table table = backupTable(database, name, parameters);
    if (table == null) {
      return;
    }
    Map wanted = (Map) mapper.readValue(places, Map.class);
    if (table.getPartitionKeysSize() == 0) {
      if (isElsewhere(table.getSd(), (String) wanted.get(""))) {
        move(table.getSd(), (String) wanted.get(""));
        client.alter_table_with_environmentContext(database, name, table, keepStatistics());
      }
      return;
    }
    List names = new ArrayList(wanted.keySet());
    for (int start = 0; start < names.size(); start += PARTITIONS_AT_ONCE) {
      List moved = new ArrayList();
      for (Iterator it = named(table, part(names, start, PARTITIONS_AT_ONCE)).entrySet().iterator(); it.hasNext();) {
        Map.Entry entry = (Map.Entry) it.next();
        Partition partition = (Partition) entry.getValue();
        if (isElsewhere(partition.getSd(), (String) wanted.get(entry.getKey()))) {
          move(partition.getSd(), (String) wanted.get(entry.getKey()));
          moved.add(partition);
        }
      }
      if (!moved.isEmpty()) {
        client.alter_partitions(database, name, moved, keepStatistics());
      }
    }
  }

  /** One request to the server for each partition: only Hive's own expressions drop in bulk, and versions write those differently. */
  public void trimBackupTable(String database, String name, String parameters, String partitions) throws Exception {
    Table table = backupTable(database, name, parameters);
    List names = table == null || table.getPartitionKeysSize() == 0 ? Collections.EMPTY_LIST : list(partitions);
    for (int start = 0; start < names.size(); start += PARTITIONS_AT_ONCE) {
      for (Iterator it = named(table, part(names, start, PARTITIONS_AT_ONCE)).values().iterator(); it.hasNext();) {
        try {
          client.dropPartition(database, name, ((Partition) it.next()).getValues(), false);
        } catch (NoSuchObjectException e) {
          // Somebody else dropped it since it was read.
        }
      }
    }
  }

  public boolean dropBackupTable(String database, String name, String parameters) throws Exception {
    if (backupTable(database, name, parameters) == null) {
      return false;
    }
    client.dropTable(database, name, false, true);
    return true;
  }

  /** Null where the table is gone or does not carry all of these parameters: then it is not ours. */
  private Table backupTable(String database, String name, String parameters) throws Exception {
    Table table;
    try {
      table = client.getTable(database, name);
    } catch (NoSuchObjectException e) {
      return null;
    }
    Map wanted = (Map) mapper.readValue(parameters, Map.class);
    return parameters(table.getParameters()).entrySet().containsAll(wanted.entrySet()) ? table : null;
  }

  /** Those of the named partitions that exist, by name; a database may take names for the same that differ in case. */
  private Map named(Table table, List names) throws Exception {
    Map found = new LinkedHashMap();
    for (Iterator it = client.getPartitionsByNames(table.getDbName(), table.getTableName(), names).iterator(); it.hasNext();) {
      Partition partition = (Partition) it.next();
      found.put(Warehouse.makePartName(table.getPartitionKeys(), partition.getValues()), partition);
    }
    found.keySet().retainAll(names);
    return found;
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
    try {
      for (int start = 0; start < names.size(); start += TABLES_AT_ONCE) {
        found.addAll(client.getTableObjectsByName(database, part(names, start, TABLES_AT_ONCE)));
      }
    } catch (UnknownDBException e) {
      return Collections.EMPTY_LIST;
    } catch (TApplicationException e) {
      // Servers from Hive 3.0 on say no more than this where the database is missing: the call has lost its declared exceptions.
      if (e.getType() != TApplicationException.INTERNAL_ERROR || isDatabase(database)) {
        throw e;
      }
      return Collections.EMPTY_LIST;
    }
    return found;
  }

  private boolean isDatabase(String name) throws Exception {
    try {
      client.getDatabase(name);
      return true;
    } catch (NoSuchObjectException e) {
      return false;
    }
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
