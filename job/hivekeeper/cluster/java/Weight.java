package hivekeeper;

import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;

/** About how many bytes definitions take on their way to Python, where one character of an alphabet may make a whole text wider. */
class Weight {
  private Weight() {}

  static long of(String text) {
    if (text == null) return 0;
    long written = 0;
    int width = 1;
    for (int at = 0; at < text.length(); at++) {
      char one = text.charAt(at);
      if (one == '"' || one == '\\') written += 4;
      else written += one < ' ' || one > '~' ? 7 : 1;
      if (Character.isSurrogate(one)) width = 4;
      else if (one > 0xFF) width = Math.max(width, 2);
    }
    return Math.max(written, (long) width * text.length());
  }

  static long of(Map<String, String> properties) {
    long sum = 0;
    if (properties == null) return sum;
    for (Map.Entry<String, String> entry : properties.entrySet()) sum += of((String) entry.getKey()) + of((String) entry.getValue());
    return sum;
  }

  /** Of everything but the columns. */
  static long of(StorageDescriptor sd) {
    if (sd == null) return 0;
    SerDeInfo serde = sd.getSerdeInfo();
    long ofSerde = serde == null ? 0 : of(serde.getSerializationLib()) + of(serde.getParameters());
    return of(sd.getInputFormat()) + of(sd.getOutputFormat()) + ofSerde;
  }

  static long of(Table table) {
    StorageDescriptor sd = table.getSd();
    long ofPlace = sd == null ? 0 : of(sd.getLocation()) + ofColumns(sd.getCols());
    return of(table.getParameters()) + of(sd) + ofPlace + ofColumns(table.getPartitionKeys()) + of(table.getOwner())
        + of(table.getViewExpandedText());
  }

  static long ofColumns(List<FieldSchema> columns) {
    long sum = 0;
    if (columns == null) return sum;
    for (FieldSchema column : columns) sum += of(column.getName()) + of(column.getType());
    return sum;
  }
}
