package hivekeeper.concat;

import hivekeeper.Footer;
import hivekeeper.Json;
import hivekeeper.ListedFile;
import hivekeeper.Messages;
import hivekeeper.ParquetTail;
import hivekeeper.TextFiles;
import hivekeeper.WorkerPool;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** What goes behind a file that is to be joined with others, and where in a joined file one ends and another begins. */
public abstract class ConcatEnds {
  /** What is read of their ends is in memory together: one for each thread. A file of 50 KB may have an end of as many megabytes. */
  private static final int FILES_AT_ONCE = WorkerPool.THREADS;
  /** Sets of all calls; after that one of each call, as in `Footers`: each further one costs full garbage collections. */
  private static final int MOST_STARVED = 32;
  private static final String GIVEN_UP =
      "the footers of " + MOST_STARVED + " other sets or more took more memory than the driver has (spark.driver_memory), so these were not read";

  final Configuration conf;
  private int starved;

  ConcatEnds(Configuration conf) {
    this.conf = conf;
  }

  /** The first bytes of a file. */
  abstract byte[] magic();

  /** Whether a file may end with these bytes, which are one more than the magic has. */
  abstract boolean endsWith(byte[] last);

  /** Footer and what follows it, of a file that lies in this one from `begin` on. */
  abstract byte[] end(FSDataInputStream in, long begin, long length) throws IOException;

  /** Of such a file, for `JoinedFooters`. */
  abstract Object footer(ListedFile file) throws Exception;

  abstract JoinedFooters noFooters();

  /**
   * New files for each of [[`ListedFile`, path, path, path], …]: the end of one without rows with this one's schema, this one's own end, and
   * unless its path is empty a whole one without rows. Returns [why not, …], null for those that were written.
   */
  public String write(String asked) throws Exception {
    List<Object> all = Json.readList(asked);
    List<Object> failures = WorkerPool.map(all, new WorkerPool.Task() {
      public Object of(Object wanted) {
        return tryToWrite((List) wanted);
      }
    });
    List<Object> told = new ArrayList<Object>();
    for (int i = 0; i < failures.size(); i++) {
      Throwable failure = (Throwable) failures.get(i);
      // Alone, because others that were written at the same time may have taken the memory.
      if (failure instanceof OutOfMemoryError) failure = tryToWrite((List) all.get(i));
      told.add(failure == null ? null : Messages.shortReason(failure));
    }
    return Json.write(told);
  }

  private Throwable tryToWrite(List<?> wanted) {
    try {
      writeOne(wanted);
      return null;
    } catch (Throwable failed) {
      return causeOfFile(failed);
    }
  }

  private void writeOne(List<?> wanted) throws Exception {
    ListedFile file = (ListedFile) ListedFile.all(wanted.subList(0, 1)).get(0);
    String withoutRows = (String) wanted.get(1);
    String own = (String) wanted.get(2);
    String alone = (String) wanted.get(3);
    byte[] ownEnd = endOfWhole(file);
    JoinedFooters footers = noFooters();
    footers.add(footer(file), 0L);
    byte[] end = footers.withoutRows();
    TextFiles files = new TextFiles(conf);
    files.writeBytes(withoutRows, end);
    files.writeBytes(own, ownEnd);
    if (!alone.isEmpty()) files.writeBytes(alone, both(magic(), end));
  }

  /** Fails if the file has become longer than it was when it was listed. */
  private byte[] endOfWhole(ListedFile file) throws IOException {
    FSDataInputStream in = file.system(conf).open(file.place());
    try {
      ParquetTail.requireEnd(in, file.length);
      return end(in, 0L, file.length);
    } finally {
      in.close();
    }
  }

