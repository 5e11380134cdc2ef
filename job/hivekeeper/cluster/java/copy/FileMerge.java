package hivekeeper.copy;

import hivekeeper.WorkLimit;
import java.io.InterruptedIOException;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.TaskContext;

/** One pass over some files of one format: the digest of all rows, and one output with these rows if there is a file for it. */
abstract class FileMerge {
  final RowDigest digest = new RowDigest();
  /** What is left to be read in this pass. */
  WorkLimit work;

  /** `task` is what `CopyTask` is asked; `output` is null if only the digest is wanted. */
  static FileMerge of(Configuration conf, TaskMemory memory, Map<String, Object> task, AttemptFile output) throws Exception {
    boolean checksClaims = Boolean.TRUE.equals(task.get("check_claims"));
    CopyOptions options = output == null ? null : new CopyOptions(task, memory);
    if (task.get("format").equals("orc")) return new OrcMerge(conf, memory, output, options, checksClaims);
    return new ParquetMerge(conf, memory, output, options, checksClaims);
  }

  /** Read a file, or one that lies in another from `begin` on. `content` is null if it is to be streamed from `fs`. */
  abstract void add(String path, FileSystem fs, long begin, long length, byte[] content) throws Exception;

  /** Complete the output. */
  abstract void finish() throws Exception;

  /** Remove the output. */
  abstract void abandon();

  /** `model.Form.identity` of the files, if all have the same; else "". */
  abstract String identity() throws Exception;

  /** The same of the output, from its own footer as it was written. */
  abstract String writtenIdentity() throws Exception;

  /** The merge for another pass over the same files, null if this one is complete. */
  FileMerge again(AttemptFile output) throws Exception {
    return null;
  }

  static void requireNotKilled() throws InterruptedIOException {
    if (TaskContext.get() != null && TaskContext.get().isInterrupted()) throw new InterruptedIOException("the task was killed");
  }
}
