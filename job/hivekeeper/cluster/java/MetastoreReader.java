package hivekeeper;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hive.metastore.TableType;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.Order;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;

/** Reads databases, tables and partitions, using the field names of `model.Table` and `model.Partition`. */
public class MetastoreReader {
  private final MetastoreConnection connection;

  public MetastoreReader(MetastoreConnection connection) {
    this.connection = connection;
  }

  public String databases() throws Exception {
    return Json.write(connection.client.getAllDatabases());
  }

  /** "null" if the database does not exist. Fails above `mostTables`. */
  public String tableNames(String database, int mostTables) throws Exception {
    return connection.isDatabase(database) ? Json.write(namesIn(database, mostTables)) : "null";
  }

  /** The same of a database that was there: none if it is not any more. */
  public String namesLeft(String database, int mostTables) throws Exception {
    return Json.write(namesIn(database, mostTables));
  }

  /**
   * All names, or a MetaException that says why not: whoever may create tables may create more than an answer may have. They are not asked for
   * in pieces. Hive knows only LIKE's patterns, of which none finds the names with a `*` or `|`, which Hive 4 allows, and no other table's
   * names; and a table that is in no piece may lie in the directory of any other.
   */
  private List<String> namesIn(String database, int mostTables) throws Exception {
    List<String> found;
    try {
      found = connection.client.getAllTables(database);
    } catch (Exception failed) {
      connection.requireAnswers(database, failed);
      found = askAgain(database, failed);
    }
    if (found.size() > mostTables) throw new MetaException("there are " + found.size() + ", more than " + mostTables);
    return found;
  }

  /** What failed once, as while a metastore is started anew, says nothing about the database. An answer that is too large stays so. */
  private List<String> askAgain(String database, Exception failed) throws MetaException {
    Exception why = failed;
    try {
      boolean isTooLarge = failed instanceof MetaException && SteadyClient.isTooLarge((MetaException) failed);
      if (!isTooLarge) return connection.client.getAllTables(database);
    } catch (Exception failedAgain) {
      why = failedAgain;
    }
    throw new MetaException("it cannot tell their names: " + Messages.shortReason(why));
  }

  /** A table whose definition is told. */
  private static class Weighed {
    final Table table;
    final long weight;

    Weighed(Table table, long weight) {
      this.table = table;
      this.weight = weight;
    }
  }

  /** Definitions of tables, told a piece at a time. */
  public static class Definitions {
    private final Iterator<Weighed> kept;
    private final Map<String, Object> heavy;
    private final Map<String, String> unreadable;

    Definitions(Iterator<Weighed> kept, Map<String, Object> heavy, Map<String, String> unreadable) {
      this.kept = kept;
      this.heavy = heavy;
      this.unreadable = unreadable;
    }

    /** {tables, more}: as many as are not much heavier than `most` together; whether there are more. */
    public String next(long most) throws Exception {
      List<Object> described = new ArrayList<Object>();
      for (long sum = 0; kept.hasNext() && sum < most;) {
        Weighed one = (Weighed) kept.next();
        described.add(describe(one.table));
        sum += one.weight;
      }
      Map<String, Object> found = new LinkedHashMap<String, Object>();
      found.put("tables", described);
      found.put("more", kept.hasNext());
      return Json.writeAscii(found);
    }

    /** {heavy, unreadable}: of a table that is too heavy only its weight and its kind, of one that cannot be read why. */
    public String missing() throws Exception {
      Map<String, Object> found = new LinkedHashMap<String, Object>();
      found.put("heavy", heavy);
      found.put("unreadable", unreadable);
      return Json.writeAscii(found);
    }
  }

  /**
   * A table that is heavier than `most` is left out. If the others are heavier than `together`, so are the heaviest of them: whoever makes
   * many tables, each of them just not too heavy, costs nobody else's table its definition.
   */
  public Definitions tables(String database, String names, long most, long together) throws Exception {
    List<Weighed> kept = new ArrayList<Weighed>();
    Map<String, Object> heavy = new LinkedHashMap<String, Object>();
    long sum = 0;
    TableBatches batches = new TableBatches(connection, database, Json.readStrings(names));
    for (List<Table> batch = batches.next(); batch != null; batch = batches.next()) {
      for (Table table : batch) {
        long weight = Weight.of(table);
        if (weight > most) {
          heavy.put(table.getTableName(), brief(table, weight));
          continue;
        }
        kept.add(new Weighed(table, weight));
        for (sum += weight; sum > together;) {
          Weighed left = (Weighed) kept.remove(heaviest(kept));
          heavy.put(left.table.getTableName(), brief(left.table, left.weight));
          sum -= left.weight;
        }
      }
    }
    return new Definitions(kept.iterator(), heavy, batches.unreadable);
  }

