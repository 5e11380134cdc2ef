package hivekeeper;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.metastore.TableType;
import org.apache.hadoop.hive.metastore.api.AlreadyExistsException;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.EnvironmentContext;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.NoSuchObjectException;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * The external tables and the views through which others query the catalogue. Touches no file.
 *
 * What is not ours is not changed. A mark in the properties proves nothing, as anybody can set it: a table or view of somebody else, who could
 * drop it with our files or show other rows, is not ours, nor is one that lies elsewhere, is read in another way, or whose files go with it.
 * Columns are {name: Hive's type}.
 */
public class CatalogueTables {
  private static final String INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat";
  private static final String OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat";
  private static final String SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe";

  private final MetastoreConnection connection;

  public CatalogueTables(MetastoreConnection connection) {
    this.connection = connection;
  }

  /** Its directory is the server's choice. */
  public void makeDatabase(String name, String comment) throws Exception {
    if (connection.isDatabase(name)) return;
    try {
      connection.client.createDatabase(new Database(name, comment, null, new HashMap<String, String>()));
    } catch (AlreadyExistsException meanwhile) {
      // Another run has made it.
    }
  }

  /** Makes the table, or gives it these columns. False if a table of this name is not ours. */
  public boolean makeTable(
      String database, String name, String place, String partitionColumn, String parameters, String owners, String columns)
      throws Exception {
    Table known = find(database, name);
    if (known != null && !isOurTable(known, place, partitionColumn, parameters, owners)) return false;
    List<FieldSchema> fields = fields(columns);
    if (known == null) {
      Table made = table(database, name, TableType.EXTERNAL_TABLE, place, fields, parameters);
      made.setPartitionKeys(new ArrayList<FieldSchema>(Collections.singletonList(new FieldSchema(partitionColumn, "string", ""))));
      made.getParameters().put("EXTERNAL", "TRUE");
      made.getParameters().put("external.table.purge", "false");
      made.getParameters().put("discover.partitions", "false");
      if (isCreated(made)) return true;
      return isOurTable(connection.client.getTable(database, name), place, partitionColumn, parameters, owners);
    }
    if (!known.getSd().getCols().equals(fields)) {
      known.getSd().setCols(fields);
      alter(known, parameters);
    }
    return true;
  }

  /** Makes the view, or gives it this text. False if a table or view of this name is not ours. */
  public boolean makeView(String database, String name, String text, String columns, String parameters, String owners) throws Exception {
    Table known = find(database, name);
    if (known != null && !isOurs(known, TableType.VIRTUAL_VIEW, parameters, owners)) return false;
    if (known != null && text.equals(known.getViewExpandedText())) return true;
    Table made = table(database, name, TableType.VIRTUAL_VIEW, null, fields(columns), parameters);
    made.setViewOriginalText(text);
    made.setViewExpandedText(text);
    if (known == null) {
      return isCreated(made) || isOurs(connection.client.getTable(database, name), TableType.VIRTUAL_VIEW, parameters, owners);
    }
    alter(made, parameters);
    return true;
  }

  /** False if another run, or somebody else, has made one of this name meanwhile. */
  private boolean isCreated(Table made) throws Exception {
    try {
      connection.client.createTable(made);
    } catch (AlreadyExistsException meanwhile) {
      return false;
    }
    return true;
  }

  /**
   * Lets the table have exactly these partitions, {value: directory}: those that moved change in one request, so that a reader of the
   * metastore sees all of them at their old places or all at their new ones. False if the table is gone or not ours.
   */
  public boolean point(
      String database, String name, String place, String partitionColumn, String parameters, String owners, String places)
      throws Exception {
    Table table = find(database, name);
    if (table == null || !isOurTable(table, place, partitionColumn, parameters, owners)) return false;
    Map<String, Object> wanted = new LinkedHashMap<String, Object>(Json.readMap(places));
    List<Partition> moved = new ArrayList<Partition>();
    List<Partition> gone = new ArrayList<Partition>();
    for (Object each : connection.client.listPartitions(database, name, (short) -1)) {
      Partition partition = (Partition) each;
      String own = (String) wanted.remove(partition.getValues().get(0));
      if (own == null) {
        gone.add(partition);
      } else if (connection.isElsewhere(partition.getSd(), own)) {
        partition.setSd(at(table, own));
        moved.add(partition);
      }
    }
    if (!moved.isEmpty()) connection.client.alter_partitions(database, name, moved, MetastoreConnection.keepStatistics());
    List<Partition> added = new ArrayList<Partition>();
    for (Map.Entry<String, Object> entry : wanted.entrySet()) added.add(partition(table, (String) entry.getKey(), (String) entry.getValue()));
    if (!added.isEmpty()) connection.client.add_partitions(added, true, false);
    for (Partition partition : gone) drop(partition);
    return true;
  }

  private void drop(Partition partition) throws Exception {
    try {
      connection.client.dropPartition(partition.getDbName(), partition.getTableName(), partition.getValues(), false);
    } catch (NoSuchObjectException meanwhile) {
      // Another run has dropped it.
    }
  }

  private Table find(String database, String name) throws Exception {
    try {
      return connection.client.getTable(database, name);
    } catch (NoSuchObjectException absent) {
      return null;
    }
  }

  private boolean isOurTable(Table table, String place, String partitionColumn, String parameters, String owners) throws Exception {
    StorageDescriptor sd = table.getSd();
    List<FieldSchema> keys = table.getPartitionKeys();
    return isOurs(table, TableType.EXTERNAL_TABLE, parameters, owners)
        && "false".equalsIgnoreCase((String) table.getParameters().get("external.table.purge"))
        && !connection.isElsewhere(sd, place)
        && INPUT.equals(sd.getInputFormat())
        && OUTPUT.equals(sd.getOutputFormat())
        && sd.getSerdeInfo() != null
        && SERDE.equals(sd.getSerdeInfo().getSerializationLib())
        && keys != null
        && keys.size() == 1
        && isColumn((FieldSchema) keys.get(0), partitionColumn);
  }

  /** Its comment, which we leave empty, is not compared: a metastore in Oracle has null for it. */
  private static boolean isColumn(FieldSchema column, String name) {
    return name.equals(column.getName()) && "string".equals(column.getType());
  }

  private static boolean isOurs(Table table, TableType kind, String parameters, String owners) throws Exception {
    return kind.toString().equals(table.getTableType())
        && table.getParameters() != null
        && MetastoreReader.parameters(table.getParameters()).entrySet().containsAll(Json.readMap(parameters).entrySet())
        && (user().equals(table.getOwner()) || Json.readList(owners).contains(table.getOwner()));
  }

  private static String user() throws Exception {
    return UserGroupInformation.getCurrentUser().getShortUserName();
  }

  /** Whatever has the name by then, and lacks the mark, stays as it is where the server knows conditions (Hive 4; hive_metastoreConstants). */
  private void alter(Table table, String parameters) throws Exception {
    EnvironmentContext context = MetastoreConnection.keepStatistics();
    Map.Entry<String, Object> mark = (Map.Entry) Json.readMap(parameters).entrySet().iterator().next();
    context.putToProperties("expected_parameter_key", (String) mark.getKey());
    context.putToProperties("expected_parameter_value", (String) mark.getValue());
    connection.client.alter_table_with_environmentContext(table.getDbName(), table.getTableName(), table, context);
  }

  private static Table table(String database, String name, TableType kind, String place, List<FieldSchema> fields, String parameters)
      throws Exception {
    Table made = new Table();
    made.setDbName(database);
    made.setTableName(name);
    made.setTableType(kind.toString());
    made.setOwner(user());
    made.setPartitionKeys(new ArrayList<FieldSchema>());
    made.setParameters(new HashMap<String, String>((Map) Json.readMap(parameters)));
    StorageDescriptor sd = new StorageDescriptor();
    sd.setCols(fields);
    sd.setLocation(place);
    sd.setInputFormat(INPUT);
    sd.setOutputFormat(OUTPUT);
    sd.setSerdeInfo(new SerDeInfo(null, SERDE, new HashMap<String, String>(Collections.singletonMap("serialization.format", "1"))));
    sd.setParameters(new HashMap<String, String>());
    made.setSd(sd);
    return made;
  }

  private static Partition partition(Table table, String value, String place) {
    Partition made = new Partition();
    made.setDbName(table.getDbName());
    made.setTableName(table.getTableName());
    made.setValues(new ArrayList<String>(Collections.singletonList(value)));
    made.setSd(at(table, place));
    made.setParameters(new HashMap<String, String>());
    return made;
  }

  private static StorageDescriptor at(Table table, String place) {
    StorageDescriptor sd = table.getSd().deepCopy();
    sd.setLocation(place);
    return sd;
  }

  private static List<FieldSchema> fields(String columns) throws Exception {
    List<FieldSchema> found = new ArrayList<FieldSchema>();
    for (Map.Entry<String, Object> column : Json.readMap(columns).entrySet()) {
      found.add(new FieldSchema((String) column.getKey(), (String) column.getValue(), ""));
    }
    return found;
  }
}
