package hivekeeper.copy;

import java.util.List;
import java.util.Map;

/** How an output is written. */
class CopyOptions {
  /** Named as in `model.Form`. */
  final String codec;
  /** Dotted paths of the columns that get a bloom filter. */
  final List<String> blooms;
  /** The size of a row group of Parquet, or a stripe of ORC. */
  final long rowGroupBytes;
  /** What the values may take that wait for the end of their row group, even if it ends late because of a batch of long rows. */
  final long waitingBytes;

  CopyOptions(Map<String, Object> task, TaskMemory memory) {
    codec = (String) task.get("codec");
    blooms = (List) task.get("blooms");
    waitingBytes = memory.waitingBytes;
    rowGroupBytes = memory.rowGroupBytes(((Number) task.get("row_group_bytes")).longValue());
  }
}
