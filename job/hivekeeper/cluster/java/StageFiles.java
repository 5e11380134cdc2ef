package hivekeeper;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;

/** Lists of files for Spark jobs and from them, in one call each. Renames only the files of a stage. */
public class StageFiles {
  private static final String SPARKS_JOB_ID = "-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";

  private final Configuration conf;

  public StageFiles(Configuration conf) {
    this.conf = conf;
  }

  /**
   * The paths of `ListedFile`s by their ids, so that Spark reads no other file that somebody puts in the place of one; their own paths where
   * files are not found so. That is asked of one file of each directory.
   */
  public String exactPaths(String files) throws Exception {
    List<Object> listed = ListedFile.all(Json.readList(files));
    Map<Path, Object> ofDirectory = new LinkedHashMap<Path, Object>();
    for (Object file : listed) ofDirectory.put(((ListedFile) file).place().getParent(), file);
    List<Object> areFound = WorkerPool.map(new ArrayList<Object>(ofDirectory.values()), new WorkerPool.Task() {
      public Object of(Object file) throws Exception {
        return Boolean.valueOf(((ListedFile) file).isFoundById(conf));
      }
    });
    Map<Path, Object> found = new HashMap<Path, Object>();
    int number = 0;
    for (Path directory : ofDirectory.keySet()) found.put(directory, areFound.get(number++));
    List<String> paths = new ArrayList<String>();
    for (Object each : listed) {
      ListedFile file = (ListedFile) each;
      paths.add(((Boolean) found.get(file.place().getParent())).booleanValue() ? file.pathById(conf) : file.path);
    }
    return Json.write(paths);
  }

  /** Fails unless `listed`, Spark's `FileStatus`es of a read, are the files of these lengths, {path: length}, and no others. */
  public void requireListed(Object listed, String lengths) throws IOException {
    Map<Path, Object> wanted = new HashMap<Path, Object>();
    for (Map.Entry<String, Object> file : Json.readMap(lengths).entrySet()) wanted.put(new Path((String) file.getKey()), file.getValue());
    for (scala.collection.Iterator<?> files = ((scala.collection.Iterable<?>) listed).iterator(); files.hasNext();) {
      FileStatus file = (FileStatus) files.next();
      Number length = (Number) wanted.remove(file.getPath());
      if (length == null) throw new IOException(file.getPath() + ": it is none of the files to be read");
      if (length.longValue() != file.getLen()) {
        throw new IOException(file.getPath() + ": it has " + file.getLen() + " bytes, not the " + length + " that were listed");
      }
    }
    if (!wanted.isEmpty()) throw new IOException(wanted.keySet().iterator().next() + ": no such file");
  }

  /**
   * `places` is [{file, …}, …]; each line is the same with the file as returned by input_file_name(), which is how Spark lists it
   * in `inputFiles` (`file:/a b` and `file:///a%20b` are one path).
   */
  public List<String> lines(String[] inputFiles, String places) throws Exception {
    Map<String, String> spelled = new HashMap<String, String>();
    for (String file : inputFiles) spelled.put(new Path(new URI(file)).toString(), file);
    List<String> lines = new ArrayList<String>();
    for (Object each : Json.readList(places)) {
      Map<String, Object> place = (Map) each;
      place.put("file", spelled.get(new Path((String) place.get("file")).toString()));
      lines.add(Json.write(place));
    }
    return lines;
  }

  /** The files in each directory below `target`, as {directory: {name: length}}. */
  public String list(String target) throws IOException {
    Path top = new Path(target);
    FileSystem fs = top.getFileSystem(conf);
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    for (FileStatus entry : fs.listStatus(top)) {
      Map<String, Object> files = new LinkedHashMap<String, Object>();
      if (entry.isDirectory()) {
        for (FileStatus file : fs.listStatus(entry.getPath())) files.put(file.getPath().getName(), file.getLen());
      }
      found.put(entry.getPath().getName(), files);
    }
    return Json.write(found);
  }

  /** Spark puts its own id into every output name; it is replaced by `mark`, never over an existing file. */
  public void mark(String target, String mark) throws IOException {
    Path top = new Path(target);
    FileContext context = FileContext.getFileContext(top.toUri(), conf);
    FileSystem fs = top.getFileSystem(conf);
    Options.Rename[] never = {Options.Rename.NONE};
    for (FileStatus unit : fs.listStatus(top)) {
      for (FileStatus output : fs.listStatus(unit.getPath())) {
        Path from = output.getPath();
        String name = from.getName().replaceFirst(SPARKS_JOB_ID, "-" + mark);
        if (!name.equals(from.getName())) context.rename(from, new Path(from.getParent(), name), never);
      }
    }
  }
}
