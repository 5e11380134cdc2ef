package hivekeeper;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.metastore.api.Table;

/**
 * Reads tables, a batch at a time: as many as, by the weight of the batch before, fit well into memory. Whoever may alter one table can
 * give it gigabytes of properties; where that lets a batch fail, its tables are read apart, and only those that fail alone are left out.
 */
class TableBatches {
  private static final int AT_FIRST = 50;
  private static final int AT_ONCE = 500;
  private static final long WEIGHT_AT_ONCE = 1L << 25;

  /** Why a table cannot be read, by its name. */
  final Map<String, String> unreadable = new LinkedHashMap<String, String>();

  private final MetastoreConnection connection;
  private final String database;
  private final List<String> names;
  private int done;
  private int size = AT_FIRST;

  TableBatches(MetastoreConnection connection, String database, List<String> names) {
    this.connection = connection;
    this.database = database;
    this.names = names;
  }

  /** Null after the last one. */
  List<Table> next() throws Exception {
    if (done == names.size()) return null;
    List<String> batch = new ArrayList<String>(names.subList(done, Math.min(done + size, names.size())));
    done += batch.size();
    List<Table> found = read(batch);
    long weight = 1;
    for (Table table : found) weight += Weight.of(table);
    size = (int) Math.max(1, Math.min(AT_ONCE, WEIGHT_AT_ONCE / weight * batch.size()));
    return found;
  }

  private List<Table> read(List<String> batch) throws Exception {
    try {
      return connection.tables(database, batch);
    } catch (Exception failed) {
      requireAnswers(failed);
      if (batch.size() == 1) return leaveOut((String) batch.get(0), failed);
    }
    int half = batch.size() / 2;
    List<Table> found = new ArrayList<Table>(read(batch.subList(0, half)));
    found.addAll(read(batch.subList(half, batch.size())));
    return found;
  }

  /** Throws the failure again if not even the same request for a table that does not exist succeeds. */
  private void requireAnswers(Exception failed) throws Exception {
    try {
      connection.tables(database, Collections.singletonList(MetastoreConnection.nobodysName()));
    } catch (Exception alsoFailed) {
      throw failed;
    }
  }

  private List<Table> leaveOut(String name, Throwable failed) {
    unreadable.put(name, Messages.shortReason(failed));
    return Collections.emptyList();
  }
}
