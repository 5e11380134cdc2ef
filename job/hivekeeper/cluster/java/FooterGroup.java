package hivekeeper;

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

  /** Without `withBounds` the columns have only their numbers of values. */
  Map<String, Object> describe(int numberOfForm, boolean withBounds) {
    Map<String, Object> facts = new LinkedHashMap<String, Object>();
    for (Map.Entry<String, ColumnFacts> column : columns.entrySet()) {
      facts.put((String) column.getKey(), ((ColumnFacts) column.getValue()).asMap(withBounds));
    }
    Map<String, Object> answer = new LinkedHashMap<String, Object>();
    answer.put("form", numberOfForm);
    answer.put("files", new ArrayList<Integer>(rows.keySet()));
    answer.put("rows", new ArrayList<Long>(rows.values()));
    answer.put("columns", facts);
    return answer;
  }
}
