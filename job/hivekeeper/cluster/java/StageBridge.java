package hivekeeper;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;

/**
 * Lists of files in and out of Spark in one call each. Renames nothing but the files of a stage.
 * Compiled at run time by Janino: Java 7, casts instead of generics, no lambdas.
 */
public class StageBridge {
  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * `places` is [[path, key, ordinal, task], …]; each line is the same with the path as input_file_name() gives it, which
   * is how Spark lists it in `inputFiles` (`file:/a b` and `file:///a%20b` are one path).
   */
  public List lines(String[] inputFiles, String places) throws Exception {
    Map spelled = new HashMap();
    for (int i = 0; i < inputFiles.length; i++) spelled.put(new Path(new URI(inputFiles[i])).toString(), inputFiles[i]);
    List out = new ArrayList();
    for (Iterator it = ((List) JSON.readValue(places, List.class)).iterator(); it.hasNext();) {
      List place = (List) it.next();
      Map line = new LinkedHashMap();
      line.put("file", spelled.get(new Path((String) place.get(0)).toString()));
      line.put("key", place.get(1));
      line.put("ordinal", place.get(2));
      line.put("task", place.get(3));
      out.add(JSON.writeValueAsString(line));
    }
    return out;
  }

  /** The files in each directory below `target`, as {directory: [name, …]}. */
  public String list(Configuration conf, String target) throws Exception {
    Path top = new Path(target);
    FileSystem files = top.getFileSystem(conf);
    Map answer = new LinkedHashMap();
    FileStatus[] entries = files.listStatus(top);
    for (int i = 0; i < entries.length; i++) {
      List names = new ArrayList();
      FileStatus[] inside = entries[i].isDirectory() ? files.listStatus(entries[i].getPath()) : new FileStatus[0];
      for (int k = 0; k < inside.length; k++) names.add(inside[k].getPath().getName());
      answer.put(entries[i].getPath().getName(), names);
    }
    return JSON.writeValueAsString(answer);
  }

  /** Spark puts an id of its own into every output name; `mark` takes its place, never over an existing file. */
  public void mark(Configuration conf, String target, String mark) throws Exception {
    Path top = new Path(target);
    FileContext context = FileContext.getFileContext(top.toUri(), conf);
    FileSystem files = top.getFileSystem(conf);
    Options.Rename[] never = {Options.Rename.NONE};
    FileStatus[] units = files.listStatus(top);
    for (int i = 0; i < units.length; i++) {
      FileStatus[] outputs = files.listStatus(units[i].getPath());
      for (int k = 0; k < outputs.length; k++) {
        Path from = outputs[k].getPath();
        String name = from.getName().replaceFirst("-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "-" + mark);
        if (!name.equals(from.getName())) context.rename(from, new Path(from.getParent(), name), never);
      }
    }
  }
}
