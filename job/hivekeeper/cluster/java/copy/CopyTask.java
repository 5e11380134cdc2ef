package hivekeeper.copy;

import hivekeeper.Json;
import hivekeeper.ListedFile;
import hivekeeper.Messages;
import hivekeeper.WorkLimit;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;

/**
 * One task of a Spark job: copies some files into one, or only digests them. Takes and answers JSON.
 *
 * Asked for a digest: {format, files: [`ListedFile`, …], values, check_claims}; for a copy: {format, files, values, attempt, codec, may_grow,
 * blooms, row_group_bytes, block_bytes, copies}, the last two at least, where `attempt` is the path of the output without the number of the
 * attempt. `values`: so many are read, and `more`, if that is given.
 * Answered: {rows, high, low, identity, attempt, unread}, the first three as text; or {failed, path, starved, exceeded, unread}: the reason on
 * one short line, whether more memory may help, and whether there are more values. `unread`: so many more might have been read.
 * Nothing is thrown, because Spark would repeat the task and then fail all others.
 *
 * A task holds at most a window of file contents, a row group of the source and one of the output, and one page of each column: `TaskMemory`.
 */
public class CopyTask implements Function<Object, Object> {
  private static final long serialVersionUID = 1L;
  private static final long MOST_GROWTH = 8L;
  private static final long FREE_GROWTH = 16L << 20;

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
    private final List<Object> files;
    private final TaskMemory memory;
    /** What is being read or written, for the reason of a failure. */
    private String path;
    private AttemptFile output;
    private WorkLimit work;

    Run(SerializableConfiguration conf, Map<String, Object> task, TaskMemory memory) {
      this.conf = conf.value();
      this.task = task;
      this.files = ListedFile.all((List) task.get("files"));
      this.memory = memory;
    }

    Map<String, Object> answer() {
      try {
        output = newOutput(1);
        FileMerge merge = pass(FileMerge.of(conf, memory, task, output));
        for (int number = 2; true; number++) {
          AttemptFile next = newOutput(number);
          FileMerge again = merge.again(next);
          if (again == null) return done(merge);
          output = next;
          merge = pass(again);
        }
      } catch (Throwable error) {
        Messages.requireOfFile(error);
        return failed(error);
      }
    }

    /** Reads all files once. */
    private FileMerge pass(FileMerge merge) throws Exception {
      work = new WorkLimit(number("values") + number("more"), sourceBytes());
      merge.work = work;
      boolean complete = false;
      try {
        readAll(merge);
        if (output != null) path = output.path.toString();
        merge.finish();
        complete = true;
        return merge;
      } finally {
        if (!complete) abandon(merge);
      }
    }

    private static void abandon(FileMerge merge) {
      try {
        merge.abandon();
      } catch (Throwable left) {
        // The pass has failed for another reason, which is thrown. The commit deletes the whole directory of attempts.
      }
    }

    private void readAll(FileMerge merge) throws Exception {
      ReadAhead contents = new ReadAhead(conf, files, memory.windowBytes);
      try {
        for (Object each : files) {
          ListedFile file = (ListedFile) each;
          path = file.path;
          merge.add(path, file.system(conf), file.begin, file.length, contents.take());
        }
      } finally {
        contents.close();
      }
    }

    /** Every attempt and pass has a name of its own, so none meets another's file. Null if only a digest is wanted. */
    private AttemptFile newOutput(int pass) throws IOException {
      if (!task.containsKey("attempt")) return null;
      Path place = new Path(task.get("attempt") + "-" + TaskContext.get().taskAttemptId() + "-" + pass);
      long block = ((Number) task.get("block_bytes")).longValue();
      return new AttemptFile(place.getFileSystem(conf), place, mostOutputBytes(), block, ((Number) task.get("copies")).intValue());
    }

    /** The room was checked for files as large as the sources; a site that wants no compression gets what that takes. */
    private long mostOutputBytes() {
      return Boolean.TRUE.equals(task.get("may_grow")) ? Long.MAX_VALUE : MOST_GROWTH * sourceBytes() + FREE_GROWTH;
    }

    private long unread() {
      return work == null ? 0L : work.left();
    }

    private long number(String name) {
      return task.containsKey(name) ? ((Number) task.get(name)).longValue() : 0L;
    }

    private long sourceBytes() {
      long bytes = 0;
      for (Object file : files) bytes += ((ListedFile) file).length;
      return bytes;
    }

    private Map<String, Object> done(FileMerge merge) throws Exception {
      Map<String, Object> answer = new LinkedHashMap<String, Object>();
      answer.put("rows", String.valueOf(merge.digest.rows));
      answer.put("high", Long.toUnsignedString(merge.digest.high));
      answer.put("low", Long.toUnsignedString(merge.digest.low));
      answer.put("identity", merge.identity());
      answer.put("unread", unread());
      if (output == null) return answer;
      if (!merge.writtenIdentity().equals(merge.identity())) throw new IOException("the footer was not written as it was planned");
      answer.put("attempt", output.path.toString());
      return answer;
    }

    private Map<String, Object> failed(Throwable error) {
      Map<String, Object> answer = new LinkedHashMap<String, Object>();
      answer.put("failed", Messages.shortReason(error));
      answer.put("path", output != null && output.failed ? output.path.toString() : path);
      answer.put("starved", Messages.isOfMemory(error) || ShareExceeded.causes(error) && !memory.isAlone);
      answer.put("exceeded", WorkLimit.Exceeded.causes(error));
      answer.put("unread", unread());
      return answer;
    }
  }
}
