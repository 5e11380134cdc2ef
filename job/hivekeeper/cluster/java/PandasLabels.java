package hivekeeper;

import java.io.IOException;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The labels of rows that pandas keeps in a footer instead of in a column: `"index_columns": [{"kind": "range", "name": null, "start": 0,
 * "stop": 12, "step": 1}]` in the value of `pandas`, which Arrow repeats in `ARROW:schema`.
 *
 * Labels that only count a file's rows from 0 are those that readers give to rows without labels. `[]` says so too, and is true of any
 * number of rows (pandas, "Storing pandas DataFrame objects in Apache Parquet format"; pyarrow and fastparquet read it so).
 */
class PandasLabels {
  private static final String NAME = "\"index_columns\"";
  // One char for each byte.
  private static final Charset BYTES = Charset.forName("ISO-8859-1");
  // Short, because Jackson before 2.15 takes time quadratic in the digits of a number.
  private static final Pattern INDEX = Pattern.compile(NAME + "\\s*:\\s*(\\[\\s*(\\{[^{}\\[\\]]{0,1000}\\})\\s*\\])");
  private static final Pattern RANGE = Pattern.compile("\"kind\"\\s*:\\s*\"range\"");

  private PandasLabels() {}

  /** Whether a footer's key-value metadata holds labels that are true of its own rows only. */
  static boolean areOwn(byte[] keyValues) {
    return has(keyValues) && RANGE.matcher(valueOf(keyValues, "pandas")).find();
  }

  /**
   * The key-value metadata with `[]` and blanks instead of labels that only count; all else keeps its bytes and its place.
   *
   * Texts are found by their places or by NAME: searching for one of megabytes may take time quadratic in its length.
   */
  static byte[] withoutCount(byte[] keyValues) {
    if (!has(keyValues)) return keyValues;
    String pandas = valueOf(keyValues, "pandas");
    String bare = withoutCount(pandas);
    List<ThriftStruct> schemas = pairs(keyValues, "ARROW:schema");
    String all = new String(keyValues, BYTES);
    if (bare.equals(pandas) || count(all, NAME) != 1 || schemas.size() > 1) return keyValues;
    all = replaceAt(all, all.indexOf(NAME) - pandas.indexOf(NAME), bare);
    String arrow = schemas.isEmpty() ? "" : text((ThriftStruct) schemas.get(0), 2);
    if (arrow.isEmpty()) return all.getBytes(BYTES);
    String changed = withBare(arrow, pandas, bare);
    int at = ((ThriftStruct) schemas.get(0)).endOf(2) - arrow.length();
    // Both copies must say the same, or neither is touched.
    return changed == null ? keyValues : replaceAt(all, at, changed).getBytes(BYTES);
  }

  /** Arrow's schema, in base64, with the bare labels if it has any; null if these are not pandas' own, or its length would change. */
  private static String withBare(String arrow, String pandas, String bare) {
    String schema = decoded(arrow);
    if (!schema.contains(NAME)) return arrow;
    int at = schema.indexOf(NAME) - pandas.indexOf(NAME);
    if (count(schema, NAME) != 1 || !schema.startsWith(pandas, at)) return null;
    String changed = new String(Base64.getEncoder().encode(replaceAt(schema, at, bare).getBytes(BYTES)), BYTES);
    return changed.length() == arrow.length() ? changed : null;
  }

  private static String replaceAt(String in, int at, String part) {
    return in.substring(0, at) + part + in.substring(at + part.length());
  }

  private static boolean has(byte[] keyValues) {
    return keyValues != null && new String(keyValues, BYTES).contains(NAME);
  }

  private static String withoutCount(String pandas) {
    Matcher index = INDEX.matcher(pandas);
    if (count(pandas, NAME) != 1 || !index.find() || !isCount(index.group(2))) return pandas;
    char[] blanks = new char[index.end(1) - index.start(1) - 2];
    Arrays.fill(blanks, ' ');
    return pandas.substring(0, index.start(1)) + "[]" + new String(blanks) + pandas.substring(index.end(1));
  }

  private static boolean isCount(String range) {
    try {
      Map<String, Object> said = Json.readMap(range);
      boolean isPlain = said.size() == 5 && "range".equals(said.get("kind")) && said.containsKey("name") && said.get("name") == null;
      return isPlain && isNumber(said.get("start"), 0) && isNumber(said.get("step"), 1) && said.get("stop") instanceof Number;
    } catch (IOException broken) {
      return false;
    }
  }

  private static boolean isNumber(Object said, int wanted) {
    return said instanceof Integer && ((Integer) said).intValue() == wanted;
  }

  /** Empty if the key is absent. */
  private static String valueOf(byte[] keyValues, String key) {
    List<ThriftStruct> found = pairs(keyValues, key);
    return found.isEmpty() ? "" : text((ThriftStruct) found.get(0), 2);
  }

  private static List<ThriftStruct> pairs(byte[] keyValues, String key) {
    List<ThriftStruct> found = new ArrayList<ThriftStruct>();
    for (ThriftStruct pair : ThriftStruct.list(keyValues)) {
      if (key.equals(text((ThriftStruct) pair, 1))) found.add((ThriftStruct) pair);
    }
    return found;
  }

  private static String text(ThriftStruct pair, int id) {
    return pair.type(id) == ThriftStruct.BINARY ? new String(pair.binary(id), BYTES) : "";
  }

  /** Empty if it is no base64. */
  private static String decoded(String base64) {
    try {
      return new String(Base64.getDecoder().decode(base64.getBytes(BYTES)), BYTES);
    } catch (IllegalArgumentException broken) {
      return "";
    }
  }

  private static int count(String in, String part) {
    int found = 0;
    for (int at = in.indexOf(part); at >= 0; at = in.indexOf(part, at + 1)) found++;
    return found;
  }
}
