package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.security.UserGroupInformation;

/** Reads who owns the upper levels of a tree and who else may write there; sets mode, group and ACL of directories and files. */
public class Rights {
  /** With an extended ACL the group bits are its mask: without w in it, only the owner can write. */
  private static final int WRITE_OF_OTHERS = 0022;
  static final int STICKY = 01000;

  private final Configuration conf;
  private int mostListed = 1000000;
  private int mostExposed = 200000;
  private int mostAcls = 1000;

  public Rights(Configuration conf) {
    this.conf = conf;
  }

  /** So many entries of a control directory are listed, which has a few for each run. */
  public void setMostListed(int most) {
    mostListed = most;
  }

  /** So many of them may be another user's, as those of a trusted owner are, or open to others. */
  public void setMostExposed(int most) {
    mostExposed = most;
  }

  /** So many ACLs of them are asked for, one by one: each costs a call and may have some kilobytes. */
  public void setMostAcls(int most) {
    mostAcls = most;
  }

  /** A file or directory that another user owns or others may write to; `model.Exposed`. */
  public static class Exposed {
    public String path;
    public boolean isDir;
    public String owner;
    public String group;
    public int mode;
    public boolean isOurs;
    public List<String> acl = Collections.emptyList();
  }

  /** `model.Guard` in JSON; a null fileMode leaves the files in the directory as they are. */
  public static class Guard {
    public int mode;
    public Integer fileMode;
    public String group;
    public List<String> acl = Collections.emptyList();
    /** Of the directory that is meant; 0 for whichever is at the path. */
    public long fileId;
  }

  /**
   * What another user owns or others may write to: top itself, and entries down to `levels` levels below it. Fails if they are too many: whoever
   * may write to the directory around it can put another one at its place, after its owner was looked at. Not all of
   * them have their ACL; without one, what others may write to counts as open to its group.
   */
  public String exposed(String top, final int levels) throws Exception {
    List<Object> found = new ArrayList<Object>();
    Place place = Place.of(conf, top);
    FileEntry own = place.real == null ? null : FileEntry.at(place);
    if (own == null) return "[]";
    Listed listed = new Listed();
    listed.addExposed(found, place, own, place.real);
    List<String> level = Collections.singletonList(top);
    for (int depth = 1; depth <= levels && own.isDir; depth++) {
      List<String> below = new ArrayList<String>();
      for (Object each : WorkerPool.map(level, listed)) {
        found.addAll(((Children) each).exposed);
        below.addAll(((Children) each).directories);
      }
      level = below;
    }
    return Json.write(found);
  }

  /** A directory and all above it, as far as they are there, the root first: behind a mount where it leads. `model.Exposed`, whoever owns them. */
  public String wayTo(String directory) throws IOException {
    Place place = Place.nearest(conf, directory);
    place.requireReal();
    List<Path> down = new ArrayList<Path>();
    for (Path one = place.real; one != null; one = one.getParent()) down.add(0, one);
    List<Object> found = new ArrayList<Object>();
    Listed listed = new Listed();
    for (Path one : down) {
      Place there = place.beside(one);
      FileEntry entry = FileEntry.at(there);
      // Who may exchange one that was there a moment ago is told.
      if (entry == null) break;
      found.add(listed.exposed(there, entry, one, isOurs(there, entry, one)));
    }
    return Json.write(found);
  }

  /** The result of one listing. */
  private static class Children {
    final List<Object> exposed = new ArrayList<Object>();
    final List<String> directories = new ArrayList<String>();
  }

  /** Nothing below a directory that is unreadable or has disappeared; its own owner and mode are known already. */
  private class Listed implements WorkerPool.Task {
    private final AtomicInteger left = new AtomicInteger(mostListed);
    private final AtomicInteger exposedLeft = new AtomicInteger(mostExposed);
    private final AtomicInteger aclsLeft = new AtomicInteger(mostAcls);

