package hivekeeper;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The JSON strings exchanged between Python and Java. Public fields are written under their names, `mtimeMs` as `mtime_ms`. */
public class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  static {
    MAPPER.setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE);
  }

  private Json() {}

  public static String write(Object value) throws IOException {
    return MAPPER.writeValueAsString(value);
  }

  /** With escapes for all other characters: a single one of a rare alphabet would make all of a long text four times as large in Python. */
  public static String writeAscii(Object value) throws IOException {
    return MAPPER.writer().with(JsonGenerator.Feature.ESCAPE_NON_ASCII).writeValueAsString(value);
  }

  public static List<String> readStrings(String text) throws IOException {
    return Arrays.asList((String[]) MAPPER.readValue(text, String[].class));
  }

  public static List<Object> readList(String text) throws IOException {
    return (List) MAPPER.readValue(text, List.class);
  }

  public static Map<String, Object> readMap(String text) throws IOException {
    return (Map) MAPPER.readValue(text, Map.class);
  }

  /** An object of objects, each of which becomes an instance of `type`, by its public fields. */
  public static Map<String, Object> readMapOf(Class<?> type, String text) throws IOException {
    return (Map) MAPPER.readValue(text, MAPPER.getTypeFactory().constructMapType(LinkedHashMap.class, String.class, type));
  }

  static JsonParser tokens(String text) throws IOException {
    return MAPPER.getFactory().createParser(text);
  }

  /** Whether it has no more than so many objects and lists inside one another. */
  static boolean isShallow(String text, int levels) throws IOException {
    JsonParser parser = tokens(text);
    try {
      int level = 0;
      for (JsonToken token = parser.nextToken(); token != null && level <= levels; token = parser.nextToken()) {
        if (token.isStructStart()) level++;
        if (token.isStructEnd()) level--;
      }
      return level <= levels;
    } finally {
      parser.close();
    }
  }

  /** The content of the text, as Jackson's plain lists, maps and values. */
  public static Object readAny(String text) throws IOException {
    return MAPPER.readValue(text, Object.class);
  }
}
