package hivekeeper;

import java.io.IOException;
import java.net.URI;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** How locations are spelled, and which kind of file system they are on. */
public class Locations {
  // Below it all of HDFS is found once more, without decryption (FSDirectory.resolveComponents).
  private static final String RAW = "/.reserved/raw";

  private final Configuration conf;
  private final NameNodes nameNodes;

  public Locations(Configuration conf) {
    this.conf = conf;
    this.nameNodes = new NameNodes(conf);
  }

  public String defaultScheme() {
    return FileSystem.getDefaultUri(conf).getScheme();
  }

  /** The canonical spelling. A text that is no path, as a partition may have for its location, stays as it is. */
  public String qualify(String text) throws IOException {
    try {
      return spell(text);
    } catch (IllegalArgumentException noPath) {
      return text;
    }
  }

  /** Whether Hadoop takes a text for a path. */
  static boolean isPath(String text) {
    try {
      new Path(text);
      return true;
    } catch (IllegalArgumentException noPath) {
      return false;
    }
  }

  /**
   * The canonical spelling: that of the default file system, even if the URI uses another name or port for it; the one name that each HDFS
   * has (NameNodes), also for WebHDFS. A user's name in the URI, which HDFS ignores, is left out, and so is `/.reserved/raw`. Two spellings
   * of one directory would hide that two tables share it. Throws IllegalArgumentException for a text that is no path.
   *
   * The location of any other file system is only text here: to make a client for it may connect to its server (ftp), or read files there
   * (har), and anybody may give a table such a location.
   */
  String spell(String text) throws IOException {
    return withoutRaw(located(text)).toString();
  }

  private static Path withoutRaw(Path path) {
    URI uri = path.toUri();
    boolean isHdfs = uri.getScheme() != null && uri.getScheme().endsWith("hdfs");
    if (!isHdfs || !(uri.getPath() + "/").startsWith(RAW + "/")) return path;
    String below = uri.getPath().substring(RAW.length());
    return new Path(uri.getScheme(), uri.getAuthority(), below.isEmpty() ? "/" : below);
  }

  private Path located(String text) throws IOException {
    Path path = spelled(new Path(text));
    URI uri = path.toUri();
    // A server without a scheme leads nowhere.
    if (uri.getScheme() == null && uri.getAuthority() != null) throw new IllegalArgumentException(text);
    // The client would look for its name once more.
    if ("hdfs".equals(uri.getScheme()) && uri.getAuthority() != null) return path;
    FileSystem home = FileSystem.get(conf);
    URI root = spelled(new Path(home.getUri())).toUri();
    if (uri.getScheme() != null && !uri.getScheme().equalsIgnoreCase(root.getScheme())) return path;
    try {
      Path absolute = home.makeQualified(path);
      return new Path(root.getScheme(), root.getAuthority(), absolute.toUri().getPath());
    } catch (IllegalArgumentException anotherServer) {
      return path;
    }
  }

  /** The scheme in small letters, and the name under which a server of HDFS is configured. */
  private Path spelled(Path path) {
    URI uri = path.toUri();
    if (uri.getScheme() == null) return path;
    String scheme = uri.getScheme().toLowerCase(Locale.ROOT);
    String server = uri.getAuthority();
    if (server != null && (scheme.equals("hdfs") || scheme.equals("webhdfs") || scheme.equals("swebhdfs"))) {
      String known = nameNodes.find(scheme, server);
      if (known != null) {
        scheme = "hdfs";
        server = known;
      } else if (scheme.equals("hdfs")) {
        server = NameNodes.plain(server);
      }
    }
    return new Path(scheme, server, uri.getPath().isEmpty() ? "/" : uri.getPath());
  }

  /**
   * Whether no configuration names the server of a location (qualified): it must not be called. A server that is silent, but accepts
   * connections, keeps a client of HDFS waiting for ever. `named` are more file systems that the site trusts. The files of this machine are
   * foreign, too, to a cluster whose own are elsewhere: `/net/HOST` of an automounter calls that host.
   *
   * Only the text counts, because what a foreign name leads to may change between two questions.
   */
  public boolean isForeign(String text, String named) throws IOException {
    URI uri;
    try {
      uri = new Path(text).toUri();
    } catch (IllegalArgumentException noPath) {
      return true;
    }
    URI home = FileSystem.getDefaultUri(conf);
    if (uri.getScheme() == null || !uri.getPath().startsWith("/")) return true;
    if (isOneFileSystem(uri, home)) return false;
    for (String each : Json.readStrings(named)) {
      if (isOneFileSystem(uri, new Path(each).toUri())) return false;
    }
    if ("viewfs".equals(uri.getScheme())) return !hasMounts(uri.getAuthority());
    if ("hdfs".equals(uri.getScheme()) && uri.getAuthority() != null && nameNodes.isNamed(uri.getAuthority())) return false;
    return !isMounted(uri);
  }

  private static boolean isOneFileSystem(URI one, URI other) {
    if (other.getScheme() == null || !one.getScheme().equalsIgnoreCase(other.getScheme())) return false;
    if (one.getAuthority() == null || other.getAuthority() == null) return one.getAuthority() == null && other.getAuthority() == null;
    return "hdfs".equals(one.getScheme())
        ? NameNodes.withPort(one.getAuthority()).equals(NameNodes.withPort(other.getAuthority()))
        : one.getAuthority().equals(other.getAuthority());
  }

  /** ViewFs takes all that it mounts from the configuration. */
  private boolean hasMounts(String authority) {
    String name = authority == null ? conf.get("fs.viewfs.mounttable.default.name.key", "default") : authority;
    for (Map.Entry<String, String> entry : conf) {
      if (((String) entry.getKey()).startsWith("fs.viewfs.mounttable." + name + ".")) return true;
    }
    return false;
  }

  /** Whether ViewFs mounts something of this file system. */
  private boolean isMounted(URI uri) {
    for (Map.Entry<String, String> entry : conf) {
      if (!((String) entry.getKey()).startsWith("fs.viewfs.mounttable.")) continue;
      for (String target : ((String) entry.getValue()).trim().split("\\s*,\\s*")) {
        if (target.contains("://") && isOneFileSystem(uri, URI.create(target.replaceFirst("(://[^/]*).*", "$1/")))) return true;
      }
    }
    return false;
  }

  /** The scheme of the actual file system ("hdfs", "file", …) of the path, or of its nearest parent if it does not exist yet. */
  public String schemeBehind(String text) throws IOException {
    FileSystem fs = Place.nearest(conf, text).fs;
    return fs instanceof DistributedFileSystem ? "hdfs" : fs.getUri().getScheme();
  }
}
