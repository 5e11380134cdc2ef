package hivekeeper;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;

/** Reads the footers of many Parquet or ORC files in one call and merges them per unit and form. Touches nothing. */
public class Footers {
  private final Configuration conf;

  public Footers(Configuration conf) {
    this.conf = conf;
  }

  /**
   * `units` is {unit: [[path, length], …]}; without `byIdentity` a form is what the footer means, not its bytes. Returns {unit: {groups, unreadable: [{path, reason}]}}; a group holds the files of one form:
   * {form, rows: {path: n}, columns: {name: {values, nulls, low, high}}}.
   */
  public String read(final String format, String units, boolean byIdentity) throws Exception {
    Map<String, Object> wanted = Json.readMap(units);
    List<Object> files = new ArrayList<Object>();
    for (Object unit : wanted.values()) files.addAll((List) unit);
    List<Object> footers = WorkerPool.map(files, new WorkerPool.Task() {
      public Object of(Object file) {
        return readOne(format, (String) ((List) file).get(0), ((Number) ((List) file).get(1)).longValue());
      }
    });
    readStarvedAgain(format, footers);
    if (!byIdentity) {
      for (Object footer : footers) ((Footer) footer).form.remove("identity");
    }
    Map<String, Object> answer = new LinkedHashMap<String, Object>();
    int start = 0;
    for (Map.Entry<String, Object> unit : wanted.entrySet()) {
      int end = start + ((List) unit.getValue()).size();
      answer.put((String) unit.getKey(), merge(footers.subList(start, end)));
      start = end;
    }
    return Json.write(answer);
  }

  /** One by one, because another file that was read at the same time may have taken the memory. */
  private void readStarvedAgain(String format, List<Object> footers) {
    for (int i = 0; i < footers.size(); i++) {
      Footer footer = (Footer) footers.get(i);
      if (Footer.STARVED.equals(footer.unreadable)) footers.set(i, readOne(format, footer.path, footer.length));
    }
  }

  private Footer readOne(String format, String path, long length) {
    Footer footer = new Footer(path, length);
    try {
      if (format.equals("orc")) OrcFooters.read(conf, footer);
      else ParquetFooters.read(conf, footer);
      footer.requireReadable();
    } catch (Throwable error) {
      // A damaged file may make a library throw anything, even for memory or stack. The file is then unreadable; other JVM errors propagate.
      boolean ofFile = error instanceof StackOverflowError || error instanceof OutOfMemoryError;
      if (error instanceof VirtualMachineError && !ofFile) throw (VirtualMachineError) error;
      footer.refuse(error);
    }
    return footer;
  }

  private static Map<String, Object> merge(List<Object> all) throws Exception {
    List<Footer> readable = new ArrayList<Footer>();
    List<Object> unreadable = new ArrayList<Object>();
    for (Object each : all) {
      Footer footer = (Footer) each;
      if (footer.unreadable == null) readable.add(footer);
      else unreadable.add(reason(footer));
    }
    Footer.settle(readable);
    List<Object> groups = new ArrayList<Object>();
    for (List<Footer> group : byForm(readable)) groups.add(merged(group));
    Map<String, Object> answer = new LinkedHashMap<String, Object>();
    answer.put("groups", groups);
    answer.put("unreadable", unreadable);
    return answer;
  }

  private static Map<String, String> reason(Footer footer) {
    Map<String, String> found = new LinkedHashMap<String, String>();
    found.put("path", footer.path);
    found.put("reason", footer.unreadable);
    return found;
  }

  /** In the order of the first file of each form. */
  private static Iterable<List<Footer>> byForm(List<Footer> footers) throws Exception {
    Map<String, List<Footer>> groups = new LinkedHashMap<String, List<Footer>>();
    for (Footer footer : footers) {
      String key = Json.write(footer.form);
      if (!groups.containsKey(key)) groups.put(key, new ArrayList<Footer>());
      ((List) groups.get(key)).add(footer);
    }
    return groups.values();
  }

  private static Map<String, Object> merged(List<Footer> group) {
    Map<String, Object> rows = new LinkedHashMap<String, Object>();
    Map<String, ColumnFacts> columns = new TreeMap<String, ColumnFacts>();
    for (Footer footer : group) {
      rows.put(footer.path, footer.rows);
      for (Map.Entry<String, ColumnFacts> column : footer.columns.entrySet()) {
        ColumnFacts known = (ColumnFacts) columns.get(column.getKey());
        if (known == null) columns.put((String) column.getKey(), (ColumnFacts) column.getValue());
        else known.merge((ColumnFacts) column.getValue());
      }
    }
    Map<String, Object> facts = new LinkedHashMap<String, Object>();
    for (Map.Entry<String, ColumnFacts> column : columns.entrySet()) {
      facts.put((String) column.getKey(), ((ColumnFacts) column.getValue()).asMap());
    }
    Map<String, Object> answer = new LinkedHashMap<String, Object>();
    answer.put("form", ((Footer) group.get(0)).form);
    answer.put("rows", rows);
    answer.put("columns", facts);
    return answer;
  }
}
