package hivekeeper;

import java.net.InetAddress;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/**
 * The NameNodes that a configuration names. All names and addresses of one HDFS are a group: those of a nameservice, and whatever shares a
 * host and port with one of them, by its text or by an address of IP. A group has one spelling: that of the default file system if it is in
 * the group, else the first nameservice that a client knows, else the first address for clients.
 *
 * A client knows the name of a nameservice only if it has a class for its failover (NameNodeProxiesClient.getFailoverProxyProviderClass),
 * and `dfs.nameservices` has it (DFSUtilClient.getAddresses); then it takes no port or the default one
 * (NameNodeProxiesClient.createFailoverProxyProvider). Else the name is that of a host (DFSUtilClient.getNNAddress). As in Hadoop 3.3.4.
 *
 * What was configured is looked at once. The methods may be called by any thread.
 */
class NameNodes {
  private static final String HDFS = "hdfs";
  private static final int PORT = 8020;
  // HdfsClientConfigKeys.DFS_NAMENODE_HTTP_PORT_DEFAULT and …HTTPS_PORT_DEFAULT of Hadoop 3.
  private static final int WEB_PORT = 9870;
  private static final int SECURE_WEB_PORT = 9871;
  private static final String RPC = "dfs.namenode.rpc-address";
  /** For DataNodes, but it answers clients too (NameNodeRpcServer.serviceRpcServer). `lifeline.rpc-address` does not. */
  private static final String SERVICE_RPC = "dfs.namenode.servicerpc-address";

  private final Configuration conf;
  /** `host:port` of the default file system, "" if that is no HDFS. */
  private final String home;
  /** The names that a client knows, by the same with the default port. No host has these names. */
  private final Map<String, String> logical = new LinkedHashMap<String, String>();
  /** By `scheme://host:port`, also of WebHDFS. */
  private final Map<String, String> spellings = new LinkedHashMap<String, String>();
  /** By the names of all nameservices in small letters. */
  private final Map<String, String> nameservices = new LinkedHashMap<String, String>();
  private final ConcurrentHashMap<String, InetAddress[]> addresses = new ConcurrentHashMap<String, InetAddress[]>();

  NameNodes(Configuration conf) {
    this.conf = conf;
    URI uri = FileSystem.getDefaultUri(conf);
    home = HDFS.equalsIgnoreCase(uri.getScheme()) && uri.getAuthority() != null ? withPort(plain(uri.getAuthority())) : "";
    for (String name : conf.getTrimmedStrings("dfs.nameservices")) {
      if (!conf.getTrimmed("dfs.client.failover.proxy.provider." + name, "").isEmpty()) logical.put(withPort(name), name);
    }
    for (Set<String> group : groups()) {
      String spelling = spellingOf(group, uri);
      for (String server : group) spellings.put(HDFS + "://" + server, spelling);
    }
    for (String name : names()) {
      Set<String> servers = serversOf(name);
      // Of one without any address nothing else is known.
      nameservices.put(name.toLowerCase(Locale.ROOT), servers.isEmpty() ? name : named((String) servers.iterator().next()));
    }
    addWebServers();
  }

  /** The spelling of a server of HDFS or WebHDFS, as a location names it; null if no NameNode that is configured is there. */
  String find(String scheme, String server) {
    String wanted = withPort(plain(server), portFor(scheme));
    String spelling = (String) spellings.get(scheme + "://" + wanted);
    if (spelling != null) return spelling;
    String host = hostOf(wanted);
    String ofName = (String) nameservices.get(host);
    // A client of WebHDFS takes it with any port, and without a class for failover (HAUtilClient.isLogicalUri,
    // WebHdfsFileSystem.resolveNNAddr).
    if (ofName != null && !HDFS.equals(scheme)) return ofName;
    boolean isName = ofName != null && portOf(wanted).equals(":" + PORT);
    InetAddress[] there = isName ? HostSearch.findConfigured(conf, host) : null;
    for (Map.Entry<String, String> one : spellings.entrySet()) {
      String known = (String) one.getKey();
      if (!known.startsWith(scheme + "://") || !known.endsWith(portOf(wanted))) continue;
      if (there == null) there = HostSearch.find(conf, host);
      if (share(there, addressesOf(known.substring(scheme.length() + 3)))) return (String) one.getValue();
    }
    // This client fails there. Another one, which has the class for failover, means the nameservice.
    return isName && there.length == 0 ? ofName : null;
  }

  /** Whether the configuration has this server of HDFS. Only its text counts: what a foreign name leads to may change. */
  boolean isNamed(String server) {
    String wanted = withPort(server);
    if (spellings.containsKey(HDFS + "://" + wanted)) return true;
    return portOf(wanted).equals(":" + PORT) && nameservices.containsKey(hostOf(wanted));
  }

  // ---- groups

  private List<Set<String>> groups() {
    List<Set<String>> groups = new ArrayList<Set<String>>();
    for (String name : names()) groups.add(serversOf(name));
    groups.add(unnamed());
    groups.add(present(home));
    for (int later = 1; later < groups.size(); later++) {
      for (int earlier = 0; earlier < later; earlier++) {
        Set<String> group = (Set<String>) groups.get(earlier);
        if (!areOne(group, (Set<String>) groups.get(later))) continue;
        group.addAll((Set<String>) groups.remove(later));
        // It may be one with others now.
        later = 0;
        break;
      }
    }
    return groups;
  }

