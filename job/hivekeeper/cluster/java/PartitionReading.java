package hivekeeper;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hive.metastore.Warehouse;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;

/**
 * Reads the partitions of a table, a batch at a time: as many as, by the weight of the heaviest so far, fit well into memory.
 *
 * The metastore tells all of them only by two requests, for their names and for these. One that is renamed in between is in neither
 * answer, and may be all that shows a backup: so the names are asked for again.
 */
class PartitionReading {
  private static final int AT_FIRST = 100;
  private static final long WEIGHT_AT_ONCE = 1L << 26;
  /** So much of a partition's location and values, which its name repeats, does not count: a table may have a million of them. */
  private static final long USUAL_PLACE = 256L;
  /** How often names are asked for. Each time but the first two, as a rule, one of few partitions must have gone within milliseconds. */
  private static final int MOST_ROUNDS = 10;

  private final MetastoreConnection connection;
  private final String database;
  private final String table;
  private final long most;
  private final int mostPartitions;

  private final Numbered storages = new Numbered();
  /**
   * By the names that are made of their values here: one may be asked for by another spelling, and is then told twice. Not by the values
   * themselves: where many have one hash, Java orders texts, but compares each list with all others.
   */
  private final Map<String, PartitionRow> rows = new LinkedHashMap<String, PartitionRow>();
  private List<FieldSchema> keys;
  private long weight;
  private long heaviest = 1;
  private int batches;
  /** The names among those that were asked for of which no partition came. */
  private final Set<String> missing = new HashSet<String>();
  /** Whether one of the names that were asked for has told another place before. */
  private boolean moved;

  /** Nothing may weigh more than `most`, and there may be no more than `mostPartitions`. */
  PartitionReading(MetastoreConnection connection, String database, String table, long most, int mostPartitions) {
    this.connection = connection;
    this.database = database;
    this.table = table;
    this.most = most;
    this.mostPartitions = mostPartitions;
  }

  /** One partition; `storage` is an index into the list of storages, which partitions share. */
  public static class PartitionRow {
    public String name;
    public List<String> values;
    public String location;
    public int storage;
    public Map<String, String> parameters;
    /** What it adds to the weight of all; not written. */
    long weight;
  }

  /**
   * Reads all. Returns false if they are too many or too heavy. One that is renamed meanwhile may be there under both names; throws
   * PartitionsChange if one may be missing still.
   *
   * One that did not come may have a name by now that had been told before, of another one that was dropped or renamed in its turn: no
   * name needs to be new. So the first time that one does not come, all are read once more, and again while a name tells another place
   * than before. That ends where partitions are dropped all the time: no place changes. Nor does one need to be missing where two have
   * exchanged their names: then two names tell one place. What is hidden even then was renamed between the request for the names and its
   * own, to a name whose turn was over and which another statement had just made free, while its former name was given again.
   */
  boolean readAll() throws Exception {
    Set<String> told = new HashSet<String>();
    List<String> left = connection.client.listPartitionNames(database, table, (short) -1);
    boolean wasComplete = true;
    for (int round = 1; !left.isEmpty(); round++) {
      if (round > MOST_ROUNDS) throw new PartitionsChange(database, table, MOST_ROUNDS);
      if (!read(left)) return false;
      // While several batches are read, there is time to give another partition the name of one that was renamed.
      if (missing.isEmpty() && !moved && (round > 1 || batches == 1)) return true;
      boolean isAnew = moved || (missing.isEmpty() ? round == 1 && shareAPlace() : wasComplete);
      wasComplete = wasComplete && missing.isEmpty();
      told.addAll(left);
      told.removeAll(missing);
      left = new ArrayList<String>(connection.client.listPartitionNames(database, table, (short) -1));
      if (!isAnew) left.removeAll(told);
    }
    return true;
  }

  private boolean shareAPlace() {
    Set<String> places = new HashSet<String>();
    for (PartitionRow row : rows.values()) {
      // A view's has none.
      if (!row.location.isEmpty() && !places.add(row.location)) return true;
    }
    return false;
  }

  /** Reads the named partitions that exist. Returns false if all are too many or too heavy. */
  boolean read(List<String> names) throws Exception {
    missing.clear();
    moved = false;
    if (names.size() > mostPartitions) return false;
    if (keys == null && !names.isEmpty()) keys = connection.client.getTable(database, table).getPartitionKeys();
    for (int done = 0; done < names.size();) {
      List<String> batch = new ArrayList<String>(names.subList(done, Math.min(done + atOnce(), names.size())));
      done += batch.size();
      if (!readBatch(batch)) return false;
    }
    return true;
  }

  private boolean readBatch(List<String> batch) throws Exception {
    Set<String> came = new HashSet<String>();
    int count = 0;
    batches++;
    for (Partition partition : connection.client.getPartitionsByNames(database, table, batch)) {
      int known = storages.all.size();
      // A view's has no place.
      StorageDescriptor sd = partition.getSd() == null ? new StorageDescriptor() : partition.getSd();
      PartitionRow row = row(partition, sd);
      long own = Weight.of(partition.getParameters());
      row.weight = own + Math.max(0L, Weight.of(sd.getLocation()) + 2 * Weight.of(partition.getValues()) - USUAL_PLACE);
      weight += row.weight + (storages.all.size() > known ? Weight.ofFormat(sd) : 0);
      PartitionRow before = (PartitionRow) rows.put(row.name, row);
      if (before != null) {
        weight -= before.weight;
        moved = moved || !before.location.equals(row.location);
      }
      if (weight > most || rows.size() > mostPartitions) return false;
      heaviest = Math.max(heaviest, own + Weight.of(sd));
      came.add(row.name);
      count++;
    }
    // Another version of Hive may have made the name, in another spelling. So they are compared only where one did not come.
    if (count < batch.size()) {
      missing.addAll(batch);
      missing.removeAll(came);
    }
    return true;
  }

  /** How many are read at once if the heaviest so far is no exception. */
  private int atOnce() {
    if (batches == 0) return AT_FIRST;
    return (int) Math.max(1, Math.min(MetastoreConnection.PARTITIONS_AT_ONCE, WEIGHT_AT_ONCE / heaviest));
  }

  private PartitionRow row(Partition partition, StorageDescriptor sd) throws Exception {
    PartitionRow row = new PartitionRow();
    row.name = Warehouse.makePartName(keys, partition.getValues());
    row.values = partition.getValues();
    row.location = MetastoreReader.text(sd.getLocation());
    Map<String, Object> storage = MetastoreReader.storage(sd);
    storage.put("layout", MetastoreReader.layout(sd));
    row.storage = storages.of(storage);
    row.parameters = MetastoreReader.parameters(partition.getParameters());
    return row;
  }

  /** {storages, partitions} */
  Map<String, Object> found() {
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("storages", storages.all);
    found.put("partitions", new ArrayList<PartitionRow>(rows.values()));
    return found;
  }
}
