package hivekeeper;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.PrimitiveStringifier;

/** Footer statistics of one column, over one or many files. Bounds become unknown as soon as one part with values has none. */
class ColumnFacts {
  long values;
  long nulls;
  boolean valuesKnown = true;
  boolean nullsKnown = true;
  boolean boundsKnown = true;
  private final Comparator<Object> order;
  private final PrimitiveStringifier printer;
  private Object low;
  private Object high;

  /** Uses the values' own order and text. */
  ColumnFacts() {
    this(null, null);
  }

  ColumnFacts(Comparator<?> order, PrimitiveStringifier printer) {
    this.order = (Comparator) order;
    this.printer = printer;
  }

  /** Widens the bounds; null means that this part has none. */
  void addBounds(Object partLow, Object partHigh) {
    if (partLow == null || partHigh == null) {
      boundsKnown = false;
      return;
    }
    low = low == null || compare(partLow, low) < 0 ? partLow : low;
    high = high == null || compare(partHigh, high) > 0 ? partHigh : high;
  }

  private int compare(Object left, Object right) {
    return order == null ? ((Comparable) left).compareTo(right) : order.compare(left, right);
  }

  void merge(ColumnFacts other) {
    values += other.values;
    nulls += other.nulls;
    valuesKnown = valuesKnown && other.valuesKnown;
    nullsKnown = nullsKnown && other.nullsKnown;
    boundsKnown = boundsKnown && other.boundsKnown;
    if (other.low != null) addBounds(other.low, other.high);
  }

  Object numberOfValues() {
    return valuesKnown ? (Object) values : null;
  }

  /** `model.ColumnFacts`, in the order of its fields. */
  List<Object> all() {
    String lowest = boundsKnown && low != null ? text(low) : null;
    String highest = boundsKnown && high != null ? text(high) : null;
    return Arrays.asList(new Object[] {numberOfValues(), nullsKnown ? (Object) nulls : null, lowest, highest});
  }

  private String text(Object value) {
    // Writers state a bound of zero differently; the digest distinguishes rows with -0.0.
    boolean floating = value instanceof Double || value instanceof Float;
    if (floating && ((Number) value).doubleValue() == 0.0) return "0.0";
    if (printer == null) return value.toString();
    if (value instanceof Integer) return printer.stringify(((Integer) value).intValue());
    if (value instanceof Long) return printer.stringify(((Long) value).longValue());
    if (value instanceof Binary) return printer.stringify((Binary) value);
    return value.toString();
  }
}
