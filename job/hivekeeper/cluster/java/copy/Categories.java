package hivekeeper.copy;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.flatbuf.MessageHeader;
import org.apache.arrow.flatbuf.Schema;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.Dictionary;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.values.ValuesWriter;
import org.apache.parquet.column.values.dictionary.DictionaryValuesWriter;
import org.apache.parquet.column.values.dictionary.IntList;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

/**
 * The columns that Arrow calls dictionaries: categories of pandas, factors of R. Their categories, also those that no row has, and the order
 * of these, by which pandas compares and sorts, are nowhere but in the dictionary pages. So a copy's dictionaries begin with the source's.
 */
class Categories {
  private static final String KEY = "ARROW:schema";
  private static final int PREFIX_BYTES = 8;

  private final Set<ColumnDescriptor> columns = new HashSet<ColumnDescriptor>();
  private final Map<ColumnDescriptor, Writer> writers = new HashMap<ColumnDescriptor, Writer>();
  private final Map<ColumnDescriptor, Dictionary> current = new HashMap<ColumnDescriptor, Dictionary>();

  Categories(MessageType schema, Map<String, String> keyValues) {
    String said = (String) keyValues.get(KEY);
    if (said == null) return;
    try {
      find(schema, Base64.getDecoder().decode(said));
    } catch (RuntimeException unreadable) {
      // No Arrow schema, so nobody finds categories in it.
      columns.clear();
    }
  }

  /** Arrow's fields are those of the file by their places. Dictionaries inside others are read as plain columns. */
  private void find(MessageType schema, byte[] encapsulated) {
    Message message = Message.getRootAsMessage(ByteBuffer.wrap(Arrays.copyOfRange(encapsulated, PREFIX_BYTES, encapsulated.length)));
    if (message.headerType() != MessageHeader.Schema) return;
    Schema arrow = (Schema) message.header(new Schema());
    if (arrow.fieldsLength() != schema.getFieldCount()) return;
    for (ColumnDescriptor each : schema.getColumns()) {
      ColumnDescriptor column = (ColumnDescriptor) each;
      boolean isText = column.getPrimitiveType().getPrimitiveTypeName() == PrimitiveTypeName.BINARY;
      if (column.getPath().length != 1 || !isText) continue;
      if (arrow.fields(schema.getFieldIndex(column.getPath()[0])).dictionary() != null) columns.add(column);
    }
  }

  boolean has(ColumnDescriptor column) {
    return columns.contains(column);
  }

  /** For the column's next row group. */
  ValuesWriter newWriter(ColumnDescriptor column, ParquetProperties properties) {
    Writer writer = new Writer(properties);
    writers.put(column, writer);
    begin(column, (Dictionary) current.get(column));
    return writer;
  }

  /** From now on the values come from these pages. */
  void beginWith(SourcePages pages) {
    for (ColumnDescriptor column : columns) begin((ColumnDescriptor) column, pages.dictionary((ColumnDescriptor) column));
  }

  private void begin(ColumnDescriptor column, Dictionary dictionary) {
    current.put(column, dictionary);
    if (dictionary != null) ((Writer) writers.get(column)).begin(dictionary);
  }

  private static class Writer extends DictionaryValuesWriter.PlainBinaryDictionaryValuesWriter {
    private static final Encoding ENCODING = Encoding.PLAIN_DICTIONARY;

    Writer(ParquetProperties properties) {
      super(properties.getDictionaryPageSizeThreshold(), ENCODING, ENCODING, properties.getAllocator());
    }

    void begin(Dictionary dictionary) {
      IntList values = encodedValues;
      encodedValues = new IntList();
      for (int i = 0; i <= dictionary.getMaxId() && !shouldFallBack(); i++) writeBytes(dictionary.decodeToBinary(i));
      encodedValues = values;
    }

    /** Also if few rows have many categories. */
    public boolean isCompressionSatisfying(long rawSize, long encodedSize) {
      return true;
    }
  }
}