  /**
   * For each of some sets, [[`ListedFile`, …], …], why they could not be restored as one: footers differ in more than their rows, or are too
   * long; null if they could. One set after the other: their ends are in memory together. Behind many that take all memory none is tried.
   */
  public synchronized String findUnlike(String sets) throws Exception {
    List<Object> found = new ArrayList<Object>();
    int most = Math.max(MOST_STARVED, starved + 1);
    for (Object set : Json.readList(sets)) {
      Throwable why = starved < most ? whyUnlike(ListedFile.all((List) set)) : (Throwable) new IOException(GIVEN_UP);
      if (Messages.isOfMemory(why)) starved++;
      found.add(why == null ? null : Messages.shortReason(why));
    }
    return Json.write(found);
  }

  private Throwable whyUnlike(List<Object> files) {
    try {
      endOver(files);
      return null;
    } catch (Throwable unlike) {
      return causeOfFile(unlike);
    }
  }

  private static Throwable causeOfFile(Throwable error) {
    Throwable cause = Messages.innermost(error);
    Messages.requireOfFile(cause);
    return cause;
  }

  /** The end of a file in which these, each a ListedFile, lie one after the other. Fails if nobody would read so long a one. */
  private byte[] endOver(List<Object> files) throws Exception {
    JoinedFooters all = noFooters();
    long start = 0;
    for (int from = 0; from < files.size(); from += FILES_AT_ONCE) {
      List<Object> some = files.subList(from, Math.min(from + FILES_AT_ONCE, files.size()));
      List<Object> found = footers(some);
      for (int i = 0; i < some.size(); i++) {
        all.add(found.get(i), start);
        start = Math.addExact(start, ((ListedFile) some.get(i)).length);
      }
    }
    byte[] end = all.over();
    Footer.requireShort(end.length);
    return end;
  }

  private List<Object> footers(List<Object> files) throws Exception {
    return WorkerPool.map(files, new WorkerPool.Task() {
      public Object of(Object file) throws Exception {
        return footer((ListedFile) file);
      }
    });
  }

  /**
   * A new file with the bytes of files that lie in the one with this id, from `begin` on, and a footer over the rows of all. It has as many
   * copies and as large blocks as that, because it is to take that one in.
   */
  public void restore(String text, long fileId, long begin, String lengths, String target) throws Exception {
    List<Object> files = new ArrayList<Object>();
    long bytes = 0;
    for (Object each : Json.readList(lengths)) {
      long length = ((Number) each).longValue();
      files.add(new ListedFile(text, length, begin + bytes, fileId));
      bytes += length;
    }
    byte[] end = endOver(files);
    Path path = new Path(text);
    FileStatus status = path.getFileSystem(conf).getFileStatus(path);
    new TextFiles(conf).copyPart(text, fileId, begin, bytes, target, end, status.getReplication(), status.getBlockSize());
  }

  /** Whether a file of this length would have the same end without what lies behind the first bytes. */
  public boolean endsLikeWhole(String text, long length, long first) throws IOException {
    Path path = new Path(text);
    byte[] whole = endOfWhole(new ListedFile(text, length, 0L, 0L));
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    try {
      return Arrays.equals(whole, end(in, 0L, first));
    } finally {
      in.close();
    }
  }

  private static byte[] both(byte[] first, byte[] second) {
    byte[] all = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, all, first.length, second.length);
    return all;
  }

  /** Those of the offsets with a file's last bytes before them and a file's first behind them; both as JSON. */
  public String starts(String text, String offsets) throws IOException {
    Path path = new Path(text);
    List<Object> found = new ArrayList<Object>();
    long length = path.getFileSystem(conf).getFileStatus(path).getLen();
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    try {
      byte[] last = new byte[magic().length + 1];
      byte[] first = new byte[magic().length];
      for (Object each : Json.readList(offsets)) {
        long offset = ((Number) each).longValue();
        if (offset < last.length || offset > length - first.length) continue;
        in.readFully(offset - last.length, last);
        in.readFully(offset, first);
        if (endsWith(last) && Arrays.equals(first, magic())) found.add(Long.valueOf(offset));
      }
    } finally {
      in.close();
    }
    return Json.write(found);
  }
}
