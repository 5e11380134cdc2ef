package hivekeeper;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.ColumnOrder;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.LogicalType;
import org.apache.parquet.format.RowGroup;
import org.apache.parquet.format.SchemaElement;
import org.apache.parquet.format.TypeDefinedOrder;
import org.apache.parquet.format.Util;

/**
 * A footer that this Parquet library understands: annotations and column orders of a later format, at which it throws, are left out,
 * together with the bounds that they give an order to; and the bounds of columns that have two orders.
 */
public class DecodedFooter {
  private static final int FIELD_TYPE = 1;
  private static final int FIELD_REPETITION = 3;
  private static final int FIELD_CONVERTED = 6;
  private static final int FIELD_LOGICAL = 10;

  public final RawFooter raw;
  public final FileMetaData metadata;
  /** Position in the schema → the name of an annotation that was left out: `UNKNOWN_15` for the member 15 of `LogicalType`. */
  public final Map<Integer, String> unknownTypes = new HashMap<Integer, String>();
  /** The paths of the columns whose values have no known order. */
  public final Set<List<String>> unordered = new HashSet<List<String>>();
  /** Whether anything was left out. */
  public final boolean changed;
  private final List<Integer> positions = new ArrayList<Integer>();

  public DecodedFooter(byte[] footer) throws IOException {
    raw = new RawFooter(footer);
    metadata = Util.readFileMetaData(new ByteArrayInputStream(footer));
    WriterName.requireQuick(metadata.getCreated_by());
    List<ThriftStruct> elements = ThriftStruct.list(raw.fields.body(RawFooter.SCHEMA));
    for (int i = 0; i < elements.size(); i++) leaveOutUnknownType(i, (ThriftStruct) elements.get(i));
    requireOneReading();
    List<List<String>> columns = columns();
    ColumnNames.take(columns);
    for (int i = 0; i < columns.size(); i++) {
      if (leaveOutUnknownOrder(i)) unordered.add((List) columns.get(i));
    }
    changed = !unknownTypes.isEmpty() || !unordered.isEmpty();
    dropBounds(metadata, unordered);
  }

  /** The understood part as bytes. */
  public byte[] bytes() throws IOException {
    return bytes(metadata);
  }

