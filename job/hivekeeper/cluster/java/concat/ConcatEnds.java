package hivekeeper.concat;

import hivekeeper.Json;
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

/** What goes behind a file that is to be joined with others, and where in a joined file one ends and another begins. Only for Parquet. */
public class ConcatEnds {
  private static final byte[] MAGIC = {'P', 'A', 'R', '1'};

  private final Configuration conf;

  public ConcatEnds(Configuration conf) {
    this.conf = conf;
  }

  /** New files: the end of one without rows with this one's schema, this one's own end, and unless its name is empty a whole one without rows. */
  public void write(String text, long length, String withoutRows, String own, String alone) throws IOException {
    Path path = new Path(text);
    byte[] footer = ParquetTail.footer(path.getFileSystem(conf), path, length);
    byte[] end = new ConcatFooters().withoutRows(footer);
    TextFiles files = new TextFiles(conf);
    files.writeBytes(withoutRows, end);
    files.writeBytes(own, ConcatFooters.end(footer));
    if (!alone.isEmpty()) files.writeBytes(alone, both(MAGIC, end));
  }

  /** Fails if these files, [[path, length], …], could not be restored as one: their footers differ in more than their rows. */
  public void requireAlike(String listed) throws Exception {
    ConcatFooters all = new ConcatFooters();
    List<Object> footers = WorkerPool.map(Json.readList(listed), new WorkerPool.Task() {
      public Object of(Object file) throws Exception {
        Path path = new Path((String) ((List) file).get(0));
        return ParquetTail.footer(path.getFileSystem(conf), path, ((Number) ((List) file).get(1)).longValue());
      }
    });
    for (Object footer : footers) all.add((byte[]) footer, 0L);
  }

  /**
   * A new file with the bytes of files that lie in the one with this id, from `begin` on, and a footer over the rows of all. It has as many
   * copies and as large blocks as that, because it is to take that one in.
   */
  public void restore(String text, long fileId, long begin, String lengths, String target) throws Exception {
    Path path = new Path(text);
    ConcatFooters all = new ConcatFooters();
    long bytes = 0;
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    try {
      for (Object each : Json.readList(lengths)) {
        long length = ((Number) each).longValue();
        all.add(ParquetTail.footer(in, begin + bytes, length), bytes);
        bytes += length;
      }
    } finally {
      in.close();
    }
    FileStatus status = path.getFileSystem(conf).getFileStatus(path);
    new TextFiles(conf).copyPart(text, fileId, begin, bytes, target, all.over(), status.getReplication(), status.getBlockSize());
  }

  /** Whether a file of this length would have the same footer without what lies behind the first bytes. */
  public boolean endsLikeWhole(String text, long length, long first) throws IOException {
    Path path = new Path(text);
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    try {
      byte[] whole = ParquetTail.footer(in, length);
      return Arrays.equals(whole, ParquetTail.footer(in, 0L, first));
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
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    try {
      byte[] around = new byte[2 * MAGIC.length];
      for (Object each : Json.readList(offsets)) {
        long offset = ((Number) each).longValue();
        in.readFully(offset - MAGIC.length, around);
        boolean ends = Arrays.equals(Arrays.copyOf(around, MAGIC.length), MAGIC);
        if (ends && Arrays.equals(Arrays.copyOfRange(around, MAGIC.length, around.length), MAGIC)) found.add(Long.valueOf(offset));
      }
    } finally {
      in.close();
    }
    return Json.write(found);
  }
}
