package hivekeeper.concat;

import hivekeeper.Json;
import hivekeeper.ParquetTail;
import hivekeeper.TextFiles;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;

/** What goes behind a file that is to be joined with others, and where in a joined file one ends and another begins. Only for Parquet. */
public class ConcatEnds {
  private static final byte[] MAGIC = {'P', 'A', 'R', '1'};

  private final Configuration conf;

  public ConcatEnds(Configuration conf) {
    this.conf = conf;
  }

  /** Two new files: the end of one without rows with this one's schema, and this one's own end. */
  public void write(String text, long length, String withoutRows, String own) throws IOException {
    Path path = new Path(text);
    byte[] footer = ParquetTail.footer(path.getFileSystem(conf), path, length);
    TextFiles files = new TextFiles(conf);
    files.writeBytes(withoutRows, new ConcatFooters().withoutRows(footer));
    files.writeBytes(own, ConcatFooters.end(footer));
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
