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
