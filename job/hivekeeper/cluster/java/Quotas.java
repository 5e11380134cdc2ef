package hivekeeper;

import java.io.IOException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.ipc.RemoteException;

/** The quota of a directory and what it leaves, by way of a router too. */
public class Quotas {
  /** What a router says with dfs.federation.router.quota.enable=false, its default. */
  private static final String SWITCHED_OFF = "The quota system is disabled in Router";

  /** Of a NameNode that counts a tree of some thousand levels, each on its stack (INodeDirectory.computeContentSummary). */
  private static final String TOO_DEEP = "java.lang.StackOverflowError";

  private Quotas() {}

  /**
   * Without a quota of its own the NameNode counts everything below, level by level. Behind a router one for a type of storage alone may not
   * be shown.
   */
  public static QuotaUsage of(FileSystem fs, Path path) throws IOException {
    try {
      return fs.getQuotaUsage(path);
    } catch (IOException failed) {
      boolean isSwitchedOff = failed instanceof RemoteException && Messages.firstLine(failed).startsWith(SWITCHED_OFF);
      if (!isSwitchedOff) throw failed;
      // It is a QuotaUsage, of the NameNode itself.
      return fs.getContentSummary(path);
    }
  }

  /** A router tells the class in its own message. */
  private static boolean isTooDeep(IOException failed) {
    if (!(failed instanceof RemoteException)) return false;
    return TOO_DEEP.equals(((RemoteException) failed).getClassName()) || Messages.firstLine(failed).contains(TOO_DEEP);
  }

  /**
   * Whether a directory has no quota of its own that this user may know: to count what is below takes the right to read all of it, and fails
   * where anybody has made a tree that is too deep.
   */
  public static boolean isUncounted(IOException failed) {
    return isTooDeep(failed) || Denials.isDenial(failed);
  }
}
