package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.viewfs.ViewFileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.ipc.RemoteException;

/**
 * The real place of a path: behind a ViewFs mount is a file system that knows ids and open files.
 *
 * `path` is the path as its own file system spells it; `real` is the one on `fs`, null if a mount leads nowhere.
 */
class Place {
  /** HDFS finds a file or directory by its id below this path, wherever it is. */
  static final String BY_ID = "/.reserved/.inodes/";

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
    boolean isInSnapshot = isHdfs() && (real.toUri().getPath() + "/").contains("/.snapshot/");
    return isHdfs() && !isInSnapshot ? new Place(fs, path, new Path(BY_ID + fileId)) : this;
  }

  /**
   * Whether this file is found by its id: not in a snapshot, behind a router or a mount. A router may ask another NameNode, which has other
   * files with these ids, so the directory must have it by its name, too.
   */
  boolean isFoundById(long fileId) throws IOException {
    if (byId(fileId) == this || !path.equals(real)) return false;
    long directory = idAt(fileId + "/..");
    return directory != 0 && idAt(directory + "/" + real.getName()) == fileId;
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
