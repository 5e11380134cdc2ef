package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.viewfs.ViewFileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.ipc.RemoteException;

/**
 * The real place of a path: behind a ViewFs mount is a file system that knows ids and open files.
 *
 * `path` is the path as its own file system spells it; `real` is the one on `fs`, null if a mount leads nowhere.
 */
class Place {
  /** HDFS finds a file or directory by its id below this path, wherever it is. */
  static final String BY_ID = "/.reserved/.inodes/";
  private static final int MOST_TRIES = 5;

  final FileSystem fs;
  final Path path;
  final Path real;

  private Place(FileSystem fs, Path path, Path real) {
    this.fs = fs;
    this.path = path;
    this.real = real;
  }

  static Place of(Configuration conf, String text) throws IOException {
    Path path = new Path(text);
    FileSystem fs = path.getFileSystem(conf);
    path = fs.makeQualified(path);
    if (!(fs instanceof ViewFileSystem)) return new Place(fs, path, path);
    try {
      Path real = fs.resolvePath(path);
      return new Place(real.getFileSystem(conf), path, real);
    } catch (FileNotFoundException absent) {
      return new Place(fs, path, null);
    }
  }

  /** The path, or its nearest parent that exists. */
  static Place nearest(Configuration conf, String text) throws IOException {
    Path path = new Path(text);
    Place place = of(conf, text);
    while ((place.real == null || !place.fs.exists(place.real)) && path.getParent() != null) {
      path = path.getParent();
      place = of(conf, path.toString());
    }
    return place;
  }

  /** Another path on the same file system. */
  Place beside(Path other) {
    return new Place(fs, other, other);
  }

  /** The same on HDFS, by the id of what is there, so that nobody can put another one there. In a snapshot an id is that of the present. */
  Place byId(long fileId) {
    return mayHaveIds() ? new Place(fs, path, new Path(BY_ID + fileId)) : this;
  }

  private boolean mayHaveIds() {
    return isHdfs() && !(real.toUri().getPath() + "/").contains("/.snapshot/");
  }

  /**
   * Whether the NameNode that knows this path is the one that is asked for ids. A router asks that of one nameservice for all ids, whichever has
   * the path, and ids alone do not tell, because all NameNodes count from the same number. So what is at the path, or else the nearest
   * directory above, must be the same by its id.
   */
  boolean hasIds() throws IOException {
    return isSameById(0);
  }

  /** The same by just what has this id. Fails if something else is at the path: it may be a stranger's. */
  boolean isFoundById(long fileId) throws IOException {
    return isSameById(fileId);
  }

  /** Fails unless hasIds. What this user may not look at by its id counts as another one. */
  void requireIds() throws IOException {
    boolean hasIds = false;
    try {
      hasIds = hasIds();
    } catch (IOException failed) {
      if (!Denials.isDenial(failed)) throw failed;
    }
    if (!hasIds) throw new UnsupportedOperationException(path + ": it is not found by ids: is there a router?");
  }

  /**
   * Whether the file that was here is found by this id, by the NameNode that has what is here now: not in a snapshot, behind a mount, or in
   * another nameservice behind a router. Blocks tell, because each NameNode has a pool of its own: whoever has files in two nameservices
   * can make all else alike.
   */
  boolean isFileFoundById(long fileId) throws IOException {
    if (!mayHaveIds() || !path.equals(real)) return false;
    String pool = poolAt(real.toUri().getPath());
    return !pool.isEmpty() && pool.equals(poolAt(BY_ID + fileId));
  }

  private String poolAt(String named) throws IOException {
    try {
      return poolOf(hdfs().getClient().getLocatedBlocks(named, 0, 1));
    } catch (FileNotFoundException gone) {
      return "";
    } catch (IOException failed) {
      if (!isUnmounted(failed)) throw failed;
      return "";
    }
  }

  /** "" of a file without blocks. */
  static String poolOf(LocatedBlocks blocks) {
    return blocks.locatedBlockCount() == 0 ? "" : blocks.get(0).getBlock().getBlockPoolId();
  }

  private boolean isSameById(long fileId) throws IOException {
    if (!mayHaveIds()) return false;
    Place there = this;
    for (int tries = 0; tries < MOST_TRIES; ) {
      FileEntry named = FileEntry.at(there);
      if (fileId != 0 && (named == null || named.fileId != fileId)) throw new FileNotFoundException(path + ": another one is there");
      if (named == null && there.real.isRoot()) return false;
      if (named == null) {
        there = beside(there.real.getParent());
        continue;
      }
      if (isSame(named, entryOf(named.fileId))) return true;
      // Unless it was changed between these calls, what has its id is another one.
      if (isSame(named, FileEntry.at(there))) return false;
      tries++;
    }
    throw new IOException(path + ": it is being changed again and again");
  }

  /** Null if nothing has this id. */
  private FileEntry entryOf(long fileId) throws IOException {
    try {
      return FileEntry.at(byId(fileId));
    } catch (IOException failed) {
      if (!isUnmounted(failed)) throw failed;
      return null;
    }
  }

  /** Not by its length, which is another one while it is written. */
  static boolean isSame(FileEntry one, FileEntry other) {
    return other != null
        && one.fileId == other.fileId
        && one.isDir == other.isDir
        && one.mtimeMs == other.mtimeMs
        && one.mode == other.mode
        && one.owner.equals(other.owner)
        && one.group.equals(other.group);
  }

  /** Of one below the ids: the rest, which begins with an id. */
  String belowIds() {
    return real.toUri().getPath().substring(BY_ID.length());
  }

  /**
   * Whether something is in the very directory that a place below the ids names, as many levels below what has the id as the place is.
   *
   * HDFS finds what was deleted by the names that it had, as long as a snapshot has it (INode.getPathComponents): anything may be there by
   * now. The way up from what exists is sure.
   */
  boolean isBelowId(long fileId) throws IOException {
    String[] names = belowIds().split("/");
    long above = fileId;
    for (int level = 1; level < names.length && above != 0; level++) above = idAt(above + "/..");
    return above == Long.parseLong(names[0]);
  }

  /** The id of what is at a path below the ids, 0 if nothing is. Asked of the client, because a Path would resolve two dots itself. */
  long idAt(String below) throws IOException {
    try {
      HdfsFileStatus found = hdfs().getClient().getFileInfo(BY_ID + below);
      return found == null ? 0 : found.getFileId();
    } catch (FileNotFoundException gone) {
      return 0;
    } catch (IOException failed) {
      if (!isUnmounted(failed)) throw failed;
      return 0;
    }
  }

  /**
   * Whether a router says this that has no nameservice for a path, as for all that begin with an id
   * (dfs.federation.router.default.nameservice.enable=false). The class of the error depends on the version, the text does not.
   */
  static boolean isUnmounted(IOException error) {
    return error instanceof RemoteException && Messages.firstLine(error).startsWith("Cannot find locations for ");
  }

  void requireReal() throws FileNotFoundException {
    if (real == null) throw new FileNotFoundException(path + ": no such directory");
  }

  boolean isLocal() {
    return LocalFiles.holds(fs);
  }

  boolean isHdfs() {
    return fs instanceof DistributedFileSystem;
  }

  DistributedFileSystem hdfs() {
    return (DistributedFileSystem) fs;
  }
}
