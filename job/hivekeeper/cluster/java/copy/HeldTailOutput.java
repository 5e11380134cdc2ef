package hivekeeper.copy;

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;

/**
 * A new file that only its owner may read, and whose tail is held back, so that the footer can be changed before it is written.
 *
 * It is created without parents: an attempt that is still running after the commit must not re-create the directory of attempts.
 */
class HeldTailOutput implements OutputFile {
  private static final int BUFFER_BYTES = 4096;

  final Path path;
  private final FileSystem fs;
  private final OutputFile like;
  private FSDataOutputStream out;
  private ByteArrayOutputStream tail;
  private long position;
  /** Whether an error was one of writing. */
  boolean failed;

  HeldTailOutput(FileSystem fs, Path path) throws IOException {
    this.fs = fs;
    this.path = path;
    like = HadoopOutputFile.fromPath(path, fs.getConf());
  }

  /** From now on nothing is written until `finish`. */
  void hold() {
    tail = new ByteArrayOutputStream();
  }

  byte[] held() {
    return tail.toByteArray();
  }

  /** Write these bytes in place of what was held back. */
  void finish(byte[] ending) throws IOException {
    failed = true;
    out.write(ending);
    out.close();
    position += ending.length - tail.size();
    out = null;
    failed = false;
  }

  /** The bytes written so far, with those held back. */
  long length() {
    return position;
  }

  /** Removes the file. */
  void abandon() {
    try {
      if (out != null) out.close();
      fs.delete(path, false);
    } catch (IOException left) {
      // The commit deletes the whole directory of attempts.
    }
  }

  public PositionOutputStream create(long blockSizeHint) throws IOException {
    failed = true;
    out = "file".equals(fs.getUri().getScheme()) ? createLocal() : createHadoop(Math.max(fs.getDefaultBlockSize(path), blockSizeHint));
    failed = false;
    return new Stream();
  }

  private FSDataOutputStream createHadoop(long blockSize) throws IOException {
    FsPermission permission = new FsPermission((short) 0600);
    return fs.createNonRecursive(path, permission, false, BUFFER_BYTES, fs.getDefaultReplication(path), blockSize, null);
  }

  /** Hadoop's local file system creates parents with the checksum file beside a file, even if it should not. */
  private FSDataOutputStream createLocal() throws IOException {
    Set<OpenOption> onlyNew = new HashSet<OpenOption>();
    onlyNew.add(StandardOpenOption.CREATE_NEW);
    onlyNew.add(StandardOpenOption.WRITE);
    FileAttribute<?> mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    OutputStream file = Channels.newOutputStream(
        Files.newByteChannel(new File(path.toUri().getPath()).toPath(), onlyNew, new FileAttribute[] {mode}));
    return new FSDataOutputStream(new BufferedOutputStream(file), null);
  }

  public PositionOutputStream createOrOverwrite(long blockSizeHint) throws IOException {
    throw new IOException("nothing is overwritten");
  }

  public boolean supportsBlockSize() {
    return like.supportsBlockSize();
  }

  public long defaultBlockSize() {
    return like.defaultBlockSize();
  }

  public String getPath() {
    return path.toString();
  }

  private class Stream extends PositionOutputStream {
    public long getPos() {
      return position;
    }

    public void write(int one) throws IOException {
      write(new byte[] {(byte) one}, 0, 1);
    }

    public void write(byte[] bytes, int offset, int count) throws IOException {
      position += count;
      if (tail != null) {
        tail.write(bytes, offset, count);
        return;
      }
      failed = true;
      out.write(bytes, offset, count);
      failed = false;
    }

    public void flush() {}

    public void close() {}
  }
}
