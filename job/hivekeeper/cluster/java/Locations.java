package hivekeeper;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** How locations are spelled, and which kind of file system they are on. */
public class Locations {
  private static final int DEFAULT_PORT = 8020;
  // HdfsClientConfigKeys.DFS_NAMENODE_HTTP_PORT_DEFAULT and …HTTPS_PORT_DEFAULT of Hadoop 3.
  private static final int WEB_PORT = 9870;
  private static final int SECURE_WEB_PORT = 9871;
  // Below it all of HDFS is found once more, without decryption (FSDirectory.resolveComponents).
  private static final String RAW = "/.reserved/raw";

  private final Configuration conf;

  public Locations(Configuration conf) {
    this.conf = conf;
  }

  public String defaultScheme() {
    return FileSystem.getDefaultUri(conf).getScheme();
  }

  /** The canonical spelling. A text that is no path, as a partition may have for its location, stays as it is. */
  public String qualify(String text) throws IOException {
    try {
      return qualify(conf, text);
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
   * The canonical spelling: that of the default file system, even if the URI uses another name or port for it; that of the nameservice
   * if the URI has the address of one of its NameNodes, also of its WebHDFS. A user's name in the URI, which HDFS ignores, is left out, and
   * so is `/.reserved/raw`. Two spellings of one directory would hide that two tables share it.
   *
   * The location of any other file system is only text here: to make a client for it may connect to its server (ftp), or read files there
   * (har), and anybody may give a table such a location.
   */
  static String qualify(Configuration conf, String text) throws IOException {
    Path path = located(conf, text);
    return "hdfs".equals(path.toUri().getScheme()) ? withoutRaw(path).toString() : path.toString();
  }

  private static Path withoutRaw(Path path) {
    URI uri = path.toUri();
    if (!(uri.getPath() + "/").startsWith(RAW + "/")) return path;
    String below = uri.getPath().substring(RAW.length());
    return new Path(uri.getScheme(), uri.getAuthority(), below.isEmpty() ? "/" : below);
  }

  private static Path located(Configuration conf, String text) throws IOException {
    Path path = spelled(conf, new Path(text));
    URI uri = path.toUri();
    // A server without a scheme leads nowhere.
    if (uri.getScheme() == null && uri.getAuthority() != null) throw new IllegalArgumentException(text);
    FileSystem home = FileSystem.get(conf);
    URI root = spelled(conf, new Path(home.getUri())).toUri();
    if (uri.getScheme() != null && !uri.getScheme().equalsIgnoreCase(root.getScheme())) return path;
    // The client would look for its name once more.
    if ("hdfs".equals(uri.getScheme()) && uri.getAuthority() != null) return path;
    try {
      Path absolute = home.makeQualified(path);
      return new Path(root.getScheme(), root.getAuthority(), absolute.toUri().getPath());
    } catch (IllegalArgumentException anotherServer) {
      return path;
    }
  }

  /** The scheme in small letters, and the name under which a server of HDFS is configured. */
  private static Path spelled(Configuration conf, Path path) {
    URI uri = path.toUri();
    if (uri.getScheme() == null) return path;
    String scheme = uri.getScheme().toLowerCase(Locale.ROOT);
    String server = uri.getAuthority();
    String served = server != null && scheme.endsWith("webhdfs") ? servedBy(conf, scheme, server) : null;
    if (served != null) {
      scheme = "hdfs";
      server = served;
    } else if (server != null && scheme.equals("hdfs")) {
      server = knownAs(conf, withPlainPort(server.substring(server.lastIndexOf('@') + 1)).replaceFirst("\\.(:\\d+)?$", "$1"));
    }
    return new Path(scheme, server, uri.getPath().isEmpty() ? "/" : uri.getPath());
  }

  /**
   * Whether no configuration names the server of a location (qualified): it must not be called. A server that is silent, but accepts
   * connections, keeps a client of HDFS waiting for ever. `named` are more file systems that the site trusts.
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
    if ("file".equals(uri.getScheme())) return uri.getAuthority() != null;
    if ("viewfs".equals(uri.getScheme())) return !hasMounts(uri.getAuthority());
    if ("hdfs".equals(uri.getScheme()) && uri.getAuthority() != null && isNameNode(uri.getAuthority())) return false;
    return !isMounted(uri);
  }

  private static boolean isOneFileSystem(URI one, URI other) {
    if (other.getScheme() == null || !one.getScheme().equalsIgnoreCase(other.getScheme())) return false;
    if (one.getAuthority() == null || other.getAuthority() == null) return one.getAuthority() == null && other.getAuthority() == null;
    return "hdfs".equals(one.getScheme())
        ? withPort(one.getAuthority()).equals(withPort(other.getAuthority()))
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

  private boolean isNameNode(String server) {
    Set<String> known = new HashSet<String>();
    known.add(conf.getTrimmed("dfs.namenode.rpc-address", ""));
    for (String nameservice : nameservices(conf)) {
      if (nameservice.equals(server)) return true;
      known.addAll(addresses(conf, nameservice));
    }
    known.remove("");
    for (String address : known) {
      if (withPort(address).equals(withPort(server))) return true;
    }
    return false;
  }

  /** All that this client may speak to: the cluster's own are `internal` where others are configured for distcp. */
  private static Set<String> nameservices(Configuration conf) {
    Set<String> found = new LinkedHashSet<String>(Arrays.asList(conf.getTrimmedStrings("dfs.nameservices")));
    found.addAll(Arrays.asList(conf.getTrimmedStrings("dfs.internal.nameservices")));
    return found;
  }

  /**
   * The configured nameservice of this name or with a NameNode at this server, the default file system if it is there, or the same. A
   * client takes the name of a nameservice with the default port for the nameservice (NameNodeProxiesClient.createFailoverProxyProvider,
   * which refuses any other port).
   */
  private static String knownAs(Configuration conf, String server) {
    Map<String, String> known = new LinkedHashMap<String, String>();
    for (String nameservice : nameservices(conf)) {
      if (withPort(nameservice).equals(withPort(server))) return nameservice;
      for (String address : addresses(conf, nameservice)) known.put(withPort(address), nameservice);
    }
    URI home = FileSystem.getDefaultUri(conf);
    boolean isServer = "hdfs".equals(home.getScheme()) && home.getAuthority() != null && !nameservices(conf).contains(home.getAuthority());
    if (isServer) known.put(withPort(home.getAuthority()), home.getAuthority());
    String named = (String) known.get(withPort(server));
    return named != null ? named : knownByAddress(conf, known, server);
  }

  /** The HDFS that a NameNode at this server gives over HTTP, as it is configured; null if none does. */
  private static String servedBy(Configuration conf, String scheme, String server) {
    boolean isSecure = scheme.startsWith("s");
    server = withPlainPort(server.substring(server.lastIndexOf('@') + 1));
    String wanted = withPort(server, isSecure ? SECURE_WEB_PORT : WEB_PORT);
    Map<String, String> known = new LinkedHashMap<String, String>();
    URI home = FileSystem.getDefaultUri(conf);
    if ("hdfs".equals(home.getScheme()) && home.getAuthority() != null) {
      known.put(webServer(conf, isSecure, "", home.getAuthority()), knownAs(conf, home.getAuthority()));
    }
    for (String nameservice : nameservices(conf)) {
      // With any port, as a client of WebHDFS takes it (HAUtilClient.isLogicalUri, WebHdfsFileSystem.resolveNNAddr).
      if (nameservice.equalsIgnoreCase(hostOf(wanted))) return nameservice;
      for (String suffix : suffixes(conf, nameservice)) {
        String rpc = conf.getTrimmed("dfs.namenode.rpc-address" + suffix, "");
        if (!rpc.isEmpty()) known.put(webServer(conf, isSecure, suffix, rpc), nameservice);
      }
    }
    String named = (String) known.get(wanted);
    String found = named != null ? named : knownByAddress(conf, known, wanted);
    return found.equals(wanted) ? null : found;
  }

  /** Where the NameNode with this address for RPC answers HTTP: on the same host, unless another one is configured. */
  private static String webServer(Configuration conf, boolean isSecure, String suffix, String rpc) {
    String web = conf.getTrimmed("dfs.namenode." + (isSecure ? "https" : "http") + "-address" + suffix, "");
    web = withPort(web, isSecure ? SECURE_WEB_PORT : WEB_PORT);
    return web.startsWith(":") || web.startsWith("0.0.0.0:") ? hostOf(withPort(rpc)) + portOf(web) : web;
  }

  /** The value of the first name that leads to the same address with the same port, or the server itself. It is looked for once. */
  private static String knownByAddress(Configuration conf, Map<String, String> known, String server) {
    InetAddress address = null;
    for (Map.Entry<String, String> one : known.entrySet()) {
      String name = (String) one.getKey();
      if (!portOf(name).equals(portOf(withPort(server)))) continue;
      try {
        if (address == null) address = HostSearch.find(conf, hostOf(withPort(server)));
      } catch (UnknownHostException unknown) {
        return server;
      }
      if (isAt(name, address)) return (String) one.getValue();
    }
    return server;
  }

  /** Java reads a port as a number, and takes none after the colon for no port. */
  private static String withPlainPort(String server) {
    return server.replaceFirst(":0*(\\d*)$", ":$1").replaceFirst(":$", "");
  }

  private static String withPort(String server) {
    return withPort(server, DEFAULT_PORT);
  }

  private static String withPort(String server, int port) {
    return (server.matches(".*:\\d+") ? server : server + ":" + port).toLowerCase(Locale.ROOT);
  }

  private static String portOf(String server) {
    return server.substring(server.lastIndexOf(':'));
  }

  private static String hostOf(String server) {
    return server.substring(0, server.lastIndexOf(':'));
  }

  /** Whether a configured server is there. */
  private static boolean isAt(String server, InetAddress address) {
    try {
      return InetAddress.getByName(hostOf(server)).equals(address);
    } catch (UnknownHostException unknown) {
      return false;
    }
  }

  private static List<String> addresses(Configuration conf, String nameservice) {
    Set<String> found = new LinkedHashSet<String>();
    for (String suffix : suffixes(conf, nameservice)) found.add(conf.getTrimmed("dfs.namenode.rpc-address" + suffix, ""));
    found.remove("");
    return new ArrayList<String>(found);
  }

  /** What the keys of a nameservice's NameNodes end with. */
  private static List<String> suffixes(Configuration conf, String nameservice) {
    List<String> found = new ArrayList<String>();
    found.add("." + nameservice);
    for (String namenode : conf.getTrimmedStrings("dfs.ha.namenodes." + nameservice)) found.add("." + nameservice + "." + namenode);
    return found;
  }

  /** The scheme of the actual file system ("hdfs", "file", …) of the path, or of its nearest parent if it does not exist yet. */
  public String schemeBehind(String text) throws IOException {
    FileSystem fs = Place.nearest(conf, text).fs;
    return fs instanceof DistributedFileSystem ? "hdfs" : fs.getUri().getScheme();
  }
}
