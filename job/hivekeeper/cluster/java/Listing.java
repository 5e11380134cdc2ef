package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** Lists any number of directories in one call. Changes nothing. */
public class Listing {
  // The longest name that HDFS accepts by default.
  private static final int LONGEST_NAME = 255;

  private final Configuration conf;

  public Listing(Configuration conf) {
    this.conf = conf;
  }

  /** One directory at one moment; a missing one has only `asked`, the path as the caller spelled it. */
  public static class Snapshot {
    public String asked;
    public boolean exists;
    public String path;
    public long fileId;
    public long mtimeMs;
    public int mode;
    public List<FileEntry> entries;
  }

  /**
   * `most`: how many entries of all directories together are listed; no more are read then. `byId`: whether the server finds directories by
   * their ids.
   */
  public String look(String directories, int most, boolean byId) throws Exception {
    return lookAtAll(directories, most, byId, false);
  }

  /** Like look(), but returns only entries for which names.is_listed_above_units is true. */
  public String lookHidden(String directories, int most, boolean byId) throws Exception {
    return lookAtAll(directories, most, byId, true);
  }

  private String lookAtAll(String directories, int most, final boolean byId, final boolean hiddenOnly) throws Exception {
    final AtomicInteger left = new AtomicInteger(most);
    return Json.write(WorkerPool.map(Json.readStrings(directories), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        return snapshot((String) directory, byId, hiddenOnly, left);
      }
    }));
  }

  /** Like look(), for all directories from top downwards, parents first. */
  public String tree(String top) throws Exception {
    WorkerPool.Task look = new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        return snapshot((String) directory, false, false, new AtomicInteger(Integer.MAX_VALUE));
      }
    };
    List<Object> found = new ArrayList<Object>();
    List<String> level = Collections.singletonList(top);
    while (!level.isEmpty()) {
      List<Object> snapshots = WorkerPool.map(level, look);
      level = new ArrayList<String>();
      for (Object each : snapshots) {
        Snapshot snapshot = (Snapshot) each;
        if (!snapshot.exists) continue;
        found.add(snapshot);
        for (FileEntry entry : snapshot.entries) {
          if (entry.isDir) level.add(snapshot.path + "/" + entry.name);
        }
      }
    }
    return Json.write(found);
  }

  /** {path, entry}; "null" if nothing exists there. */
  public String stat(String text) throws Exception {
    Place place = Place.of(conf, text);
    FileEntry entry = place.real == null ? null : FileEntry.at(place);
    if (entry == null) return "null";
    if (place.isHdfs() && !entry.isDir) entry.isOpen = !place.hdfs().isFileClosed(place.real);
    return Json.write(new Found(place, entry));
  }

  /** An entry, and where it is. */
  public static class Found {
    public final String path;
    public final FileEntry entry;

    Found(Place place, FileEntry entry) {
      this.path = place.path.toString();
      this.entry = entry;
    }
  }

  /**
   * Reads the directory's own id and time before its listing: a file added in between is in the listing or changes the time. `byId`: the listing
   * is that of this id, though another directory came to the path meanwhile.
   */
  private Snapshot snapshot(String text, boolean byId, boolean hiddenOnly, AtomicInteger left) throws IOException {
    Snapshot absent = new Snapshot();
    absent.asked = text;
    Place place = Place.of(conf, text);
    FileEntry own = place.real == null ? null : FileEntry.at(place);
    if (own == null || !own.isDir) return absent;
    Snapshot found = new Snapshot();
    found.asked = text;
    found.exists = true;
    found.path = place.path.toString();
    found.fileId = own.fileId;
    found.mtimeMs = own.mtimeMs;
    found.mode = own.mode;
    Place listed = byId ? place.byId(own.fileId) : place;
    try {
      found.entries = hiddenOnly && place.isHdfs() ? hiddenEntriesOfHdfs(listed, left) : entries(listed, hiddenOnly, left);
    } catch (FileNotFoundException removedMeanwhile) {
      return absent;
    } catch (NoSuchFileException removedMeanwhile) {
      return absent;
    }
    return found;
  }

  private List<FileEntry> entries(Place place, boolean hiddenOnly, AtomicInteger left) throws IOException {
    List<FileEntry> found = new ArrayList<FileEntry>();
    if (place.isLocal()) {
      for (FileEntry entry : LocalFiles.entries(place)) {
        if ((!hiddenOnly || isWanted(entry.name)) && !add(entry, found, left)) return found;
      }
      return found;
    }
    for (RemoteIterator<?> statuses = place.fs.listLocatedStatus(place.real); statuses.hasNext();) {
      FileStatus status = (FileStatus) statuses.next();
      if ((!hiddenOnly || isWanted(status.getPath().getName())) && !add(FileEntry.of(status), found, left)) return found;
    }
    return found;
  }

  /** Whether there was room for one more. */
  private static boolean add(FileEntry entry, List<FileEntry> found, AtomicInteger left) {
    if (left.getAndDecrement() <= 0) return false;
    found.add(entry);
    return true;
  }

  /**
   * A NameNode lists names in the order of their bytes, which have signs, a limited number per call. All other names are passed over: those
   * before the plus sign, with a comma, between a dot and an underscore, and after these. A root of ten thousand partitions costs two calls.
   * Reads the files' blocks too, which show whether a file is open.
   */
  private List<FileEntry> hiddenEntriesOfHdfs(Place place, AtomicInteger left) throws IOException {
    List<FileEntry> found = new ArrayList<FileEntry>();
    DFSClient client = place.hdfs().getClient();
    byte[] after = lastOf('*');
    while (true) {
      DirectoryListing part = client.listPaths(place.real.toUri().getPath(), after, true);
      if (part == null) throw new FileNotFoundException(place.path.toString());
      for (HdfsFileStatus status : part.getPartialListing()) {
        boolean wanted = isWanted(status.getLocalName());
        if (wanted && !add(FileEntry.of(status.makeQualified(place.fs.getUri(), place.real)), found, left)) return found;
      }
      if (!part.hasMore() || part.getLastName()[0] > '_') return found;
      after = nextAfter(part.getLastName());
    }
  }

  private static byte[] nextAfter(byte[] last) {
    if (last[0] == ',') return lastOf(',');
    return last[0] > '.' && last[0] < '_' ? lastOf('^') : last;
  }

  /** The last of all names that begin so. */
  private static byte[] lastOf(char first) {
    byte[] name = new byte[LONGEST_NAME];
    Arrays.fill(name, Byte.MAX_VALUE);
    name[0] = (byte) first;
    return name;
  }

  private static boolean isWanted(String name) {
    return !name.isEmpty() && "._+-".indexOf(name.charAt(0)) >= 0;
  }
}
