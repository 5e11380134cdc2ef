package hivekeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** A file as a listing showed it, in requests `[path, length, begin, id]`. */
public class ListedFile {
  public final String path;
  public final long length;
  /** Where it begins, if it lies in another one, which is at `path` then. */
  public final long begin;
  /** 0 for whatever file is at the path. */
  private final long fileId;

  public ListedFile(String path, long length, long begin, long fileId) {
    this.path = path;
    this.length = length;
    this.begin = begin;
    this.fileId = fileId;
  }

  public static List<Object> all(List<?> asked) {
    List<Object> files = new ArrayList<Object>();
    for (Object each : asked) {
      List<?> file = (List) each;
      files.add(new ListedFile((String) file.get(0), number(file.get(1)), number(file.get(2)), number(file.get(3))));
    }
    return files;
  }

  private static long number(Object asked) {
    return ((Number) asked).longValue();
  }

  public Path place() {
    return new Path(path);
  }

  /** The file system of the path, on which no other file is opened. */
  public FileSystem system(Configuration conf) throws IOException {
    return ExactFile.system(conf, path, fileId);
  }
}
