package hivekeeper;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** What units have in common in an answer about their footers, and how long it becomes. */
class FooterAnswer {
  /** About what the facts of a column take in Python, besides texts: a number of values alone, and all of them. */
  private static final int OF_VALUES = 8;
  private static final int OF_ALL = 400;

  final Numbered forms = new Numbered();
  final Numbered names = new Numbered();
  private final boolean withBounds;
  private long ofFacts;

  /** Without `withBounds` columns have only their numbers of values. */
  FooterAnswer(boolean withBounds) {
    this.withBounds = withBounds;
  }

  long characters() {
    return forms.characters + names.characters + ofFacts;
  }

  /** For each column its number of values, or [values, nulls, low, high]. */
  List<Object> factsOf(Collection<ColumnFacts> columns) {
    List<Object> all = new ArrayList<Object>();
    for (ColumnFacts column : columns) {
      if (withBounds) {
        List<Object> facts = ((ColumnFacts) column).all();
        for (Object fact : facts) if (fact instanceof String) ofFacts += ((String) fact).length();
        all.add(facts);
      } else {
        all.add(((ColumnFacts) column).numberOfValues());
      }
      ofFacts += withBounds ? OF_ALL : OF_VALUES;
    }
    return all;
  }
}
