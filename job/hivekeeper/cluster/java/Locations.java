package hivekeeper;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** How locations are spelled, and which kind of file system they are on. */
public class Locations {
  private final Configuration conf;

  public Locations(Configuration conf) {
    this.conf = conf;
  }

  public String defaultScheme() {
    return FileSystem.getDefaultUri(conf).getScheme();
  }

  /** The canonical spelling; for the default file system, also under another name or port, its own. */
  public String qualify(String text) throws IOException {
    Path path = new Path(text);
    try {
      FileSystem home = FileSystem.get(conf);
      Path absolute = home.makeQualified(path);
      return new Path(home.getUri().getScheme(), home.getUri().getAuthority(), absolute.toUri().getPath()).toString();
    } catch (IllegalArgumentException anotherFileSystem) {
      return path.getFileSystem(conf).makeQualified(path).toString();
    }
  }

  /** The scheme of the actual file system ("hdfs", "file", …) of the path, or of its nearest parent if it does not exist yet. */
  public String schemeBehind(String text) throws IOException {
    FileSystem fs = Place.nearest(conf, text).fs;
    return fs instanceof DistributedFileSystem ? "hdfs" : fs.getUri().getScheme();
  }
}
