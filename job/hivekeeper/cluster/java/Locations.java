package hivekeeper;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** How locations are spelled, and which kind of file system they are on. */
public class Locations {
  private static final int DEFAULT_PORT = 8020;

  private final Configuration conf;

  public Locations(Configuration conf) {
    this.conf = conf;
  }

  public String defaultScheme() {
    return FileSystem.getDefaultUri(conf).getScheme();
  }

  /** The canonical spelling. */
  public String qualify(String text) throws IOException {
    return qualify(conf, text);
  }

  /**
   * The canonical spelling: that of the default file system, even if the URI uses another name or port for it; that of the nameservice
   * if the URI has the address of one of its NameNodes.
   */
  static String qualify(Configuration conf, String text) throws IOException {
    Path path = new Path(text);
    String nameservice = nameserviceAt(conf, path.toUri());
    if (nameservice != null) path = new Path("hdfs", nameservice, path.toUri().getPath());
    try {
      FileSystem home = FileSystem.get(conf);
      Path absolute = home.makeQualified(path);
      return new Path(home.getUri().getScheme(), home.getUri().getAuthority(), absolute.toUri().getPath()).toString();
    } catch (IllegalArgumentException anotherFileSystem) {
      return path.getFileSystem(conf).makeQualified(path).toString();
    }
  }

  /** The configured nameservice with a NameNode at the authority of a URI, or null. */
  private static String nameserviceAt(Configuration conf, URI uri) {
    if (!"hdfs".equalsIgnoreCase(uri.getScheme()) || uri.getHost() == null) return null;
    int port = uri.getPort() < 0 ? DEFAULT_PORT : uri.getPort();
    for (String nameservice : conf.getTrimmedStrings("dfs.nameservices")) {
      for (String address : addresses(conf, nameservice)) {
        if (address.equalsIgnoreCase(uri.getHost() + ":" + port)) return nameservice;
      }
    }
    return null;
  }

  private static List<String> addresses(Configuration conf, String nameservice) {
    List<String> found = new ArrayList<String>();
    String key = "dfs.namenode.rpc-address." + nameservice;
    found.add(conf.getTrimmed(key, ""));
    for (String namenode : conf.getTrimmedStrings("dfs.ha.namenodes." + nameservice)) found.add(conf.getTrimmed(key + "." + namenode, ""));
    return found;
  }

  /** The scheme of the actual file system ("hdfs", "file", …) of the path, or of its nearest parent if it does not exist yet. */
  public String schemeBehind(String text) throws IOException {
    FileSystem fs = Place.nearest(conf, text).fs;
    return fs instanceof DistributedFileSystem ? "hdfs" : fs.getUri().getScheme();
  }
}
