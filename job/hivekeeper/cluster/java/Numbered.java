package hivekeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Different values, each with a number from 0 on. They are found by their texts: where many keys of a map have one hash, which whoever
 * names a table's columns or properties can bring about, Java orders texts, but compares each map or list with all others.
 */
class Numbered {
  final List<Object> all = new ArrayList<Object>();
  /** Of the texts of all. */
  long characters;
  private final Map<String, Integer> numbers = new HashMap<String, Integer>();

  int of(Object value) throws IOException {
    String text = Json.write(value);
    Integer known = (Integer) numbers.get(text);
    if (known != null) return known.intValue();
    numbers.put(text, all.size());
    all.add(value);
    characters += text.length();
    return all.size() - 1;
  }
}
