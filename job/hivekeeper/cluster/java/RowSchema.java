package hivekeeper;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.TypeDescription;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.schema.MessageType;

/**
 * The footers of which Spark may make a schema of rows.
 *
 * A footer may hold Spark's own schema, and in it user-defined types. Spark calls the constructor of the class that such a type names, and
 * PySpark unpickles what it brings along (SPARK-56463): both run in the driver whatever the writer of the file wished. Spark also takes the
 * value of a column that a file lacks for SQL, and evaluates it for each file that is read with the schema, in driver and executors. And it
 * hands its tasks the schema, as JSON and for ORC as names of columns, in a Hadoop configuration, which replaces each `${…}` by a value of its
 * own, by one of the JVM or the environment, or by what stands there for a variable that is not set. A variable reaches over many members, so
 * the tasks may find any other schema than the one that was looked at here, and new files may have the value.
 */
public class RowSchema {
  /** What Spark writes for `ADD COLUMN … DEFAULT` and plain values (`Literal.sql`): no function but CAST, and nothing nested. */
  private static final String NUMBER = "-?[0-9]{1,38}(\\.[0-9]{1,38})?(E-?[0-9]{1,3})?(BD|[LSYD])?";
  private static final String TEXT = "((DATE|TIMESTAMP|TIMESTAMP_NTZ) |X)?'[^'\\\\]{0,256}'";
  private static final String LITERAL = "(NULL|true|false|" + NUMBER + "|" + TEXT + ")";
  private static final String TYPE = "[A-Z_]{1,20}(\\([0-9]{1,2},[0-9]{1,2}\\))?";
  private static final Pattern PLAIN = Pattern.compile(LITERAL + "|CAST\\(" + LITERAL + " AS " + TYPE + "\\)");
  private static final String MISSING_VALUE = "EXISTS_DEFAULT";
  /** How a variable begins: inside one text of JSON, or nowhere, because `$` is in no escape, and behind the last character of a text is a quote. */
  private static final String VARIABLE = "${";
  /** Of objects and lists inside one another. Each struct is three; Python reads no more than about a thousand. */
  private static final int MOST_LEVELS = 3 * Footer.MOST_LEVELS;
  /** Of the JSON: in Python it takes ten times as much and more. A hundred thousand columns, each with a comment, have less. */
  private static final int MOST_CHARACTERS = 1 << 24;

  private final Configuration conf;

  public RowSchema(Configuration conf) {
    this.conf = conf;
  }

  /** The footer of a `ListedFile` of Parquet, read once: Spark must not read it again after the check. */
  public org.apache.parquet.hadoop.Footer footer(String asked) throws Exception {
    ListedFile file = ListedFile.of(asked);
    DecodedFooter decoded = new DecodedFooter(ParquetTail.footer(file.system(conf), file.place(), file.begin, file.length));
    ParquetMetadata metadata = new ParquetMetadataConverter().fromParquetMetadata(decoded.metadata);
    String said = (String) metadata.getFileMetaData().getKeyValueMetaData().get(ParquetFooters.ROW_METADATA);
    if (said != null) requireFit(said, metadata.getFileMetaData().getSchema());
    return new org.apache.parquet.hadoop.Footer(file.place(), metadata);
  }

  private static void requireFit(String said, MessageType schema) throws IOException {
    Object tree = ParquetFooters.rowMetadata(said);
    requireBuiltIn(said);
    if (!ParquetFooters.namesOtherColumns(tree, schema)) return;
    throw new IllegalStateException("its row metadata names other columns than the file has");
  }

  /** The type of the rows of a `ListedFile` of ORC. */
  public TypeDescription orcType(String asked) throws Exception {
    OrcInput input = OrcClaims.open(conf, ListedFile.of(asked), false);
    try {
      TypeDescription type = input.reader.getSchema();
      if (type.getChildren().isEmpty()) throw new IllegalStateException("its rows have no columns");
      return type;
    } finally {
      input.close();
    }
  }

  /** The schema, as JSON, unless it names code, Spark's tasks may find another one in its place, or it is deeper or longer than Python reads. */
  public static String requireBuiltIn(String json) throws IOException {
    if (json.length() > MOST_CHARACTERS) {
      throw new IllegalStateException("its schema has " + json.length() + " characters; more than " + MOST_CHARACTERS + " are not read as rows");
    }
    if (!Json.isShallow(json, MOST_LEVELS)) throw new IllegalStateException("its schema is nested deeper than " + MOST_LEVELS + " levels");
    String unfit = unfitIn(json);
    if (unfit.equals("udt")) throw new IllegalStateException("its schema names a user-defined type, for which Spark would run code");
    if (unfit.equals("sql")) throw new IllegalStateException("its schema has an expression for a missing value, which Spark would evaluate");
    if (unfit.equals("variable")) throw new IllegalStateException("its schema has ${, where Hadoop's configuration would put in other text");
    return json;
  }

  /**
   * What Spark must not see of a schema: `udt` or `sql`, the code that it names, `variable`, or nothing. By the tokens, because of two members of
   * one name a reader may take either.
   */
  static String unfitIn(String json) throws IOException {
    String found = "";
    String name = "";
    JsonParser parser = Json.tokens(json);
    try {
      for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
        String text = parser.getText();
        boolean isText = token == JsonToken.VALUE_STRING;
        if (name.equals("type") && isText && text.equals("udt")) return "udt";
        if (name.equals(MISSING_VALUE) && !(isText && PLAIN.matcher(text).matches())) found = "sql";
        if (found.isEmpty() && text.contains(VARIABLE)) found = "variable";
        name = token == JsonToken.FIELD_NAME ? text : "";
      }
      return found;
    } finally {
      parser.close();
    }
  }
}
