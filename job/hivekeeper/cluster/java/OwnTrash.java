package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * The directories of this user's trash. In an encryption zone anybody may make them before this user does, and what goes there is in the hands
 * of whoever owns a directory around it, or may write to one.
 */
class OwnTrash {
  private final Place place;
  private boolean hasIds;

  /** `place`: what is to go there. `hasIds`: whether that is found by its id. */
  OwnTrash(Place place, boolean hasIds) {
    this.place = place;
    this.hasIds = hasIds;
  }

  /**
   * The directory `wanted` at or below `root`, which nobody else may pass, nor write to one between; those that are missing are made. By its id
   * if there are ids: what others may do above `root` does not matter then. Raises ForeignTrash.
   */
  Path open(Path root, Path wanted) throws IOException {
    List<Path> down = new ArrayList<Path>();
    for (Path one = wanted; !one.equals(root); one = one.getParent()) down.add(0, one);
    // A router may have the trash in another nameservice.
    hasIds = hasIds && place.beside(root).hasIds();
    Path exact = openOne(root, root, false);
    if (!hasIds) requireFixed(root.getParent());
    for (Path one : down) exact = openOne((Path) one, Path.mergePaths(exact, new Path("/" + ((Path) one).getName())), one.equals(wanted));
    return exact;
  }

  /**
   * `exact` is the same directory as `path`, in the one that was looked at before it. The last one must be closed: where others may write around
   * the trash, it may be any directory of this user that they have brought, with those below it.
   */
  private Path openOne(Path path, Path exact, boolean isLast) throws IOException {
    Place there = place.beside(exact);
    FileEntry found = FileEntry.at(there);
    if (found == null) {
      make(there);
      // Somebody else may have been faster.
      found = FileEntry.at(there);
    }
    if (found == null) throw new FileNotFoundException(path + ": no such directory");
    if (!hasIds && place.isHdfs() && !isListed(exact, found)) throw new ForeignTrash(path, "is in another nameservice than the directory around it");
    if (!Rights.isOurs(there, found, exact)) throw new ForeignTrash(path, "belongs to " + found.owner);
    if (!found.isDir) throw new ForeignTrash(path, "is not a directory");
    if (Rights.mayOthersWrite(found)) throw new ForeignTrash(path, "is open for others to write to");
    if (isLast && (found.mode & 077) != 0) throw new ForeignTrash(path, "is open for others");
    return hasIds ? place.fs.makeQualified(new Path(Place.BY_ID + found.fileId)) : exact;
  }

  /**
   * Whether it is in the directory by whose path it is found. A router has what is below `Current` in the nameservice that has the same path
   * without the trash (MountTableResolver.processTrashPath), so the directories around it may be others than those that were looked at.
   */
  private boolean isListed(Path path, FileEntry found) throws IOException {
    RemoteIterator<?> listed = place.fs.listStatusIterator(path.getParent());
    while (listed.hasNext()) {
      FileStatus one = (FileStatus) listed.next();
      if (one.getPath().getName().equals(path.getName())) return Place.isSame(found, FileEntry.of(one));
    }
    return false;
  }

  /** For this user alone, whatever the parent's default ACL says. */
  private static void make(Place there) throws IOException {
    if (there.isLocal()) LocalFiles.makeDirectory(LocalFiles.path(there.real), true);
    else if (!there.fs.mkdirs(there.real, Directories.OWNER_ONLY)) throw new IOException(there.path + ": the directory could not be made");
  }

  /** Where a directory is found by its path alone, nobody else may exchange it. */
  private void requireFixed(Path around) throws IOException {
    FileEntry found = FileEntry.at(place.beside(around));
    boolean isFixed = found != null && (!Rights.mayOthersWrite(found) || (found.mode & Rights.STICKY) != 0);
    if (!isFixed) throw new ForeignTrash(around, "is open for others to exchange the trash in it");
  }
}
