package hivekeeper.copy;

import hivekeeper.Json;
import hivekeeper.Messages;
import hivekeeper.ParquetTail;
import hivekeeper.RawFooter;
import java.io.IOException;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;

/**
 * One task of a Spark job: copies some files into one, or only digests them. Takes and answers JSON.
 *
 * Asked for a digest: {files: [[path, length], …], check_claims}; for a copy: {files, attempt, codec, blooms, row_group_bytes}, where
 * `attempt` is the path of the output without the number of the attempt.
 * Answered: {rows, high, low, identity, attempt}, the first three as text; or {failed, path, starved}: the reason on one short line.
 * Nothing is thrown, because Spark would repeat the task and then fail all others.
 *
 * A task holds at most a window of file contents (`TaskMemory`), a row group of the output, a batch of rows, and one page of each column.
 */
public class CopyTask implements Function<Object, Object> {
  private static final long serialVersionUID = 1L;

  private final Broadcast<?> conf;
  private final int cores;
  private final long windowBytes;

  /** `cores` are those of an executor, 0 for all of its machine. Files longer than `windowBytes` are streamed. */
  public CopyTask(Broadcast<?> conf, int cores, long windowBytes) {
    this.conf = conf;
    this.cores = cores;
    this.windowBytes = windowBytes;
  }

  public Object call(Object asked) throws Exception {
    Map<String, Object> task = Json.readMap((String) asked);
    return Json.write(new Run((SerializableConfiguration) conf.value(), task, new TaskMemory(cores, windowBytes)).answer());
  }

  private static class Run {
    private final Configuration conf;
    private final Map<String, Object> task;
    private final TaskMemory memory;
    /** What is being read or written, for the reason of a failure. */
    private String path;
    private HeldTailOutput output;

    Run(SerializableConfiguration conf, Map<String, Object> task, TaskMemory memory) {
      this.conf = conf.value();
      this.task = task;
      this.memory = memory;
    }

    Map<String, Object> answer() {
      try {
        Set<ColumnDescriptor> withOddNaN = new HashSet<ColumnDescriptor>();
        for (int attempt = 1; true; attempt++) {
          ParquetMerge merge = pass(attempt, withOddNaN);
          if (merge.withOddNaN.size() == withOddNaN.size()) return done(merge);
          withOddNaN = merge.withOddNaN;
        }
      } catch (Throwable error) {
        boolean ofFile = error instanceof StackOverflowError || error instanceof OutOfMemoryError;
        if (error instanceof VirtualMachineError && !ofFile) throw (VirtualMachineError) error;
        return failed(error);
      }
    }

    /** Reads all files once. The second pass writes odd NaNs as the first one found them. */
    private ParquetMerge pass(int number, Set<ColumnDescriptor> withOddNaN) throws Exception {
      output = task.containsKey("attempt") ? newOutput(number) : null;
      ParquetMerge merge = output == null
          ? new ParquetMerge(conf, memory, Boolean.TRUE.equals(task.get("check_claims")))
          : new ParquetMerge(conf, memory, output, new CopyOptions(task, memory), withOddNaN);
      boolean complete = false;
      try {
        readAll(merge);
        if (output != null) path = output.path.toString();
        merge.finish();
        complete = true;
        return merge;
      } finally {
        if (!complete) merge.abandon();
      }
    }

    private void readAll(ParquetMerge merge) throws Exception {
      List<?> files = (List) task.get("files");
      ReadAhead contents = new ReadAhead(conf, files, memory.windowBytes);
      try {
        for (Object file : files) {
          path = ReadAhead.path(file);
          ParquetSource source = ParquetSource.open(conf, path, ReadAhead.length(file), contents.take());
          try {
            merge.add(source);
          } finally {
            source.close();
          }
        }
      } finally {
        contents.close();
      }
    }

    /** Every attempt and pass has a name of its own, so none meets another's file. */
    private HeldTailOutput newOutput(int pass) throws IOException {
      Path place = new Path(task.get("attempt") + "-" + TaskContext.get().taskAttemptId() + "-" + pass);
      return new HeldTailOutput(place.getFileSystem(conf), place);
    }

    private Map<String, Object> done(ParquetMerge merge) throws Exception {
      Map<String, Object> answer = new LinkedHashMap<String, Object>();
      answer.put("rows", String.valueOf(merge.digest.rows));
      answer.put("high", Long.toUnsignedString(merge.digest.high));
      answer.put("low", Long.toUnsignedString(merge.digest.low));
      answer.put("identity", merge.identity());
      if (output == null) return answer;
      FileSystem fs = output.path.getFileSystem(conf);
      RawFooter written = new RawFooter(ParquetTail.footer(fs, output.path, output.length()));
      if (!written.identity().equals(merge.identity())) throw new IOException("the footer was not written as it was planned");
      answer.put("attempt", output.path.toString());
      return answer;
    }

    private Map<String, Object> failed(Throwable error) {
      Map<String, Object> answer = new LinkedHashMap<String, Object>();
      answer.put("failed", Messages.shortReason(error));
      answer.put("path", output != null && output.failed ? output.path.toString() : path);
      answer.put("starved", error instanceof OutOfMemoryError);
      return answer;
    }
  }
}
