package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** Lists any number of directories in one call. Changes nothing. */
public class Listing {
  private static final byte[] LAST_BEFORE_UNDERSCORE = {(byte) 0x5e, (byte) 0x7f};

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

  public String look(String directories) throws Exception {
    return Json.write(WorkerPool.map(Json.readStrings(directories), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        return snapshot((String) directory, false);
      }
    }));
  }

  /** Like look(), but returns only entries for which names.is_listed_above_units is true. */
  public String lookHidden(String directories) throws Exception {
    return Json.write(WorkerPool.map(Json.readStrings(directories), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        return snapshot((String) directory, true);
      }
    }));
  }

  /** Like look(), for all directories from top downwards, parents first. */
  public String tree(String top) throws Exception {
    WorkerPool.Task look = new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        return snapshot((String) directory, false);
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

  /** Reads the directory's own id and time before its listing: a file added in between is in the listing or changes the time. */
  private Snapshot snapshot(String text, boolean hiddenOnly) throws IOException {
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
    try {
      found.entries = hiddenOnly ? hiddenEntries(place) : allEntries(place);
    } catch (FileNotFoundException removedMeanwhile) {
      return absent;
    } catch (NoSuchFileException removedMeanwhile) {
      return absent;
    }
    return found;
  }

  private List<FileEntry> allEntries(Place place) throws IOException {
    if (place.isLocal()) return LocalFiles.entries(place);
    List<FileEntry> entries = new ArrayList<FileEntry>();
    for (RemoteIterator<?> statuses = place.fs.listLocatedStatus(place.real); statuses.hasNext();) {
      entries.add(FileEntry.of((FileStatus) statuses.next()));
    }
    return entries;
  }

  private List<FileEntry> hiddenEntries(Place place) throws IOException {
    if (place.isHdfs()) return hiddenEntriesOfHdfs(place);
    List<FileEntry> found = new ArrayList<FileEntry>();
    for (FileEntry entry : allEntries(place)) {
      if (isWanted(entry.name)) found.add(entry);
    }
    return found;
  }

  /**
   * A NameNode lists names in byte order, a limited number per call. Names between those starting with +, - or a dot and those starting
   * with an underscore are skipped, and so are names after these. A root of ten thousand partitions costs two calls. Reads the files'
   * blocks too, which show whether a file is open.
   */
  private List<FileEntry> hiddenEntriesOfHdfs(Place place) throws IOException {
    List<FileEntry> found = new ArrayList<FileEntry>();
    DFSClient client = place.hdfs().getClient();
    byte[] after = HdfsFileStatus.EMPTY_NAME;
    while (true) {
      DirectoryListing part = client.listPaths(place.real.toUri().getPath(), after, true);
      if (part == null) throw new FileNotFoundException(place.path.toString());
      for (HdfsFileStatus status : part.getPartialListing()) {
        if (isWanted(status.getLocalName())) found.add(FileEntry.of(status.makeQualified(place.fs.getUri(), place.real)));
      }
      if (!part.hasMore() || part.getLastName()[0] > '_') return found;
      boolean between = part.getLastName()[0] > '.' && part.getLastName()[0] < LAST_BEFORE_UNDERSCORE[0];
      after = between ? LAST_BEFORE_UNDERSCORE : part.getLastName();
    }
  }

  private static boolean isWanted(String name) {
    return !name.isEmpty() && "._+-".indexOf(name.charAt(0)) >= 0;
  }
}
