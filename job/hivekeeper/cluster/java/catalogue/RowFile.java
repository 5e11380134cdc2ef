package hivekeeper.catalogue;

import hivekeeper.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.filter2.compat.FilterCompat;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.filter2.predicate.Operators;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.ReadSupport;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;

/**
 * A Parquet file of flat rows, written or read by the driver itself.
 *
 * `columns` is {name: string, bigint or double}, in their order; any cell may be null. Rows are lists of cells.
 */
public class RowFile {
  /**
   * Of the dictionary of a column, which each of its values is looked for in, by a hash that everybody can compute: whoever names partitions so
   * that all have one hash has each compared with all.
   */
  private static final int MOST_DICTIONARY_BYTES = 1 << 14;

  private final Configuration conf;
  private MessageType schema;
  private ParquetWriter<Group> writer;
  private ParquetReader<Group> reader;
  private long rows = 0;

  public RowFile(Configuration conf) {
    this.conf = new Configuration(conf);
  }

  /** Fails if the file exists. */
  public void create(String path, String columns) throws IOException {
    schema = schemaOf(columns);
    ExampleParquetWriter.Builder builder = ExampleParquetWriter.builder(new Path(path)).withType(schema);
    builder.withConf(conf);
    builder.withCompressionCodec(CompressionCodecName.SNAPPY);
    builder.withDictionaryPageSize(MOST_DICTIONARY_BYTES);
    builder.withWriteMode(ParquetFileWriter.Mode.CREATE);
    writer = builder.build();
  }

  /** Adds the rows of another file; not those whose cells in the columns `keys` begin with one of the lists of `without`. */
  public void copy(String path, String keys, String without) throws IOException {
    List<Integer> places = new ArrayList<Integer>();
    for (String key : Json.readStrings(keys)) places.add(schema.getFieldIndex(key));
    Set<String> left = new HashSet<String>();
    for (Object cells : Json.readList(without)) left.add(textOf((List) cells));
    ParquetReader<Group> source = open(path, FilterCompat.NOOP);
    try {
      for (Group row = (Group) source.read(); row != null; row = (Group) source.read()) {
        List<Object> cells = cells(row);
        if (!matches(cells, places, left)) write(cells);
      }
    } finally {
      source.close();
    }
  }

  private static boolean matches(List<Object> cells, List<Integer> places, Set<String> left) {
    StringBuilder begin = new StringBuilder();
    for (Integer place : places) {
      add(cells.get(place.intValue()), begin);
      if (left.contains(begin.toString())) return true;
    }
    return false;
  }

  /** One text for each list of cells: where many have one hash, as names of partitions may, Java orders texts, but compares each list with all. */
  private static String textOf(List<Object> cells) {
    StringBuilder text = new StringBuilder();
    for (Object cell : cells) add(cell, text);
    return text.toString();
  }

  private static void add(Object cell, StringBuilder text) {
    if (cell != null) text.append(((String) cell).length()).append(':').append(cell);
    else text.append('-');
  }

  public void append(String some) throws IOException {
    for (Object cells : Json.readList(some)) write((List) cells);
  }

  private void write(List<Object> cells) throws IOException {
    Group row = new SimpleGroup(schema);
    for (int index = 0; index < cells.size(); index++) {
      Object value = cells.get(index);
      if (value == null) continue;
      PrimitiveTypeName type = schema.getType(index).asPrimitiveType().getPrimitiveTypeName();
      if (type == PrimitiveTypeName.INT64) row.add(index, ((Number) value).longValue());
      else if (type == PrimitiveTypeName.DOUBLE) row.add(index, ((Number) value).doubleValue());
      else row.add(index, (String) value);
    }
    writer.write(row);
    rows++;
  }

  /** Ends the file; returns how many rows it has. */
  public long close() throws IOException {
    writer.close();
    return rows;
  }

  /** Gives up a file that could not be ended; it may stay, cut off. */
  public void abandon() {
    try {
      if (writer != null) writer.close();
    } catch (IOException failed) {
      // What made us give up is the error to report.
    } catch (RuntimeException failed) {
      // As above; a writer that has failed once refuses to be closed.
    }
  }

  /** Begins to read some columns of a file, of the rows that have these texts in these columns. A column that it does not have is null. */
  public void read(String path, String columns, String only) throws IOException {
    schema = schemaOf(columns);
    FilterPredicate all = null;
    for (Map.Entry<String, Object> entry : Json.readMap(only).entrySet()) {
      Operators.BinaryColumn column = FilterApi.binaryColumn((String) entry.getKey());
      FilterPredicate one = FilterApi.eq(column, Binary.fromString((String) entry.getValue()));
      all = all == null ? one : FilterApi.and(all, one);
    }
    reader = open(path, all == null ? FilterCompat.NOOP : FilterCompat.get(all));
  }

  /** At most so many rows, or until they have so many characters; none at the end, where the file is closed. */
  public String next(int most, int mostCharacters) throws IOException {
    List<Object> found = new ArrayList<Object>();
    long characters = 0;
    while (found.size() < most && characters < mostCharacters) {
      Group row = (Group) reader.read();
      if (row == null) break;
      List<Object> cells = cells(row);
      for (Object cell : cells) if (cell instanceof String) characters += ((String) cell).length();
      found.add(cells);
    }
    if (found.isEmpty()) reader.close();
    return Json.writeAscii(found);
  }

  /** The library does not read columns that a file does not have. */
  private ParquetReader<Group> open(String text, FilterCompat.Filter filter) throws IOException {
    Path path = new Path(text);
    ParquetFileReader footer = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf));
    List<Type> present = new ArrayList<Type>();
    try {
      MessageType stored = footer.getFileMetaData().getSchema();
      for (Type field : schema.getFields()) if (stored.containsField(field.getName())) present.add(field);
    } finally {
      footer.close();
    }
    conf.set(ReadSupport.PARQUET_READ_SCHEMA, new MessageType(schema.getName(), present).toString());
    return ParquetReader.builder(new GroupReadSupport(), path).withConf(conf).withFilter(filter).build();
  }

  private List<Object> cells(Group row) {
    List<Object> found = new ArrayList<Object>();
    for (Type field : schema.getFields()) {
      boolean isThere = row.getType().containsField(field.getName());
      found.add(isThere ? cell(row, row.getType().getFieldIndex(field.getName())) : null);
    }
    return found;
  }

  private static Object cell(Group row, int index) {
    if (row.getFieldRepetitionCount(index) == 0) return null;
    PrimitiveTypeName type = row.getType().getType(index).asPrimitiveType().getPrimitiveTypeName();
    if (type == PrimitiveTypeName.INT64) return row.getLong(index, 0);
    if (type == PrimitiveTypeName.DOUBLE) return row.getDouble(index, 0);
    return row.getString(index, 0);
  }

  private static MessageType schemaOf(String columns) throws IOException {
    List<Type> fields = new ArrayList<Type>();
    for (Map.Entry<String, Object> column : Json.readMap(columns).entrySet()) {
      fields.add(field((String) column.getKey(), (String) column.getValue()));
    }
    return new MessageType("hivekeeper", fields);
  }

  private static Type field(String name, String type) {
    if (type.equals("bigint")) return new PrimitiveType(Type.Repetition.OPTIONAL, PrimitiveTypeName.INT64, name);
    if (type.equals("double")) return new PrimitiveType(Type.Repetition.OPTIONAL, PrimitiveTypeName.DOUBLE, name);
    return (Type) Types.optional(PrimitiveTypeName.BINARY).as(LogicalTypeAnnotation.stringType()).named(name);
  }
}
