package hivekeeper;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;

/**
 * Finds the addresses of hosts that locations name. Whoever creates tables can name a thousand, for each of which a name server keeps silent
 * for seconds, or answers as slowly. So all names together may cost only so much time; then none is looked for, and counts as unknown.
 */
public class HostSearch {
  /** Of the time, in milliseconds. Not a setting: for tests. */
  private static final String MOST = "hivekeeper.host-search.most-ms";
  private static final int MOST_MS = 60000;
  /** Is not looked for. */
  private static final String ADDRESS = "[0-9.]+|\\[.*\\]";
  private static final int MOST_FOUND = 1000;
  private static final AtomicLong spent = new AtomicLong();
  /** Another name of a NameNode, which all tables may have in their locations, costs its time once. */
  private static final ConcurrentHashMap<String, InetAddress> found = new ConcurrentHashMap<String, InetAddress>();

  private HostSearch() {}

  static InetAddress find(Configuration conf, String host) throws UnknownHostException {
    if (host.matches(ADDRESS)) return InetAddress.getByName(host);
    InetAddress known = (InetAddress) found.get(host);
    if (known != null) return known;
    if (spent.get() > TimeUnit.MILLISECONDS.toNanos(conf.getInt(MOST, MOST_MS))) throw new UnknownHostException(host);
    long begin = System.nanoTime();
    try {
      InetAddress address = InetAddress.getByName(host);
      if (found.size() < MOST_FOUND) found.put(host, address);
      return address;
    } finally {
      spent.addAndGet(System.nanoTime() - begin);
    }
  }
}
