package hivekeeper;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;

/**
 * Finds the addresses of hosts that locations name. Whoever creates tables can name a thousand, for each of which a name server keeps silent for
 * seconds. So all names together may cost only so much time that is in vain; then none is looked for any more, and counts as unknown.
 */
public class HostSearch {
  /** Of the time, in milliseconds. Not a setting: for tests. */
  private static final String MOST = "hivekeeper.host-search.most-ms";
  private static final int MOST_MS = 60000;
  /** Is not looked for. */
  private static final String ADDRESS = "[0-9.]+|\\[.*\\]";
  private static final AtomicLong inVain = new AtomicLong();

  private HostSearch() {}

  static InetAddress find(Configuration conf, String host) throws UnknownHostException {
    boolean isOver = inVain.get() > TimeUnit.MILLISECONDS.toNanos(conf.getInt(MOST, MOST_MS));
    if (isOver && !host.matches(ADDRESS)) throw new UnknownHostException(host);
    long begin = System.nanoTime();
    try {
      return InetAddress.getByName(host);
    } catch (UnknownHostException unknown) {
      inVain.addAndGet(System.nanoTime() - begin);
      throw unknown;
    }
  }
}
