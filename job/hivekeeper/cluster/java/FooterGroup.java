package hivekeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/** The files of one form in one unit: their row counts, and the statistics of their columns together. */
class FooterGroup {
  final Map<String, Object> form;
  private final TreeMap<Integer, Long> rows = new TreeMap<Integer, Long>();
  private final TreeMap<String, ColumnFacts> columns = new TreeMap<String, ColumnFacts>();

  FooterGroup(Map<String, Object> form) {
    this.form = form;
  }

  int first() {
    return ((Integer) rows.firstKey()).intValue();
  }

  void add(Footer footer, int number) {
    rows.put(number, footer.rows);
    addColumns(footer.columns);
  }

  void merge(FooterGroup other) {
    rows.putAll(other.rows);
    addColumns(other.columns);
  }

  private void addColumns(Map<String, ColumnFacts> more) {
    for (Map.Entry<String, ColumnFacts> column : more.entrySet()) {
      ColumnFacts known = (ColumnFacts) columns.get(column.getKey());
      if (known == null) columns.put((String) column.getKey(), (ColumnFacts) column.getValue());
      else known.merge((ColumnFacts) column.getValue());
    }
  }

  Map<String, Object> describe(FooterAnswer answer) throws IOException {
    Map<String, Object> described = new LinkedHashMap<String, Object>();
    described.put("form", answer.forms.of(form));
    described.put("files", new ArrayList<Integer>(rows.keySet()));
    described.put("rows", new ArrayList<Long>(rows.values()));
    described.put("names", answer.names.of(new ArrayList<String>(columns.keySet())));
    described.put("facts", answer.factsOf(columns.values()));
    return described;
  }
}
