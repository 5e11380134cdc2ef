package foreign;

import java.sql.Timestamp;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.UnionColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcFile;
import org.apache.orc.TypeDescription;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageTypeParser;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;

/** Rows from Python, written by parquet-mr and ORC themselves. Floats and doubles come as their bits. */
public class ForeignRows {
  public static Configuration configuration(Map options) {
    Configuration conf = new Configuration();
    // No .crc files beside the data files.
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
    Iterator keys = options.keySet().iterator();
    while (keys.hasNext()) {
      String key = (String) keys.next();
      conf.set(key, String.valueOf(options.get(key)));
    }
    return conf;
  }

  // ---- Parquet: a group is a map from the field's name to the list of its values

  public static ExampleParquetWriter.Builder parquet(String path, String schema, Map keyValues, Map options) {
    return (ExampleParquetWriter.Builder)
        ExampleParquetWriter.builder(new Path(path))
            .withType(MessageTypeParser.parseMessageType(schema))
            .withExtraMetaData(keyValues)
            .withConf(configuration(options));
  }

  public static void write(ExampleParquetWriter.Builder builder, String schema, List rows) throws Exception {
    GroupType type = MessageTypeParser.parseMessageType(schema);
    ParquetWriter writer = builder.build();
    for (int i = 0; i < rows.size(); i++) {
      SimpleGroup group = new SimpleGroup(type);
      fill(group, (Map) rows.get(i));
      writer.write(group);
    }
    writer.close();
  }

  private static void fill(Group group, Map values) {
    GroupType type = group.getType();
    for (int field = 0; field < type.getFieldCount(); field++) {
      List found = (List) values.get(type.getFieldName(field));
      for (int i = 0; found != null && i < found.size(); i++) {
        add(group, field, type.getType(field), found.get(i));
      }
    }
  }

  private static void add(Group group, int field, Type type, Object value) {
    if (!type.isPrimitive()) {
      fill(group.addGroup(field), (Map) value);
      return;
    }
    PrimitiveType.PrimitiveTypeName name = type.asPrimitiveType().getPrimitiveTypeName();
    if (name == PrimitiveType.PrimitiveTypeName.BOOLEAN) {
      group.add(field, ((Boolean) value).booleanValue());
    } else if (name == PrimitiveType.PrimitiveTypeName.INT32) {
      group.add(field, ((Number) value).intValue());
    } else if (name == PrimitiveType.PrimitiveTypeName.INT64) {
      group.add(field, ((Number) value).longValue());
    } else if (name == PrimitiveType.PrimitiveTypeName.FLOAT) {
      group.add(field, Float.intBitsToFloat(((Number) value).intValue()));
    } else if (name == PrimitiveType.PrimitiveTypeName.DOUBLE) {
      group.add(field, Double.longBitsToDouble(((Number) value).longValue()));
    } else {
      group.add(field, Binary.fromConstantByteArray((byte[]) value));
    }
  }

  // ---- ORC: a struct or a union's value is a list, a map a list of pairs; a timestamp is [seconds, nanoseconds]

  public static OrcFile.WriterOptions orc(TypeDescription type, String codec, Map options) {
    return OrcFile.writerOptions(configuration(options)).setSchema(type).compress(CompressionKind.valueOf(codec));
  }

  public static void writeOrc(String path, OrcFile.WriterOptions options, Map userMetadata, String zone, List rows) throws Exception {
    TimeZone before = TimeZone.getDefault();
    TimeZone.setDefault(TimeZone.getTimeZone(zone));
    try {
      org.apache.orc.Writer writer = OrcFile.createWriter(new Path(path), options);
      VectorizedRowBatch batch = options.getSchema().createRowBatch(rows.size() == 0 ? 1 : rows.size());
      List types = options.getSchema().getChildren();
      for (int row = 0; row < rows.size(); row++) {
        for (int column = 0; column < types.size(); column++) {
          set(batch.cols[column], (TypeDescription) types.get(column), row, ((List) rows.get(row)).get(column));
        }
        batch.size++;
      }
      writer.addRowBatch(batch);
      Iterator keys = userMetadata.keySet().iterator();
      while (keys.hasNext()) {
        String key = (String) keys.next();
        writer.addUserMetadata(key, java.nio.ByteBuffer.wrap((byte[]) userMetadata.get(key)));
      }
      writer.close();
    } finally {
      TimeZone.setDefault(before);
    }
  }

  private static void set(ColumnVector column, TypeDescription type, int row, Object value) {
    if (value == null) {
      column.noNulls = false;
      column.isNull[row] = true;
    } else if (column instanceof LongColumnVector) {
      ((LongColumnVector) column).vector[row] = value instanceof Boolean ? (((Boolean) value).booleanValue() ? 1 : 0) : ((Number) value).longValue();
    } else if (column instanceof DoubleColumnVector) {
      long bits = ((Number) value).longValue();
      boolean isFloat = type.getCategory() == TypeDescription.Category.FLOAT;
      ((DoubleColumnVector) column).vector[row] = isFloat ? Float.intBitsToFloat((int) bits) : Double.longBitsToDouble(bits);
    } else if (column instanceof BytesColumnVector) {
      ((BytesColumnVector) column).setVal(row, (byte[]) value);
    } else if (column instanceof DecimalColumnVector) {
      ((DecimalColumnVector) column).set(row, new HiveDecimalWritable(HiveDecimal.create((String) value)));
    } else if (column instanceof TimestampColumnVector) {
      Timestamp at = new Timestamp(((Number) ((List) value).get(0)).longValue() * 1000L);
      at.setNanos(((Number) ((List) value).get(1)).intValue());
      ((TimestampColumnVector) column).set(row, at);
    } else {
      setNested(column, type, row, (List) value);
    }
  }

  private static void setNested(ColumnVector column, TypeDescription type, int row, List value) {
    List types = type.getChildren();
    if (column instanceof StructColumnVector) {
      for (int i = 0; i < types.size(); i++) {
        set(((StructColumnVector) column).fields[i], (TypeDescription) types.get(i), row, value.get(i));
      }
    } else if (column instanceof UnionColumnVector) {
      int tag = ((Number) value.get(0)).intValue();
      ((UnionColumnVector) column).tags[row] = tag;
      set(((UnionColumnVector) column).fields[tag], (TypeDescription) types.get(tag), row, value.get(1));
    } else if (column instanceof ListColumnVector) {
      ListColumnVector list = (ListColumnVector) column;
      list.offsets[row] = list.childCount;
      list.lengths[row] = value.size();
      list.childCount += value.size();
      list.child.ensureSize(list.childCount, true);
      for (int i = 0; i < value.size(); i++) {
        set(list.child, (TypeDescription) types.get(0), (int) list.offsets[row] + i, value.get(i));
      }
    } else {
      setMap((MapColumnVector) column, types, row, value);
    }
  }

  private static void setMap(MapColumnVector map, List types, int row, List pairs) {
    map.offsets[row] = map.childCount;
    map.lengths[row] = pairs.size();
    map.childCount += pairs.size();
    map.keys.ensureSize(map.childCount, true);
    map.values.ensureSize(map.childCount, true);
    for (int i = 0; i < pairs.size(); i++) {
      int at = (int) map.offsets[row] + i;
      set(map.keys, (TypeDescription) types.get(0), at, ((List) pairs.get(i)).get(0));
      set(map.values, (TypeDescription) types.get(1), at, ((List) pairs.get(i)).get(1));
    }
  }
}
