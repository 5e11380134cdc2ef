package hivekeeper;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsDataInputStream;
import org.apache.hadoop.io.IOUtils;

/** Reads and writes text files in UTF-8: small ones at once, long ones in pieces. */
public class TextFiles {
  private static final int READ_BYTES = 65536;
  private static final int WRITE_BYTES = 4096;
  private static final int OWNER_ONLY = 0600;

  private final Configuration conf;
  private final Map<Integer, FSDataOutputStream> begun = new HashMap<Integer, FSDataOutputStream>();
  private int lastNumber = 0;

  public TextFiles(Configuration conf) {
    this.conf = conf;
  }

  private String read(String text, long fileId) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    IOUtils.copyBytes(ExactFile.open(conf, text, fileId), bytes, READ_BYTES, true);
    return bytes.toString("UTF-8");
  }

  /** {path: text} for {path: file id}; a missing file is left out. */
  public String readAll(String ids) throws Exception {
    final Map<String, Object> files = Json.readMap(ids);
    return Json.write(WorkerPool.mapFound(new ArrayList<String>(files.keySet()), new WorkerPool.Task() {
      public Object of(Object path) throws Exception {
        try {
          return read((String) path, ((Number) files.get(path)).longValue());
        } catch (FileNotFoundException absent) {
          return null;
        }
      }
    }));
  }

  /** At most this many bytes from an offset, in Base64: py4j decodes bytes one by one. Fewer only at the end of the file. */
  public String readPiece(String text, long fileId, long offset, int most) throws IOException {
    FSDataInputStream in = ExactFile.open(conf, text, fileId);
    try {
      in.seek(Math.min(offset, lengthOf(text, in)));
      return Base64.getEncoder().encodeToString(readUpTo(in, most));
    } finally {
      IOUtils.closeStream(in);
    }
  }

  /** At most this many bytes from the end of a file, even while it is being written. */
  public byte[] readEnd(String text, int most) throws IOException {
    FSDataInputStream in = open(text);
    try {
      in.seek(Math.max(0L, lengthOf(text, in) - most));
      return readUpTo(in, most);
    } finally {
      IOUtils.closeStream(in);
    }
  }

  private FSDataInputStream open(String text) throws IOException {
    Path path = new Path(text);
    return path.getFileSystem(conf).open(path);
  }

  /** For an open file, the NameNode knows only the length at the start of its last block. */
  private long lengthOf(String text, FSDataInputStream in) throws IOException {
    if (in instanceof HdfsDataInputStream) return ((HdfsDataInputStream) in).getVisibleLength();
    Path path = new Path(text);
    return path.getFileSystem(conf).getFileStatus(path).getLen();
  }

  private static byte[] readUpTo(FSDataInputStream in, int most) throws IOException {
    byte[] bytes = new byte[most];
    int filled = 0;
    while (filled < most) {
      int more = in.read(bytes, filled, most - filled);
      if (more < 0) break;
      filled += more;
    }
    return filled == most ? bytes : Arrays.copyOf(bytes, filled);
  }

  /** Never overwrites. The file has this mode, or less, before its first byte; when this returns, it is on the disks of DataNodes. */
  public void writeNew(String text, String content, int mode) throws IOException {
    int number = begin(text, mode);
    boolean written = false;
    try {
      append(number, content);
      written = true;
    } finally {
      if (!written) abandon(number);
    }
    finish(number);
  }

  /** The same for bytes, and for this user alone. */
  public void writeBytes(String text, byte[] content) throws IOException {
    int number = begin(text, OWNER_ONLY);
    boolean written = false;
    try {
      appendBytes(number, content);
      written = true;
    } finally {
      if (!written) abandon(number);
    }
    finish(number);
  }

  /** Bytes of the file with this id into a new one for this user alone; when this returns, they are on the disks of DataNodes. */
  public void copyPart(String text, long fileId, long begin, long length, String target) throws IOException {
    copyPart(text, fileId, begin, length, target, new byte[0], 0, 0L);
  }

  /** The same with more bytes behind them, at least so many copies and blocks of at least this size. */
  public void copyPart(
      String text, long fileId, long begin, long length, String target, byte[] more, int copies, long blockBytes) throws IOException {
    FSDataInputStream in = ExactFile.open(conf, text, fileId);
    try {
      in.seek(begin);
      int number = begin(target, OWNER_ONLY, copies, blockBytes);
      boolean written = false;
      try {
        copy(in, find(number), length, text);
        appendBytes(number, more);
        written = true;
      } finally {
        if (!written) abandon(number);
      }
      finish(number);
    } finally {
      IOUtils.closeStream(in);
    }
  }

  private static void copy(FSDataInputStream in, FSDataOutputStream out, long length, String text) throws IOException {
    byte[] bytes = new byte[READ_BYTES];
    for (long left = length; left > 0; ) {
      int more = in.read(bytes, 0, (int) Math.min(left, (long) bytes.length));
      if (more < 0) throw new EOFException(text + ": it ends " + left + " bytes too early");
      out.write(bytes, 0, more);
      left -= more;
    }
  }

  /** Creates a file with this mode or less, to write in pieces; returns its number. Never overwrites. */
  public int begin(String text, int mode) throws IOException {
    return begin(text, mode, 0, 0L);
  }

  private int begin(String text, int mode, int copies, long blockBytes) throws IOException {
    Path path = new Path(text);
    Place parent = Place.of(conf, path.getParent().toString());
    parent.requireReal();
    FSDataOutputStream out = create(parent.fs, new Path(parent.real, path.getName()), mode, copies, blockBytes);
    synchronized (begun) {
      lastNumber++;
      begun.put(lastNumber, out);
      return lastNumber;
    }
  }

  public void append(int number, String content) throws IOException {
    find(number).write(content.getBytes("UTF-8"));
  }

  public void appendBytes(int number, byte[] content) throws IOException {
    find(number).write(content);
  }

  /** Completes the file; when this returns, it is on the disks of DataNodes. */
  public void finish(int number) throws IOException {
    FSDataOutputStream out = find(number);
    boolean written = false;
    try {
      out.hsync();
      written = true;
    } finally {
      forget(number);
      if (written) out.close();
      else IOUtils.closeStream(out);
    }
  }

  /** Leaves a partial file. */
  public void abandon(int number) {
    FSDataOutputStream out = find(number);
    forget(number);
    IOUtils.closeStream(out);
  }

  private FSDataOutputStream find(int number) {
    synchronized (begun) {
      return (FSDataOutputStream) begun.get(number);
    }
  }

  private void forget(int number) {
    synchronized (begun) {
      begun.remove(number);
    }
  }

  /**
   * Never over a file and never with parents: a run whose directory was taken over must not re-create it. Replicated even if
   * the directory is erasure coded: an erasure coded file can neither be synced nor appended to.
   */
  static FSDataOutputStream create(FileSystem fs, Path path, int mode) throws IOException {
    return create(fs, path, mode, 0, 0L);
  }

  /** The same for this user alone, and in one step with the directory around it, which gets the mode of the one around that. */
  static FSDataOutputStream createWithDirectory(DistributedFileSystem fs, Path path) throws IOException {
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.CREATE, CreateFlag.SHOULD_REPLICATE);
    FsPermission permission = new FsPermission((short) OWNER_ONLY);
    return fs.create(path, permission, flags, WRITE_BYTES, fs.getDefaultReplication(path), fs.getDefaultBlockSize(path), null, null);
  }

  private static FSDataOutputStream create(FileSystem fs, Path path, int mode, int copies, long blockBytes) throws IOException {
    FsPermission permission = new FsPermission((short) mode);
    short replication = (short) Math.max(copies, fs.getDefaultReplication(path));
    long blockSize = Math.max(blockBytes, fs.getDefaultBlockSize(path));
    if (!(fs instanceof DistributedFileSystem)) {
      return fs.createNonRecursive(path, permission, false, WRITE_BYTES, replication, blockSize, null);
    }
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.CREATE, CreateFlag.SHOULD_REPLICATE);
    return ((DistributedFileSystem) fs).createNonRecursive(path, permission, flags, WRITE_BYTES, replication, blockSize, null);
  }
}
