package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;

/** One file or directory in a listing; `model.FileInfo` without the directory that contains it. */
public class FileEntry {
  public String name;
  /** The URI-encoded name; null if it is the same. */
  public String uriName;
  public long length;
  public long mtimeMs;
  public boolean isDir;
  public long fileId;
  public long blockSize;
  public int replication;
  public String owner;
  public String group;
  public int mode;
  public boolean isOpen;

  /** Null if nothing exists there. */
  static FileEntry at(Place place) throws IOException {
    if (place.isLocal()) return LocalFiles.entry(place, LocalFiles.path(place.real));
    try {
      return of(place.fs.getFileStatus(place.real));
    } catch (FileNotFoundException absent) {
      return null;
    }
  }

  static FileEntry of(FileStatus status) {
    FileEntry entry = new FileEntry();
    entry.name = status.getPath().getName();
    entry.uriName = encodedName(status.getPath(), entry.name);
    entry.length = status.getLen();
    entry.mtimeMs = status.getModificationTime();
    entry.isDir = status.isDirectory();
    entry.fileId = status instanceof HdfsFileStatus ? ((HdfsFileStatus) status).getFileId() : 0L;
    entry.blockSize = status.getBlockSize();
    entry.replication = status.getReplication();
    entry.owner = status.getOwner();
    entry.group = status.getGroup();
    entry.mode = status.getPermission().toShort();
    entry.isOpen = isBeingWritten(status);
    return entry;
  }

  private static boolean isBeingWritten(FileStatus status) {
    if (!(status instanceof HdfsLocatedFileStatus)) return false;
    HdfsLocatedFileStatus located = (HdfsLocatedFileStatus) status;
    return located.getLocatedBlocks() != null && located.getLocatedBlocks().isUnderConstruction();
  }

  /** Null if it is the name itself. */
  static String encodedName(Path path, String name) {
    String encoded = path.toUri().getRawPath();
    encoded = encoded.substring(encoded.lastIndexOf('/') + 1);
    return encoded.equals(name) ? null : encoded;
  }
}
