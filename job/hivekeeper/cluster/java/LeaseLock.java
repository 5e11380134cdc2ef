package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.CryptoOutputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.ipc.RemoteException;

/**
 * Locks on HDFS: a file kept open for append. HDFS refuses any other create or append while this client renews its lease.
 */
public class LeaseLock {
  private static final int OWNER_ONLY = 0600;

  private final Configuration conf;
  private final Map<Integer, Held> locks = new HashMap<Integer, Held>();
  private int lastNumber = 0;

  public LeaseLock(Configuration conf) {
    this.conf = conf;
  }

  /** The open file of one lock; `out` is null once it was lost. */
  private static class Held {
    final Place directory;
    final Path path;
    final boolean isMounted;
    final long fileId;
    FSDataOutputStream out;

    Held(Place directory, Path path, FSDataOutputStream out) {
      this.directory = directory;
      this.path = path;
      this.isMounted = !directory.path.equals(directory.real);
      this.out = out;
      this.fileId = idOf(out);
    }

    /** Asked of the stream: another file may be at the path already. In an encryption zone the stream encrypts for another one. */
    private static long idOf(FSDataOutputStream out) {
      OutputStream inner = out.getWrappedStream();
      if (inner instanceof CryptoOutputStream) inner = ((CryptoOutputStream) inner).getWrappedStream();
      return ((DFSOutputStream) inner).getFileId();
    }

    boolean isAtPath() throws IOException {
      return ((HdfsFileStatus) directory.hdfs().getFileStatus(path)).getFileId() == fileId;
    }
  }

  /** Returns the lock's number. Adds the holder's line to the file. */
  public int hold(String directory, String name, String holder) throws IOException {
    Place place = Place.of(conf, directory);
    Path path = new Path(place.real, name);
    FSDataOutputStream out = openForAppend(place.hdfs(), path);
    try {
      out.write((holder + "\n").getBytes("UTF-8"));
      out.hsync();
    } catch (IOException failed) {
      IOUtils.closeStream(out);
      throw failed;
    }
    Held held = new Held(place, path, out);
    synchronized (locks) {
      lastNumber++;
      locks.put(lastNumber, held);
      return lastNumber;
    }
  }

  /** Never with overwrite: that would take the file from a live holder, who does not notice. */
  private static FSDataOutputStream openForAppend(DistributedFileSystem fs, Path path) throws IOException {
    try {
      return fs.append(path);
    } catch (FileNotFoundException absent) {
      return TextFiles.create(fs, path, OWNER_ONLY);
    }
  }

  /** Only a flush that updates the length reaches the NameNode, which finds the file by its id, so the path is checked too. */
  public boolean isHeld(int number) throws IOException {
    Held held = find(number);
    if (held.out == null) return false;
    try {
      ((HdfsDataOutputStream) held.out).hsync(EnumSet.of(HdfsDataOutputStream.SyncFlag.UPDATE_LENGTH));
      return held.isAtPath();
    } catch (IOException failed) {
      if (!saysLost(failed)) throw failed;
      // The failure has closed the stream: a second call would report only that.
      held.out = null;
      return false;
    }
  }

  /**
   * [the id of the directory that the lock's file is in, that of the directory around it], wherever these are; 0 where nothing is found by its
   * id, as behind a router (Place.hasIds) or a mount (with ViewFileSystemOverloadScheme one is at `hdfs:`, too). Where
   * it may not be asked, or the lock is not at its path, as whoever may move the directory can have it for one call, this fails: without the
   * id another directory could be at its path for the whole run.
   */
  public String directoryIds(int number) throws IOException {
    Held held = find(number);
    if (held.isMounted || !held.directory.beside(held.path).isFoundById(held.fileId)) return Json.write(new long[] {0, 0});
    long id = held.directory.idAt(held.fileId + "/..");
    if (id == 0) throw new FileNotFoundException(held.path + ": the file of the lock was deleted");
    return Json.write(new long[] {id, held.directory.idAt(id + "/..")});
  }

  public void release(int number) throws IOException {
    Held held = find(number);
    synchronized (locks) {
      locks.remove(number);
    }
    if (held.out == null) return;
    try {
      held.out.close();
    } catch (IOException failed) {
      // Taken over meanwhile: there is nothing left to release.
      if (!saysLost(failed)) throw failed;
    }
  }

  /** The file is gone, or another client has the lease. These calls do not unwrap the server's exception. */
  private static boolean saysLost(IOException failed) {
    String name = failed instanceof RemoteException ? ((RemoteException) failed).getClassName() : failed.getClass().getName();
    return name.endsWith(".FileNotFoundException") || name.endsWith(".LeaseExpiredException");
  }

  private Held find(int number) {
    synchronized (locks) {
      return (Held) locks.get(number);
    }
  }
}
