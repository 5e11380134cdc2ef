package hivekeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
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

  static ListedFile of(String asked) throws IOException {
    return (ListedFile) all(Collections.singletonList(Json.readList(asked))).get(0);
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

  /** Whether it is found by its id. Fails if it is not, and another file is at its path. */
  boolean isFoundById(Configuration conf) throws IOException {
    if (fileId == 0) return false;
    Place at = Place.of(conf, path);
    at.requireReal();
    if (at.isFileFoundById(fileId)) return true;
    ExactFile.requireAt(at, path, fileId);
    return false;
  }

  /** Its path by its id, or its own if that is not known. */
  String pathById(Configuration conf) throws IOException {
    Place at = Place.of(conf, path);
    return fileId == 0 ? path : at.fs.makeQualified(at.byId(fileId).real).toString();
  }

  /** The file system of the path, on which no other file is opened. */
  public FileSystem system(Configuration conf) throws IOException {
    return ExactFile.system(conf, path, fileId);
  }
}
