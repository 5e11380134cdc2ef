package hivekeeper;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.TypeDescription;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;

/**
 * The footers of which Spark may make a schema of rows.
 *
 * A footer may hold Spark's own schema, and in it user-defined types. Spark calls the constructor of the class that such a type names, and
 * PySpark unpickles what it brings along (SPARK-56463): both run in the driver whatever the writer of the file wished.
 */
public class RowSchema {
  private final Configuration conf;

  public RowSchema(Configuration conf) {
    this.conf = conf;
  }

  /** The footer of a `ListedFile` of Parquet, read once: Spark must not read it again after the check. */
  public org.apache.parquet.hadoop.Footer footer(String asked) throws Exception {
    ListedFile file = ListedFile.of(asked);
    DecodedFooter decoded = new DecodedFooter(ParquetTail.footer(file.system(conf), file.place(), file.begin, file.length));
    ParquetMetadata metadata = new ParquetMetadataConverter().fromParquetMetadata(decoded.metadata);
    Object said = metadata.getFileMetaData().getKeyValueMetaData().get(ParquetFooters.ROW_METADATA);
    if (said != null) requireBuiltIn((String) said);
    return new org.apache.parquet.hadoop.Footer(file.place(), metadata);
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

  /** The schema, as JSON, unless it names a user-defined type. */
  public static String requireBuiltIn(String json) throws IOException {
    if (namesUserType(json)) throw new IllegalStateException("its schema names a user-defined type, for which Spark would run code");
    return json;
  }

  /** By the tokens, because of two members of one name a reader may take either. */
  static boolean namesUserType(String json) throws IOException {
    JsonParser parser = Json.tokens(json);
    try {
      for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
        boolean isType = token == JsonToken.VALUE_STRING && "type".equals(parser.getCurrentName());
        if (isType && "udt".equals(parser.getText())) return true;
      }
      return false;
    } finally {
      parser.close();
    }
  }
}
