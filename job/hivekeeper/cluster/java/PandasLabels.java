package hivekeeper;

import java.io.IOException;
import java.nio.charset.Charset;
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
  private static final Pattern INDEX = Pattern.compile(NAME + "\\s*:\\s*(\\[\\s*(\\{[^{}\\[\\]]*\\})\\s*\\])");
  private static final Pattern RANGE = Pattern.compile("\"kind\"\\s*:\\s*\"range\"");

  private PandasLabels() {}

  /** Whether a footer's key-value metadata holds labels that are true of its own rows only. */
  static boolean areOwn(byte[] keyValues) {
    return has(keyValues) && RANGE.matcher(valueOf(keyValues, "pandas")).find();
  }

  /** The key-value metadata with `[]` and blanks instead of labels that only count; all else keeps its bytes and its place. */
  static byte[] withoutCount(byte[] keyValues) {
    if (!has(keyValues)) return keyValues;
    String pandas = valueOf(keyValues, "pandas");
    String bare = withoutCount(pandas);
    String all = new String(keyValues, BYTES);
    String arrow = valueOf(keyValues, "ARROW:schema");
    String schema = decoded(arrow);
    // Both copies must say the same, or neither is touched.
    boolean isClear = count(all, pandas) == 1 && count(all, arrow) <= 1 && count(schema, pandas) == count(schema, NAME) && count(schema, NAME) <= 1;
    if (bare.equals(pandas) || !isClear) return keyValues;
    if (schema.contains(pandas)) {
      byte[] changed = schema.replace(pandas, bare).getBytes(BYTES);
      all = all.replace(arrow, new String(Base64.getEncoder().encode(changed), BYTES));
    }
    return all.replace(pandas, bare).getBytes(BYTES);
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
    List<ThriftStruct> pairs = ThriftStruct.list(keyValues);
    for (int i = 0; i < pairs.size(); i++) {
      ThriftStruct pair = (ThriftStruct) pairs.get(i);
      if (key.equals(text(pair, 1))) return text(pair, 2);
    }
    return "";
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
    for (int at = in.indexOf(part); at >= 0 && !part.isEmpty(); at = in.indexOf(part, at + 1)) found++;
    return found;
  }
}
