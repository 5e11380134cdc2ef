package hivekeeper.copy;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.arrow.flatbuf.Field;
import org.apache.arrow.flatbuf.Int;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.flatbuf.MessageHeader;
import org.apache.arrow.flatbuf.Schema;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.Dictionary;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.values.ValuesWriter;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

/**
 * The columns that Arrow calls dictionaries: categories of pandas, factors of R. Their categories, also those that no row has, and the order
 * of these, by which pandas compares and sorts, are nowhere but in the dictionary pages. So a copy's dictionaries begin with the source's.
 * Arrow reads no row group with more categories than the numbers of its schema's type, so there a row group ends; also where a dictionary
 * has no room for more, because the column would go on without one.
 */
class Categories {
  private static final String KEY = "ARROW:schema";
  private static final int PREFIX_BYTES = 8;
  private static final int MOST_LOOKS = 1 << 20;
  private static final int MOST_DEPTH = 1000;
  /** More are not looked at: numbers of 32 bits are enough for any dictionary. */
  private static final long MOST_COUNTED = 1L << 16;

  private final Set<ColumnDescriptor> columns = new HashSet<ColumnDescriptor>();
  private final Map<ColumnDescriptor, CopyDictionary> writers = new HashMap<ColumnDescriptor, CopyDictionary>();
  private final Map<ColumnDescriptor, Dictionary> current = new HashMap<ColumnDescriptor, Dictionary>();
  /** How many categories have a number. */
  private final Map<ColumnDescriptor, Long> most = new HashMap<ColumnDescriptor, Long>();
  private int looks;

  Categories(MessageType schema, Map<String, String> keyValues) {
    String said = (String) keyValues.get(KEY);
    if (said == null) return;
    try {
      find(schema, Base64.getDecoder().decode(said));
    } catch (RuntimeException unreadable) {
      // No Arrow schema, so nobody finds categories in it.
      columns.clear();
      most.clear();
    }
  }

  /** The leaves of Arrow's fields are the file's columns, by their places. */
  private void find(MessageType schema, byte[] encapsulated) {
    Message message = Message.getRootAsMessage(ByteBuffer.wrap(Arrays.copyOfRange(encapsulated, PREFIX_BYTES, encapsulated.length)));
    if (message.headerType() != MessageHeader.Schema) return;
    Schema arrow = (Schema) message.header(new Schema());
    List<Object> leaves = new ArrayList<Object>();
    for (int i = 0; i < arrow.fieldsLength(); i++) addLeaves(arrow.fields(i), leaves, schema.getColumns().size(), 0);
    if (leaves.size() != schema.getColumns().size()) return;
    for (int i = 0; i < leaves.size(); i++) {
      ColumnDescriptor column = (ColumnDescriptor) schema.getColumns().get(i);
      if (column.getPrimitiveType().getPrimitiveTypeName() != PrimitiveTypeName.BINARY || ((Long) leaves.get(i)).longValue() == 0) continue;
      columns.add(column);
      most.put(column, (Long) leaves.get(i));
    }
  }

  /** For each how many categories it may have, 0 if it is no dictionary. Fields of a hostile schema can be inside each other. */
  private void addLeaves(Field field, List<Object> leaves, int columns, int depth) {
    boolean isEndless = ++looks > MOST_LOOKS || depth > MOST_DEPTH;
    if (isEndless || leaves.size() > columns) throw new IllegalStateException("these are not the fields of the file");
    for (int i = 0; i < field.childrenLength(); i++) addLeaves(field.children(i), leaves, columns, depth + 1);
    if (field.childrenLength() == 0) leaves.add(field.dictionary() == null ? 0L : most(field.dictionary().indexType()));
  }

  private static long most(Int index) {
    return index == null ? Integer.MAX_VALUE : 1L << Math.min(31, Math.max(0, index.bitWidth() - (index.isSigned() ? 1 : 0)));
  }

  /**
   * Whether there is room for the categories of these pages beside those of the row group, and all have numbers of the type that Arrow's
   * schema says.
   */
  boolean fit(SourcePages pages) {
    for (ColumnDescriptor each : columns) {
      ColumnDescriptor column = (ColumnDescriptor) each;
      Dictionary more = pages.dictionary(column);
      CopyDictionary writer = (CopyDictionary) writers.get(column);
      long limit = ((Long) most.get(column)).longValue();
      if (more != null && !writer.hasRoomFor(more, limit)) return false;
      // Arrow writes plain values where an array's dictionary is another one: how many are new is known only when they were read.
      if (limit <= MOST_COUNTED && writer.getDictionarySize() > 0 && !pages.areInDictionary(column)) return false;
    }
    return true;
  }

  /** The next row group begins with no categories but those of its own pages. */
  void forget() {
    current.clear();
  }

  boolean has(ColumnDescriptor column) {
    return columns.contains(column);
  }

  /** For the column's next row group. */
  ValuesWriter newWriter(ColumnDescriptor column, ParquetProperties properties) {
    // Also if few rows have many categories.
    CopyDictionary writer = new CopyDictionary(column, properties, true);
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
    if (dictionary == null) return;
    CopyDictionary writer = (CopyDictionary) writers.get(column);
    for (int i = 0; i <= dictionary.getMaxId() && !writer.shouldFallBack(); i++) writer.add(dictionary.decodeToBinary(i));
    if (writer.shouldFallBack()) {
      throw new IllegalStateException("the categories of the column " + String.join(".", column.getPath()) + " are larger than a dictionary");
    }
  }
}