    public Object of(Object directory) throws Exception {
      Children found = new Children();
      Place place = Place.of(conf, (String) directory);
      if (place.real == null) return found;
      List<FileEntry> entries;
      try {
        entries = list(place, left);
      } catch (FileNotFoundException gone) {
        return found;
      } catch (NoSuchFileException gone) {
        return found;
      } catch (IOException failed) {
        if (!Denials.isDenial(failed)) throw failed;
        return found;
      }
      for (FileEntry entry : entries) {
        addExposed(found.exposed, place, entry, new Path(place.real, entry.name));
        if (entry.isDir) found.directories.add(place.path + "/" + entry.name);
      }
      return found;
    }

    /** `place` is the entry itself or its directory, `real` is the entry. */
    void addExposed(List<Object> found, Place place, FileEntry entry, Path real) throws IOException {
      boolean ours = isOurs(place, entry, real);
      if (ours && !mayOthersWrite(entry)) return;
      if (exposedLeft.decrementAndGet() < 0) throw tooMany(place, "entries of others");
      found.add(exposed(place, entry, real, ours));
    }

    Exposed exposed(Place place, FileEntry entry, Path real, boolean ours) throws IOException {
      Exposed exposed = new Exposed();
      exposed.path = real.equals(place.real) ? place.path.toString() : place.path + "/" + entry.name;
      exposed.isDir = entry.isDir;
      exposed.owner = entry.owner;
      exposed.group = entry.group;
      exposed.mode = entry.mode;
      exposed.isOurs = ours;
      if (entry.hasAcl && mayOthersWrite(entry)) exposed.acl = aclOf(place, entry, real, ours);
      return exposed;
    }

    /** None where it is not asked for, may not be known, or is gone. */
    private List<String> aclOf(Place place, FileEntry entry, Path real, boolean ours) throws IOException {
      // What a directory of this user gets in place of its ACL depends on it.
      boolean isNeeded = ours && entry.isDir;
      if (aclsLeft.decrementAndGet() < 0) {
        if (isNeeded) throw tooMany(place, "ACLs that give others the right to write");
        return Collections.emptyList();
      }
      try {
        return Attributes.aclOf(place.fs, place.fs.getFileStatus(real));
      } catch (FileNotFoundException gone) {
        return Collections.emptyList();
      } catch (IOException failed) {
        if (isNeeded || !Denials.isDenial(failed)) throw failed;
        return Collections.emptyList();
      }
    }
  }

  private static List<FileEntry> list(Place place, AtomicInteger left) throws IOException {
    List<FileEntry> entries = new ArrayList<FileEntry>();
    if (place.isLocal()) entries = LocalFiles.entries(place);
    else {
      for (RemoteIterator<?> found = place.fs.listStatusIterator(place.real); found.hasNext() && entries.size() <= left.get();) {
        entries.add(FileEntry.of((FileStatus) found.next()));
      }
    }
    if (left.addAndGet(-entries.size()) < 0) throw tooMany(place, "entries");
    return entries;
  }

  /** Which is an answer, not a failure of the file system: it will be the same the next time. */
  private static UnsupportedOperationException tooMany(Place place, String what) {
    return new UnsupportedOperationException(place.path + " and what is around it have too many " + what);
  }

  /** Whether a listing shows a directory of this user, with rights for nobody else. Of local files it takes a process to tell an owner. */
  public static boolean mayBeClosedDirectoryOfOurs(FileSystem fs, FileStatus listed) throws IOException {
    if (!listed.isDirectory() || LocalFiles.holds(fs)) return listed.isDirectory();
    return (listed.getPermission().toShort() & 0777) == 0700 && currentUser().equals(listed.getOwner());
  }

  /** Whether there is a directory of this user, with rights for nobody else. */
  public static boolean isClosedDirectoryOfOurs(Configuration conf, String directory) throws IOException {
    Place place = Place.of(conf, directory);
    FileEntry own = place.real == null ? null : FileEntry.at(place);
    return own != null && own.isDir && (own.mode & 0777) == 0700 && isOurs(place, own, place.real);
  }

  /**
   * The path of a directory that begins with its id, so that nobody can put another one there; the same path where none is found so: on local
   * files, behind a router or a mount.
   */
  public static String exactly(Configuration conf, String directory) throws IOException {
    Place place = Place.of(conf, directory);
    place.requireReal();
    if (!place.isHdfs() || !place.path.equals(place.real)) return directory;
    FileEntry there = FileEntry.at(place);
    if (there == null || !there.isDir) throw new FileNotFoundException(directory + ": no such directory");
    Path exact = find(place, there.fileId);
    return exact.equals(place.real) ? directory : exact.toString();
  }

