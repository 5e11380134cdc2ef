package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.Trash;
import org.apache.hadoop.fs.TrashPolicy;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.security.AccessControlException;

/** Creates and deletes directories, and deletes files. */
public class Directories {
  static final FsPermission OWNER_ONLY = new FsPermission((short) 0700);

  private final Configuration conf;

  public Directories(Configuration conf) {
    this.conf = conf;
  }

  /** For this user alone, whatever the parent's default ACL says: the mode's empty group bits become the mask of the new ACL. */
  public void make(String text) throws IOException {
    Path path = new Path(text);
    FileSystem fs = path.getFileSystem(conf);
    if (LocalFiles.holds(fs)) {
      LocalFiles.makeDirectory(LocalFiles.path(fs.makeQualified(path)), true);
      return;
    }
    if (!fs.mkdirs(path, OWNER_ONLY)) throw new IOException(text + ": the directory could not be made");
  }

  /** The same in a directory that exists. */
  public void makeInside(String text) throws IOException {
    Place around = Place.of(conf, new Path(text).getParent().toString());
    around.requireReal();
    makeClosed(around, inside(around.real, new Path(text).getName()));
  }

  /**
   * The same with an empty file in it, if nothing is there. `name`: the same, below a name that nobody can guess.
   * There it is made with the file in it, and comes to its place then: no other directory gets that file or comes there, whoever exchanges
   * some meanwhile.
   */
  public void makeSealed(String text, String unguessable, String name, String seal) throws IOException {
    Place around = Place.of(conf, new Path(text).getParent().toString());
    around.requireReal();
    Path path = inside(around.real, new Path(text).getName());
    FileEntry present = FileEntry.at(around.beside(path));
    if (present != null && !present.isDir) throw new FileAlreadyExistsException(text + ": exists and is not a directory");
    if (present != null) return;
    Path named = inside(around.real, unguessable);
    Path closed = makeFixed(around, named);
    Path made = inside(closed, name);
    boolean isInPlace = false;
    try {
      if (closed.equals(named)) makeWithFile(around, made, seal);
      // In one step: the mode is that of the directory around.
      else TextFiles.createWithDirectory(around.hdfs(), inside(made, seal)).close();
      new Renames(conf).rename(made.toString(), path.toString());
      isInPlace = true;
    } catch (FileAlreadyExistsException standing) {
      // Of another run, perhaps: whoever takes the lock in it sees.
      return;
    } finally {
      if (!isInPlace) discard(around.fs, inside(made, seal), made);
      discard(around.fs, closed);
    }
  }

  private static Path inside(Path directory, String name) {
    return Path.mergePaths(directory, new Path("/" + name));
  }

  private static void makeClosed(Place around, Path directory) throws IOException {
    if (around.isLocal()) LocalFiles.makeDirectory(LocalFiles.path(directory), false);
    else if (!around.hdfs().mkdir(directory, OWNER_ONLY)) throw new IOException(directory + ": the directory could not be made");
  }

  /**
   * Makes a closed directory. Returns its path, by its id where directories are found so: nobody can put another one there from then on. Fails if
   * somebody did before. An empty one would serve as well.
   */
  private static Path makeFixed(Place around, Path directory) throws IOException {
    makeClosed(around, directory);
    Place made = around.beside(directory);
    FileEntry entry = FileEntry.at(made);
    if (entry == null) throw new FileNotFoundException(directory + ": no such directory");
    if (!made.isFoundById(entry.fileId)) return directory;
    Path exact = around.fs.makeQualified(new Path(Place.BY_ID + entry.fileId));
    boolean isNew = Rights.isOurs(made, entry, exact) && entry.mode == OWNER_ONLY.toShort() && !around.fs.listStatusIterator(exact).hasNext();
    if (!isNew) throw new IOException(directory + ": another directory was put in its place");
    return exact;
  }

  private static void makeWithFile(Place around, Path directory, String file) throws IOException {
    makeClosed(around, directory);
    if (around.isLocal()) LocalFiles.makeFile(LocalFiles.path(inside(directory, file)));
    else TextFiles.create(around.hdfs(), inside(directory, file), 0600).close();
  }

  /** One after the other, as long as they are empty; what stays under such a name is nothing that anybody looks for. */
  private static void discard(FileSystem fs, Path... paths) {
    try {
      for (Path path : paths) {
        if (!fs.delete(path, false)) return;
      }
    } catch (IOException kept) {
      return;
    }
  }

