package hivekeeper;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.security.AccessControlException;

/** What a file system raises because this user may not do something. */
public class Denials {
  /** Of Ranger's plugin in the NameNode, which HDFS's client does not know, so it leaves it wrapped. */
  private static final String OF_RANGER = "org.apache.ranger.authorization.hadoop.exceptions.RangerAccessControlException";

  private Denials() {}

  public static boolean isDenial(IOException error) {
    if (error instanceof RemoteException) return OF_RANGER.equals(((RemoteException) error).getClassName());
    return error instanceof AccessControlException || error instanceof AccessDeniedException;
  }

  /** A denial with what this user may not do; any other error as it is. */
  static IOException explained(IOException error, Path path, String act) {
    return isDenial(error) ? new AccessControlException(path + ": may not " + act + ": " + Messages.firstLine(error)) : error;
  }
}