  /** All that this client may speak to: the cluster's own are `internal` where others are configured for distcp. */
  private Set<String> names() {
    Set<String> found = new LinkedHashSet<String>(Arrays.asList(conf.getTrimmedStrings("dfs.nameservices")));
    found.addAll(Arrays.asList(conf.getTrimmedStrings("dfs.internal.nameservices")));
    return found;
  }

  private Set<String> serversOf(String nameservice) {
    Set<String> found = present(logical.containsKey(withPort(nameservice)) ? nameservice : "");
    for (String suffix : suffixes(nameservice)) found.addAll(present(configured(RPC + suffix)));
    for (String suffix : suffixes(nameservice)) found.addAll(present(configured(SERVICE_RPC + suffix)));
    return found;
  }

  /** A NameNode without a nameservice, which may have its address only in `fs.defaultFS` (NameNode.getRpcServerAddress). */
  private Set<String> unnamed() {
    String rpc = configured(RPC);
    Set<String> found = present(rpc.isEmpty() && !logical.containsKey(home) ? home : rpc);
    found.addAll(present(configured(SERVICE_RPC)));
    return found;
  }

  private static Set<String> present(String server) {
    Set<String> found = new LinkedHashSet<String>();
    if (!server.isEmpty()) found.add(withPort(plain(server)));
    return found;
  }

  /** What the keys of a nameservice's NameNodes end with. */
  private List<String> suffixes(String nameservice) {
    List<String> found = new ArrayList<String>();
    found.add("." + nameservice);
    for (String namenode : conf.getTrimmedStrings("dfs.ha.namenodes." + nameservice)) found.add("." + nameservice + "." + namenode);
    return found;
  }

  private String configured(String key) {
    return conf.getTrimmed(key, "");
  }

  private boolean areOne(Set<String> group, Set<String> other) {
    if (!Collections.disjoint(group, other)) return true;
    for (String one : group) {
      for (String another : other) {
        if (portOf(one).equals(portOf(another)) && share(addressesOf(one), addressesOf(another))) return true;
      }
    }
    return false;
  }

  private String spellingOf(Set<String> group, URI defaultUri) {
    if (group.contains(home)) return logical.containsKey(home) ? (String) logical.get(home) : plain(defaultUri.getAuthority());
    for (Map.Entry<String, String> one : logical.entrySet()) {
      if (group.contains(one.getKey())) return (String) one.getValue();
    }
    return group.isEmpty() ? "" : (String) group.iterator().next();
  }

  private String named(String server) {
    return (String) spellings.get(HDFS + "://" + server);
  }

  // ---- WebHDFS

  private void addWebServers() {
    for (String name : names()) {
      for (String suffix : suffixes(name)) addWebServer(suffix, configured(RPC + suffix));
    }
    addWebServer("", home);
    addWebServer("", configured(RPC));
  }

  /** Where the NameNode with this address for RPC answers HTTP: on the same host, unless another one is configured. */
  private void addWebServer(String suffix, String rpc) {
    for (String scheme : rpc.isEmpty() ? new String[0] : new String[] {"webhdfs", "swebhdfs"}) {
      String server = withPort(plain(rpc));
      String key = "dfs.namenode." + (scheme.startsWith("s") ? "https" : "http") + "-address" + suffix;
      String web = withPort(configured(key), portFor(scheme));
      if (web.startsWith(":") || web.startsWith("0.0.0.0:")) web = logical.containsKey(server) ? "" : hostOf(server) + portOf(web);
      if (!web.isEmpty() && !spellings.containsKey(scheme + "://" + web)) spellings.put(scheme + "://" + web, named(server));
    }
  }

  private static int portFor(String scheme) {
    return HDFS.equals(scheme) ? PORT : scheme.startsWith("s") ? SECURE_WEB_PORT : WEB_PORT;
  }

  // ---- addresses of IP

  private InetAddress[] addressesOf(String server) {
    if (logical.containsKey(server)) return new InetAddress[0];
    InetAddress[] known = (InetAddress[]) addresses.get(hostOf(server));
    if (known != null) return known;
    InetAddress[] found = HostSearch.findConfigured(conf, hostOf(server));
    addresses.put(hostOf(server), found);
    return found;
  }

  private static boolean share(InetAddress[] some, InetAddress[] others) {
    return !Collections.disjoint(Arrays.asList(some), Arrays.asList(others));
  }

  // ---- texts

  /**
   * Without a user's name, and with the port as Java reads it: as a number, and nothing behind the colon is none. The patterns give nothing
   * back, which would take minutes for a port of thousands of digits that ends with a letter.
   */
  static String plain(String server) {
    String plain = server.substring(server.lastIndexOf('@') + 1).replaceFirst(":0*+(\\d*+)$", ":$1");
    return plain.replaceFirst(":$", "").replaceFirst("\\.(:\\d++)?+$", "$1");
  }

  /** In small letters, with the port for clients of HDFS if it has none. */
  static String withPort(String server) {
    return withPort(server, PORT);
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
}
