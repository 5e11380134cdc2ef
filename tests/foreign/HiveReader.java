package foreign;

import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TimeZone;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcSerde;
import org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat;
import org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.ColumnProjectionUtils;
import org.apache.hadoop.hive.serde2.SerDeUtils;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;

/** A file's rows as Hive's own input format and SerDe give them to a query of a table with these columns. */
public class HiveReader {
  /** `names` are separated by commas, `types` by colons. In a zone other than UTC, because Hive moves some INT96 timestamps to it. */
  public static List rows(String path, long length, boolean isOrc, String names, String types) throws Exception {
    TimeZone before = TimeZone.getDefault();
    TimeZone.setDefault(TimeZone.getTimeZone("America/Los_Angeles"));
    try {
      return read(new FileSplit(new Path(path), 0L, length, (String[]) null), isOrc, names, types);
    } finally {
      TimeZone.setDefault(before);
    }
  }

  private static List read(FileSplit split, boolean isOrc, String names, String types) throws Exception {
    JobConf conf = new JobConf();
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
    conf.set("columns", names);
    conf.set("columns.types", types);
    conf.set("VECTOR_MODE", "false");
    // Then it goes by created_by whether INT96 was moved to UTC.
    conf.set("hive.parquet.timestamp.skip.conversion", "true");
    ColumnProjectionUtils.setReadAllColumns(conf);
    Properties table = new Properties();
    table.setProperty("columns", names);
    table.setProperty("columns.types", types);
    AbstractSerDe serde = isOrc ? (AbstractSerDe) new OrcSerde() : (AbstractSerDe) new ParquetHiveSerDe();
    serde.initialize(conf, table);
    InputFormat format = isOrc ? (InputFormat) new OrcInputFormat() : (InputFormat) new MapredParquetInputFormat();
    RecordReader reader = format.getRecordReader(split, conf, Reporter.NULL);
    List found = new ArrayList();
    Object key = reader.createKey();
    Writable value = (Writable) reader.createValue();
    while (reader.next(key, value)) {
      found.add(SerDeUtils.getJSONString(serde.deserialize(value), serde.getObjectInspector()));
    }
    reader.close();
    return found;
  }
}
