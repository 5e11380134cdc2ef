package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;

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
  /** Not known of a local file. */
  public boolean hasAcl;
  /** All of its blocks that are on no DataNode lie between these; 0 and 0 for none. Known only in a listing with blocks. */
  public long lostFrom;
  public long lostTo;
  /** What the file system told of a single file or directory; null for a local file and in a listing, which may be long. Not for Python. */
  FileStatus status;

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
    LocatedBlocks blocks = status instanceof HdfsLocatedFileStatus ? ((HdfsLocatedFileStatus) status).getLocatedBlocks() : null;
    entry.isOpen = blocks != null && blocks.isUnderConstruction();
    // The last block of an open file may be on no DataNode yet.
    if (blocks != null && !entry.isOpen) entry.noteLost(blocks);
    return entry;
  }

  /** As a client that reads it finds out: all copies are bad, or there are none. Of erasure-coded blocks that says nothing of single parts. */
  private void noteLost(LocatedBlocks blocks) {
    for (LocatedBlock each : blocks.getLocatedBlocks()) {
      LocatedBlock block = (LocatedBlock) each;
      if (!block.isCorrupt() && block.getLocations().length > 0) continue;
      if (lostTo == 0) lostFrom = block.getStartOffset();
      lostTo = block.getStartOffset() + block.getBlockSize();
    }
  }
}
