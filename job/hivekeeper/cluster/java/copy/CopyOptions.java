package hivekeeper.copy;

import java.util.List;
import java.util.Map;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;

/** How an output is written. */
class CopyOptions {
  final CompressionCodecName codec;
  /** Dotted paths of the columns that get a bloom filter. */
  final List<String> blooms;
  final long rowGroupBytes;

  /** From a task: `codec` is named as in `model.Form`. */
  CopyOptions(Map<String, Object> task, TaskMemory memory) {
    String name = (String) task.get("codec");
    codec = name.equals("none") ? CompressionCodecName.UNCOMPRESSED : CompressionCodecName.valueOf(name.toUpperCase());
    blooms = (List) task.get("blooms");
    rowGroupBytes = memory.rowGroupBytes(((Number) task.get("row_group_bytes")).longValue());
  }
}
