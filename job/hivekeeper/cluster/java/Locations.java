package hivekeeper;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
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
   * if the URI has the address of one of its NameNodes. A user's name in the URI, which HDFS ignores, is left out. Two spellings of one
   * directory would hide that two tables share it.
   */
  static String qualify(Configuration conf, String text) throws IOException {
    Path path = new Path(text);
    URI uri = path.toUri();
    if ("hdfs".equalsIgnoreCase(uri.getScheme()) && uri.getAuthority() != null) {
      String server = uri.getAuthority().substring(uri.getAuthority().lastIndexOf('@') + 1).replaceFirst("\\.(:\\d+)?$", "$1");
      path = new Path("hdfs", knownAs(conf, server), uri.getPath());
    }
    try {
      FileSystem home = FileSystem.get(conf);
      Path absolute = home.makeQualified(path);
      return new Path(home.getUri().getScheme(), home.getUri().getAuthority(), absolute.toUri().getPath()).toString();
    } catch (IllegalArgumentException anotherFileSystem) {
      return path.getFileSystem(conf).makeQualified(path).toString();
    }
  }

  /** The configured nameservice with a NameNode at this server, the default file system if it is there, or the same. */
  private static String knownAs(Configuration conf, String server) {
    Map<String, String> known = new LinkedHashMap<String, String>();
    for (String nameservice : conf.getTrimmedStrings("dfs.nameservices")) {
      for (String address : addresses(conf, nameservice)) known.put(withPort(address), nameservice);
    }
    URI home = FileSystem.getDefaultUri(conf);
    if ("hdfs".equals(home.getScheme()) && home.getPort() >= 0) known.put(withPort(home.getAuthority()), home.getAuthority());
    String named = (String) known.get(withPort(server));
    if (named != null) return named;
    for (Map.Entry<String, String> one : known.entrySet()) {
      if (isOneServer((String) one.getKey(), withPort(server))) return (String) one.getValue();
    }
    return server;
  }

  private static String withPort(String server) {
    return (server.matches(".*:\\d+") ? server : server + ":" + DEFAULT_PORT).toLowerCase(Locale.ROOT);
  }

  /** Whether two names of hosts, or an address, with equal ports, lead to one address. */
  private static boolean isOneServer(String one, String other) {
    int port = one.lastIndexOf(':');
    int otherPort = other.lastIndexOf(':');
    if (!one.substring(port).equals(other.substring(otherPort))) return false;
    try {
      return InetAddress.getByName(one.substring(0, port)).equals(InetAddress.getByName(other.substring(0, otherPort)));
    } catch (UnknownHostException unknown) {
      return false;
    }
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