  /** False if it is not empty or does not exist. */
  public boolean deleteEmpty(String text) throws IOException {
    Path path = new Path(text);
    FileSystem fs = path.getFileSystem(conf);
    try {
      // A plain delete would also delete a file.
      if (!fs.getFileStatus(path).isDirectory() || fs.listStatusIterator(path).hasNext()) return false;
      return fs.delete(path, false);
    } catch (FileNotFoundException absent) {
      return false;
    } catch (IOException refused) {
      if (fs.listStatusIterator(path).hasNext()) return false;
      throw refused;
    }
  }

  public void deleteTree(String text) throws IOException {
    Path path = new Path(text);
    if (path.isRoot()) throw new AccessControlException(text + ": a root is never deleted");
    FileSystem fs = path.getFileSystem(conf);
    if (!fs.delete(path, true) && fs.exists(path)) throw new IOException(text + ": could not be deleted");
  }

  /** Not more than one inode, whatever is at the path by now. */
  public void deleteFile(String text) throws IOException {
    Path path = new Path(text);
    deleteOne(path.getFileSystem(conf), path);
  }

  /**
   * The file with this name and id in the directory with this id. A NameNode finds that one wherever it is, local files have no such paths, and
   * a router may ask another NameNode (Place.hasIds).
   */
  public void deleteListed(String text, long directoryId, long fileId) throws IOException {
    Place place = Place.of(conf, text);
    if (place.real == null) return;
    Path exact = new Path(Place.BY_ID + directoryId, place.real.getName());
    if (place.hasIds() && isAt(place.fs, exact, fileId)) {
      // Not by its path as well: another directory may come there within this call.
      deleteOne(place.fs, exact);
      return;
    }
    FileEntry directory = FileEntry.at(Place.of(conf, place.real.getParent().toString()));
    FileEntry file = FileEntry.at(place);
    boolean isListed = directory != null && directory.fileId == directoryId && file != null && file.fileId == fileId;
    if (isListed) deleteOne(place.fs, place.real);
  }

  private static boolean isAt(FileSystem fs, Path path, long fileId) throws IOException {
    try {
      return FileEntry.of(fs.getFileStatus(path)).fileId == fileId;
    } catch (FileNotFoundException absent) {
      return false;
    }
  }

  private static void deleteOne(FileSystem fs, Path path) throws IOException {
    try {
      if (!fs.delete(path, false) && fs.exists(path)) throw new IOException(path + ": could not be deleted");
    } catch (FileNotFoundException absent) {
      // HDFS says so of a directory that it does not find by its id.
      return;
    }
  }

  /**
   * False if the trash is switched off. `exact`: the same directory by a path that begins with an id, or the same path. Raises ForeignTrash if
   * what goes there would not be this user's alone.
   */
  public boolean moveToTrash(String text, String exact) throws IOException {
    Place place = Place.of(conf, text);
    place.requireReal();
    boolean hasIds = place.isHdfs() && !exact.equals(text);
    Path source = hasIds ? new Path(exact) : place.real;
    place.fs.getFileStatus(source);
    Configuration asked = trashConf(place);
    if (!new Trash(place.fs, asked).isEnabled()) return false;
    Path current = TrashPolicy.getInstance(asked, place.fs).getCurrentTrashDir(place.real);
    Path target = Path.mergePaths(current, place.real);
    Path around = new OwnTrash(place, hasIds).open(current.getParent(), target.getParent());
    if (place.isHdfs()) {
      moveInto(place.hdfs(), source, Path.mergePaths(around, new Path("/" + target.getName())));
      return true;
    }
    if (!Trash.moveToAppropriateTrash(place.fs, source, conf)) throw new IOException(text + ": could not be moved to the trash");
    return true;
  }

  /** Like TrashPolicyDefault, which knows no directories by ids. */
  private static void moveInto(DistributedFileSystem hdfs, Path source, Path target) throws IOException {
    Path free = target;
    Options.Rename[] toTrash = {Options.Rename.TO_TRASH};
    for (long now = System.currentTimeMillis(); ; now++) {
      try {
        hdfs.rename(source, free, toTrash);
        return;
      } catch (FileAlreadyExistsException taken) {
        free = target.suffix(String.valueOf(now));
      }
    }
  }

  /** Like Trash.moveToAppropriateTrash: the server's interval, or the client's if the server has none. */
  private Configuration trashConf(Place place) throws IOException {
    Configuration asked = new Configuration(conf);
    long interval = place.fs.getServerDefaults(place.real).getTrashInterval();
    if (interval != 0) asked.setLong("fs.trash.interval", interval);
    return asked;
  }
}
