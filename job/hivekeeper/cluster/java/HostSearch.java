package hivekeeper;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;

/**
 * Finds the addresses of hosts. Whoever creates tables can name a thousand in their locations, for each of which a name server keeps silent
 * for seconds, or answers as slowly. So all names together may cost only so much time; then none is looked for, and counts as unknown. What
 * the configuration names has as much time of its own.
 */
public class HostSearch {
  /** Of the time, in milliseconds. Not a setting: for tests. */
  private static final String MOST = "hivekeeper.host-search.most-ms";
  private static final int MOST_MS = 60000;
  private static final String BYTE = "(25[0-5]|2[0-4]\\d|1?\\d?\\d)";
  /** Is not looked for. */
  private static final Pattern ADDRESS = Pattern.compile(BYTE + "(\\." + BYTE + "){3}|\\[.*\\]");
  private static final int MOST_FOUND = 1000;
  private static final InetAddress[] NONE = new InetAddress[0];
  private static final AtomicLong spent = new AtomicLong();
  private static final AtomicLong spentOnConfigured = new AtomicLong();
  /** Another name of a NameNode, which all tables may have in their locations, costs its time once. */
  private static final ConcurrentHashMap<String, InetAddress[]> found = new ConcurrentHashMap<String, InetAddress[]>();

  private HostSearch() {}

  /** All addresses of a host that a location names; none if it is unknown. */
  static InetAddress[] find(Configuration conf, String host) {
    return find(conf, host, spent);
  }

  /** The same of a host that the configuration names. */
  static InetAddress[] findConfigured(Configuration conf, String host) {
    return find(conf, host, spentOnConfigured);
  }

  private static InetAddress[] find(Configuration conf, String host, AtomicLong spentTime) {
    InetAddress[] known = (InetAddress[]) found.get(host);
    if (known != null) return known;
    boolean isAddress = ADDRESS.matcher(host).matches();
    if (!isAddress && spentTime.get() > TimeUnit.MILLISECONDS.toNanos(conf.getInt(MOST, MOST_MS))) return NONE;
    long begin = System.nanoTime();
    try {
      InetAddress[] addresses = InetAddress.getAllByName(host);
      if (!isAddress && found.size() < MOST_FOUND) found.put(host, addresses);
      return addresses;
    } catch (UnknownHostException unknown) {
      return NONE;
    } finally {
      if (!isAddress) spentTime.addAndGet(System.nanoTime() - begin);
    }
  }
}