  static boolean mayOthersWrite(FileEntry entry) {
    return (entry.mode & WRITE_OF_OTHERS) != 0;
  }

  static boolean isOurs(Place place, FileEntry entry, Path real) throws IOException {
    return place.isLocal() ? LocalFiles.isOurs(real) : currentUser().equals(entry.owner);
  }

  /** This user as an owner on HDFS. */
  public String user() throws IOException {
    return currentUser();
  }

  private static String currentUser() throws IOException {
    return UserGroupInformation.getCurrentUser().getShortUserName();
  }

  /** {path: guard}: applies these to directories and the files in them, or to a file. Changes nothing that is right already. */
  public void give(String wanted) throws Exception {
    final Map<String, Object> all = Json.readMapOf(Guard.class, wanted);
    WorkerPool.map(new ArrayList<String>(all.keySet()), new WorkerPool.Task() {
      public Object of(Object path) throws Exception {
        Place place = Place.of(conf, (String) path);
        place.requireReal();
        giveTo(place, (Guard) all.get(path));
        return null;
      }
    });
  }

  private static void giveTo(Place place, Guard wanted) throws IOException {
    Path real = wanted.fileId == 0 ? place.real : find(place, wanted.fileId);
    if (place.isLocal()) {
      LocalFiles.give(place, wanted);
      return;
    }
    FileStatus status = place.fs.getFileStatus(real);
    giveToOne(place.fs, status, wanted, wanted.mode, wanted.acl);
    if (wanted.fileMode == null || !status.isDirectory()) return;
    for (FileStatus child : place.fs.listStatus(real)) {
      if (!child.isDirectory()) giveToOne(place.fs, child, wanted, wanted.fileMode, Collections.<String>emptyList());
    }
  }

  /** The path of a directory by its id; where that is not known, its own path. Fails if another one is there. */
  private static Path find(Place place, long fileId) throws IOException {
    if (place.isFoundById(fileId)) return place.fs.makeQualified(place.byId(fileId).real);
    FileEntry there = FileEntry.at(place);
    if (there == null || there.fileId != fileId) throw new FileNotFoundException(place.path + ": another directory is there");
    return place.real;
  }

  private static void giveToOne(FileSystem fs, FileStatus status, Guard wanted, int mode, List<String> acl) throws IOException {
    Path path = status.getPath();
    FsPermission permission = new FsPermission((short) mode);
    String act = "give it to the group " + wanted.group;
    try {
      if (wanted.group != null && !wanted.group.equals(status.getGroup())) fs.setOwner(path, null, wanted.group);
      act = "set the ACL";
      if (giveAcl(fs, status, permission, acl)) status = fs.getFileStatus(path);
      act = "set the mode " + permission;
      if (status.getPermission().toShort() != permission.toShort()) fs.setPermission(path, permission);
    } catch (IOException failed) {
      throw Denials.explained(failed, path, act);
    }
  }

  /**
   * Whether anything was set. If no ACL is wanted, a minimal one of three entries replaces the present one in one step: removeAcl would
   * restore the rights that the group had before the mask limited them.
   */
  private static boolean giveAcl(FileSystem fs, FileStatus status, FsPermission permission, List<String> wanted) throws IOException {
    if (!(fs instanceof DistributedFileSystem)) return false;
    Path path = status.getPath();
    List<String> present = Attributes.aclOf(fs, status);
    if (present.equals(wanted)) return false;
    if (status.isDirectory() && !present.isEmpty()) fs.removeDefaultAcl(path);
    String bare = "user::" + permission.getUserAction().SYMBOL
        + ",group::" + permission.getGroupAction().SYMBOL
        + ",other::" + permission.getOtherAction().SYMBOL;
    fs.setAcl(path, AclEntry.parseAclSpec(wanted.isEmpty() ? bare : String.join(",", wanted), true));
    return true;
  }
}
