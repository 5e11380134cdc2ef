package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** Lists any number of directories in one call. Changes nothing. */
public class Listing {
  // The longest name that HDFS accepts by default.
  private static final int LONGEST_NAME = 255;

  private final Configuration conf;
  private final HdfsListing ofHdfs;

  public Listing(Configuration conf) {
    this.conf = conf;
    this.ofHdfs = new HdfsListing(conf);
  }

  /** Which entries of a directory are listed. */
  private static class Kind implements HdfsListing.Names {
    static final Kind ALL = new Kind(false, false);
    static final Kind HIDDEN = new Kind(true, false);
    static final Kind HIDDEN_DIRECTORIES = new Kind(true, true);

    final boolean hiddenOnly;
    final boolean directoriesOnly;

    private Kind(boolean hiddenOnly, boolean directoriesOnly) {
      this.hiddenOnly = hiddenOnly;
      this.directoriesOnly = directoriesOnly;
    }

    public boolean isWanted(String name) {
      return !hiddenOnly || (!name.isEmpty() && "._+-".indexOf(name.charAt(0)) >= 0);
    }

    boolean holds(FileEntry entry) {
      return isWanted(entry.name) && (entry.isDir || !directoriesOnly);
    }
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
    return lookAtAll(directories, most, byId, Kind.ALL);
  }

  /** Like look(), but returns only entries for which names.is_listed_above_units is true. */
  public String lookHidden(String directories, int most, boolean byId) throws Exception {
    return lookAtAll(directories, most, byId, Kind.HIDDEN);
  }

  /** Like lookHidden(), but returns only directories, and reads no blocks. */
  public String lookHiddenDirectories(String directories, int most, boolean byId) throws Exception {
    return lookAtAll(directories, most, byId, Kind.HIDDEN_DIRECTORIES);
  }

  private String lookAtAll(String directories, int most, final boolean byId, final Kind kind) throws Exception {
    final AtomicInteger left = new AtomicInteger(most);
    return Json.writeAscii(WorkerPool.map(Json.readStrings(directories), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        return snapshot((String) directory, byId, kind, left);
      }
    }));
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
  private Snapshot snapshot(String text, boolean byId, Kind kind, AtomicInteger left) throws IOException {
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
      found.entries = place.isHdfs() ? entriesOfHdfs(listed, byId, kind, left) : entries(listed, kind, left);
    } catch (FileNotFoundException removedMeanwhile) {
      return absent;
    } catch (NoSuchFileException removedMeanwhile) {
      return absent;
    }
    return found;
  }

  /** No file system but HDFS tells which files are open. */
  private static List<FileEntry> entries(Place place, Kind kind, AtomicInteger left) throws IOException {
    List<FileEntry> found = new ArrayList<FileEntry>();
    if (place.isLocal()) {
      for (FileEntry entry : LocalFiles.entries(place)) {
        if (kind.holds(entry) && !add(entry, found, left)) return found;
      }
      return found;
    }
    for (RemoteIterator<?> statuses = place.fs.listStatusIterator(place.real); statuses.hasNext();) {
      FileEntry entry = FileEntry.of((FileStatus) statuses.next());
      if (kind.holds(entry) && !add(entry, found, left)) return found;
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
   * A NameNode lists names in the order of their bytes, which have signs, a limited number per call. Where only hidden ones are wanted, all
   * others are passed over: those before the plus sign, with a comma, between a dot and an underscore, and after these. A root of ten
   * thousand partitions costs two calls.
   */
  private List<FileEntry> entriesOfHdfs(Place place, boolean byId, Kind kind, AtomicInteger left) throws IOException {
    List<FileEntry> found = new ArrayList<FileEntry>();
    byte[] after = kind.hiddenOnly ? lastOf('*') : HdfsFileStatus.EMPTY_NAME;
    while (left.get() > 0) {
      HdfsListing.Part part =
          kind.directoriesOnly ? HdfsListing.readDirectories(place, after, kind) : ofHdfs.read(place, after, kind, byId);
      for (FileEntry entry : part.entries) {
        if (!add(entry, found, left)) return found;
      }
      if (!part.hasMore || (kind.hiddenOnly && part.last[0] > '_')) return found;
      after = kind.hiddenOnly ? nextAfter(part.last) : part.last;
    }
    return found;
  }

  /** The name after which a listing of hidden names goes on: behind all that begin with a character between those of hidden ones. */
  public static byte[] nextAfter(byte[] last) {
    byte[] next = last[0] == ',' ? lastOf(',') : last[0] > '.' && last[0] < '_' ? lastOf('^') : last;
    // A NameNode may take longer names, which come behind that (dfs.namenode.fs-limits.max-component-length).
    return DFSUtilClient.compareBytes(next, last) > 0 ? next : last;
  }

  /** The last of all names that begin so. */
  private static byte[] lastOf(char first) {
    byte[] name = new byte[LONGEST_NAME];
    Arrays.fill(name, Byte.MAX_VALUE);
    name[0] = (byte) first;
    return name;
  }
}