  public static byte[] bytes(FileMetaData metadata) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Util.writeFileMetaData(metadata, out);
    return out.toByteArray();
  }

  /** Leave out the lowest and highest values of these columns; null counts stay. */
  public static void dropBounds(FileMetaData metadata, Set<List<String>> columns) {
    if (columns.isEmpty()) return;
    for (RowGroup group : metadata.getRow_groups()) {
      for (ColumnChunk chunk : ((RowGroup) group).getColumns()) {
        if (((ColumnChunk) chunk).isSetMeta_data() && columns.contains(chunk.getMeta_data().getPath_in_schema())) dropBounds(chunk);
      }
    }
  }

  public static void dropBounds(ColumnChunk chunk) {
    chunk.unsetColumn_index_offset();
    chunk.unsetColumn_index_length();
    if (!chunk.getMeta_data().isSetStatistics()) return;
    org.apache.parquet.format.Statistics statistics = chunk.getMeta_data().getStatistics();
    statistics.unsetMin();
    statistics.unsetMax();
    statistics.unsetMin_value();
    statistics.unsetMax_value();
  }

  private void leaveOutUnknownType(int position, ThriftStruct said) {
    SchemaElement element = (SchemaElement) metadata.getSchema().get(position);
    // Thrift treats an enum's unknown number as absent; a column without a type would become a group.
    if (said.has(FIELD_TYPE) != element.isSetType()) throw new IllegalStateException("a column has an unknown physical type");
    if (said.has(FIELD_REPETITION) != element.isSetRepetition_type()) throw new IllegalStateException("a column has an unknown repetition");
    if (said.has(FIELD_CONVERTED) && !element.isSetConverted_type()) {
      unknownTypes.put(position, "UNKNOWN_CONVERTED_" + Math.abs(said.integer(FIELD_CONVERTED)));
    }
    if (said.has(FIELD_LOGICAL) && !isKnown(element.getLogicalType())) {
      element.unsetLogicalType();
      int member = 0;
      for (Integer id : new ThriftStruct(said.body(FIELD_LOGICAL)).ids()) member = id.intValue();
      unknownTypes.put(position, "UNKNOWN_" + Math.abs(member));
    }
  }

  /**
   * What is kept as bytes must be what libraries read. They take the elements of a list for what the format says, whatever kind the list
   * names, so they may find the fields behind it in other places than those who go by that kind.
   */
  private void requireOneReading() throws IOException {
    FileMetaData kept = Util.readFileMetaData(new ByteArrayInputStream(raw.withoutRowGroups()));
    for (SchemaElement element : kept.getSchema()) {
      if (!isKnown(((SchemaElement) element).getLogicalType())) ((SchemaElement) element).unsetLogicalType();
    }
    boolean isRead = kept.getSchema().equals(metadata.getSchema()) && Objects.equals(kept.getCreated_by(), metadata.getCreated_by())
        && Objects.equals(kept.getKey_value_metadata(), metadata.getKey_value_metadata());
    if (!isRead) throw new IllegalStateException("its footer is malformed: a list names another kind of elements than it has");
  }

  private static boolean isKnown(LogicalType type) {
    if (type == null || type.getSetField() == null) return false;
    if (type.isSetTIME()) return isKnown(type.getTIME().getUnit());
    return !type.isSetTIMESTAMP() || isKnown(type.getTIMESTAMP().getUnit());
  }

  private static boolean isKnown(org.apache.parquet.format.TimeUnit unit) {
    return unit != null && unit.getSetField() != null;
  }

  /** Whether the values of this column have no known order. */
  private boolean leaveOutUnknownOrder(int column) {
    int position = ((Integer) positions.get(column)).intValue();
    boolean unknown = unknownTypes.containsKey(position) || hasTwoOrders((SchemaElement) metadata.getSchema().get(position));
    if (!metadata.isSetColumn_orders() || metadata.getColumn_orders().size() <= column) return unknown;
    if (((ColumnOrder) metadata.getColumn_orders().get(column)).getSetField() != null) return unknown;
    metadata.getColumn_orders().set(column, ColumnOrder.TYPE_ORDER(new TypeDefinedOrder()));
    return true;
  }

  /**
   * Whether the older and the newer annotation of a column order its values differently: some libraries believe the one, others the other.
   * Without the older one, a library that knows no other orders the physical values.
   */
  private static boolean hasTwoOrders(SchemaElement element) {
    if (!element.isSetLogicalType()) return false;
    LogicalType type = element.getLogicalType();
    boolean isUnsigned = type.isSetINTEGER() && !type.getINTEGER().isIsSigned();
    if (!element.isSetConverted_type()) return isUnsigned || type.isSetDECIMAL();
    String older = element.getConverted_type().name();
    return older.startsWith("UINT_") != isUnsigned || older.equals("DECIMAL") != type.isSetDECIMAL() || older.equals("INTERVAL");
  }

  /** The paths of the leaves, in the order of the schema; their positions in it go into `positions`. */
  private List<List<String>> columns() {
    List<List<String>> found = new ArrayList<List<String>>();
    int last = addColumns(1, ((SchemaElement) metadata.getSchema().get(0)).getNum_children(), new ArrayList<String>(), found);
    if (last != metadata.getSchema().size()) {
      throw new IllegalStateException("its schema has " + metadata.getSchema().size() + " elements instead of " + last);
    }
    return found;
  }

  private int addColumns(int first, int count, List<String> above, List<List<String>> found) {
    int at = first;
    Footer.requireShallow(above.size());
    for (int i = 0; i < count; i++) {
      if (at >= metadata.getSchema().size()) throw new IllegalStateException("its schema ends too early");
      SchemaElement element = (SchemaElement) metadata.getSchema().get(at);
      List<String> path = new ArrayList<String>(above);
      path.add(element.getName());
      if (element.isSetType()) {
        found.add(path);
        positions.add(at);
        at++;
      } else {
        at = addColumns(at + 1, element.getNum_children(), path, found);
      }
    }
    return at;
  }
}
