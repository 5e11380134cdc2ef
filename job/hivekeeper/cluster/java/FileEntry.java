package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;

/** One file or directory in a listing; `model.FileInfo` without the directory that contains it. */
public class FileEntry {
  public String name;
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
  /** What the file system told of a single file or directory; null for a local file and in a listing, which may be long. Not for Python. */
  FileStatus status;
  /** Not for Python, nor known of a local file. */
  boolean hasAcl;

  /** Null if nothing exists there. */
  static FileEntry at(Place place) throws IOException {
    if (place.isLocal()) return LocalFiles.entry(place, LocalFiles.path(place.real));
    try {
      FileStatus status = place.fs.getFileStatus(place.real);
      FileEntry entry = of(status);
      entry.status = status;
      return entry;
    } catch (FileNotFoundException absent) {
      return null;
    }
  }

  static FileEntry of(FileStatus status) {
    FileEntry entry = new FileEntry();
    entry.name = status.getPath().getName();
    entry.length = status.getLen();
    entry.mtimeMs = status.getModificationTime();
    entry.isDir = status.isDirectory();
    entry.fileId = status instanceof HdfsFileStatus ? ((HdfsFileStatus) status).getFileId() : 0L;
    entry.blockSize = status.getBlockSize();
    entry.replication = status.getReplication();
    entry.owner = status.getOwner();
    entry.group = status.getGroup();
    entry.mode = status.getPermission().toShort();
    entry.hasAcl = status.hasAcl();
    entry.isOpen = isBeingWritten(status);
    return entry;
  }

  private static boolean isBeingWritten(FileStatus status) {
    if (!(status instanceof HdfsLocatedFileStatus)) return false;
    HdfsLocatedFileStatus located = (HdfsLocatedFileStatus) status;
    return located.getLocatedBlocks() != null && located.getLocatedBlocks().isUnderConstruction();
  }
}