  private static int heaviest(List<Weighed> kept) {
    int found = 0;
    for (int at = 1; at < kept.size(); at++) {
      if (((Weighed) kept.get(at)).weight > ((Weighed) kept.get(found)).weight) found = at;
    }
    return found;
  }

  /**
   * {locations, paths, others, unreadable}: the qualified location of each of these tables that has one; where Spark finds its files, if that
   * is elsewhere; those that have neither; why a table cannot be read. Of one table's paths that have more than `mostCharacters` together
   * some are left out. Fails if all that is told has more characters than `most`, or does not fit into memory.
   */
  public String locations(String database, String names, int mostCharacters, long most) throws Exception {
    try {
      return Json.write(readLocations(database, names, mostCharacters, most));
    } catch (OutOfMemoryError tooLarge) {
      throw new MetaException("there is no memory for where they are");
    }
  }

  private Map<String, Object> readLocations(String database, String names, int mostCharacters, long most) throws Exception {
    long told = 0;
    Map<String, String> places = new LinkedHashMap<String, String>();
    Map<String, Object> paths = new LinkedHashMap<String, Object>();
    Map<String, String> owners = new LinkedHashMap<String, String>();
    List<String> others = new ArrayList<String>();
    TableBatches batches = new TableBatches(connection, database, Json.readStrings(names));
    for (List<Table> batch = batches.next(); batch != null; batch = batches.next()) {
      for (Table table : batch) {
        String location = location(table);
        if (!location.isEmpty()) places.put(table.getTableName(), connection.qualify(location));
        Set<String> elsewhere = new LinkedHashSet<String>(sparkPaths(table, mostCharacters));
        elsewhere.remove(places.get(table.getTableName()));
        List<String> own = new ArrayList<String>(elsewhere);
        if (!own.isEmpty()) {
          paths.put(table.getTableName(), own);
          owners.put(table.getTableName(), text(table.getOwner()));
        }
        if (own.isEmpty() && !places.containsKey(table.getTableName())) others.add(table.getTableName());
        told += Weight.of(table.getTableName()) + Weight.of((String) places.get(table.getTableName())) + Weight.of(own);
        told += Weight.of((String) owners.get(table.getTableName()));
        if (told > most) throw new MetaException("their names and locations have more than " + most + " characters");
      }
    }
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("locations", places);
    found.put("paths", paths);
    found.put("owners", owners);
    found.put("others", others);
    found.put("unreadable", batches.unreadable);
    return found;
  }

  /**
   * The values of the SerDe's property `path` of a table of Spark, qualified: Spark looks for it in any case, and takes one of them. No more
   * than have `mostCharacters` together: all are kept for all tables, and whoever may create these chooses them.
   */
  private Set<String> sparkPaths(Table table, int mostCharacters) {
    Set<String> found = new LinkedHashSet<String>();
    StorageDescriptor sd = table.getSd();
    if (sd == null || sd.getSerdeInfo() == null || !parameters(table.getParameters()).containsKey("spark.sql.sources.provider")) return found;
    int left = mostCharacters;
    for (Map.Entry<String, String> entry : parameters(sd.getSerdeInfo().getParameters()).entrySet()) {
      String path = (String) entry.getValue();
      if (!"path".equalsIgnoreCase((String) entry.getKey()) || path.length() > left || !Locations.isPath(path)) continue;
      found.add(connection.qualify(path));
      left -= path.length();
    }
    return found;
  }

  /**
   * {locations, unreadable}: qualified locations of these databases; why one cannot be read, as it is with gigabytes of properties. Databases
   * without one, or dropped meanwhile, are left out.
   */
  public String databaseLocations(String names) throws Exception {
    Map<String, String> places = new LinkedHashMap<String, String>();
    Map<String, String> unreadable = new LinkedHashMap<String, String>();
    for (String name : Json.readStrings(names)) {
      try {
        String location = connection.databaseLocation(name);
        if (location != null && !location.isEmpty()) places.put(name, connection.qualify(location));
      } catch (Exception failed) {
        unreadable.put(name, Messages.shortReason(failed));
      }
    }
    // A metastore that does not answer any more fails here, too. Whoever owns a database may let each request for it fail, but not this one.
    if (!unreadable.isEmpty()) connection.client.getDatabases(MetastoreConnection.nobodysName());
    if (places.isEmpty() && !unreadable.isEmpty()) connection.databaseLocation((String) unreadable.keySet().iterator().next());
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("locations", places);
    found.put("unreadable", unreadable);
    return Json.write(found);
  }

  /** Locations in the spelling of locations(), for comparison. */
  public String qualified(String locations) throws Exception {
    List<String> found = new ArrayList<String>();
    for (String location : Json.readStrings(locations)) found.add(connection.qualify(location));
    return Json.write(found);
  }

