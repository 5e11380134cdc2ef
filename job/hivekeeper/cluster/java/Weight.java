package hivekeeper;

import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.Order;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.SkewedInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;

/**
 * About how many bytes definitions take on their way to Python, where one character of an alphabet may make a whole text wider. Also what is
 * not told counts: all of a table stays in memory until the others of its database have been read.
 */
class Weight {
  // What a text, a property or a column takes besides its characters; as many as sound definitions have are not counted.
  private static final long EACH = 100L;
  private static final int USUAL = 1000;
  // Of a property, at least: millions of partitions may have a few of some letters each, and each of these becomes objects.
  private static final long OF_PROPERTY = 24L;

  private Weight() {}

  private static long ofMany(int count) {
    return EACH * Math.max(0, count - USUAL);
  }

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
    if (properties == null) return 0;
    long sum = ofMany(properties.size());
    for (Map.Entry<String, String> entry : properties.entrySet()) {
      sum += Math.max(OF_PROPERTY, of((String) entry.getKey()) + of((String) entry.getValue()));
    }
    return sum;
  }

  static long of(List<String> texts) {
    if (texts == null) return 0;
    long sum = ofMany(texts.size());
    for (String text : texts) sum += of((String) text);
    return sum;
  }

  static long of(Table table) {
    return of(table.getParameters()) + of(table.getSd()) + ofColumns(table.getPartitionKeys()) + of(table.getOwner())
        + of(table.getViewOriginalText()) + of(table.getViewExpandedText());
  }

  static long of(StorageDescriptor sd) {
    if (sd == null) return 0;
    long ofOrder = sd.getSortCols() == null ? 0 : ofMany(sd.getSortCols().size());
    if (sd.getSortCols() != null) for (Order column : sd.getSortCols()) ofOrder += of(column.getCol());
    return ofFormat(sd) + of(sd.getLocation()) + ofColumns(sd.getCols()) + of(sd.getParameters()) + of(sd.getBucketCols()) + ofOrder
        + of(sd.getSkewedInfo());
  }

  /** Of what partitions share. */
  static long ofFormat(StorageDescriptor sd) {
    SerDeInfo serde = sd.getSerdeInfo();
    long ofSerde = serde == null ? 0 : of(serde.getSerializationLib()) + of(serde.getParameters());
    return of(sd.getInputFormat()) + of(sd.getOutputFormat()) + ofSerde;
  }

  private static long of(SkewedInfo skew) {
    if (skew == null) return 0;
    long sum = of(skew.getSkewedColNames());
    if (skew.getSkewedColValues() != null) sum += ofMany(skew.getSkewedColValues().size());
    if (skew.getSkewedColValues() != null) for (List<String> values : skew.getSkewedColValues()) sum += of((List) values);
    if (skew.getSkewedColValueLocationMaps() == null) return sum;
    sum += ofMany(skew.getSkewedColValueLocationMaps().size());
    for (Map.Entry<List<String>, String> entry : skew.getSkewedColValueLocationMaps().entrySet()) {
      sum += of((List) entry.getKey()) + of((String) entry.getValue());
    }
    return sum;
  }

  private static long ofColumns(List<FieldSchema> columns) {
    if (columns == null) return 0;
    long sum = ofMany(columns.size());
    for (FieldSchema column : columns) sum += of(column.getName()) + of(column.getType()) + of(column.getComment());
    return sum;
  }
}