  /**
   * {storages, partitions}: the named partitions that exist, or all if names is null; "null" if there are more than `mostPartitions`, or if
   * their properties, and what is long of their locations and values, are together heavier than `most`, or do not fit into memory. Hive's
   * client repeats every column in every partition; that is left out.
   */
  public String partitions(String database, String table, String names, long most, int mostPartitions) throws Exception {
    try {
      PartitionReading reading = new PartitionReading(connection, database, table, most, mostPartitions);
      boolean isFit = names == null ? reading.readAll() : reading.read(Json.readStrings(names));
      return isFit ? Json.writeAscii(reading.found()) : "null";
    } catch (MetaException failed) {
      if (!SteadyClient.isTooLarge(failed)) throw failed;
      return "null";
    } catch (OutOfMemoryError tooLarge) {
      return "null";
    }
  }

  /** What a partition's own definition promises of its files: ALTER TABLE … NOT CLUSTERED leaves those of older partitions as they are. */
  static String layout(StorageDescriptor sd) {
    if (sd.getNumBuckets() > 0 || !orEmpty(sd.getBucketCols()).isEmpty()) return "bucketed";
    if (!skewedColumns(sd).isEmpty()) return "skewed";
    return orEmpty(sd.getSortCols()).isEmpty() ? "" : "sorted";
  }

  private static List<?> skewedColumns(StorageDescriptor sd) {
    return sd.getSkewedInfo() == null ? Collections.emptyList() : orEmpty(sd.getSkewedInfo().getSkewedColNames());
  }

  /** What tells a table apart, without all that may be heavy. */
  private static Map<String, Object> brief(Table table, long weight) {
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("kind", text(table.getTableType()));
    found.put("create_time", table.getCreateTime());
    found.put("weight", weight);
    return found;
  }

  private static Map<String, Object> describe(Table table) {
    StorageDescriptor sd = table.getSd() == null ? new StorageDescriptor() : table.getSd();
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("database", table.getDbName());
    found.put("name", table.getTableName());
    found.put("kind", text(table.getTableType()));
    found.put("location", location(table));
    found.put("storage", storage(sd));
    found.put("columns", columns(sd.getCols()));
    found.put("partition_columns", columns(table.getPartitionKeys()));
    found.put("parameters", parameters(table.getParameters()));
    found.put("bucket_columns", orEmpty(sd.getBucketCols()));
    found.put("buckets", table.getSd() == null ? -1 : sd.getNumBuckets());
    found.put("sort_columns", sortColumns(sd));
    found.put("skewed_columns", skewedColumns(sd));
    found.put("owner", text(table.getOwner()));
    found.put("create_time", table.getCreateTime());
    found.put("view_text", text(table.getViewExpandedText()));
    return found;
  }

  /** "" for none. A view has no files, but the metastore takes any location for it, without asking for a right to that directory. */
  private static String location(Table table) {
    boolean isView = TableType.VIRTUAL_VIEW.toString().equals(table.getTableType());
    return isView || table.getSd() == null ? "" : text(table.getSd().getLocation());
  }

  static Map<String, Object> storage(StorageDescriptor sd) {
    SerDeInfo serde = sd.getSerdeInfo() == null ? new SerDeInfo() : sd.getSerdeInfo();
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("input_format", text(sd.getInputFormat()));
    found.put("output_format", text(sd.getOutputFormat()));
    found.put("serde", text(serde.getSerializationLib()));
    found.put("serde_parameters", parameters(serde.getParameters()));
    return found;
  }

  private static List<Object> columns(List<FieldSchema> fields) {
    List<Object> found = new ArrayList<Object>();
    for (Object each : orEmpty(fields)) {
      FieldSchema field = (FieldSchema) each;
      Map<String, String> column = new LinkedHashMap<String, String>();
      column.put("name", field.getName());
      column.put("type", text(field.getType()));
      found.add(column);
    }
    return found;
  }

  private static List<String> sortColumns(StorageDescriptor sd) {
    List<String> found = new ArrayList<String>();
    for (Object each : orEmpty(sd.getSortCols())) found.add(((Order) each).getCol());
    return found;
  }

  /** A copy, without nulls. */
  static Map<String, String> parameters(Map<String, String> stored) {
    Map<String, String> found = new LinkedHashMap<String, String>();
    if (stored == null) return found;
    for (Map.Entry<String, String> entry : stored.entrySet()) found.put((String) entry.getKey(), text((String) entry.getValue()));
    return found;
  }

  private static List<?> orEmpty(List<?> list) {
    return list == null ? Collections.emptyList() : list;
  }

  static String text(String value) {
    return value == null ? "" : value;
  }
}
