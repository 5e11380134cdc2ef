package hivekeeper.copy;

import java.io.BufferedOutputStream;
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

/**
 * A new file that only its owner may read.
 *
 * It is created without parents: an attempt that is still running after the commit must not re-create the directory of attempts.
 */
class AttemptFile extends OutputStream {
  private static final int BUFFER_BYTES = 4096;

  final Path path;
  final FileSystem fs;
  /** Whether an error was one of writing. */
  boolean failed;
  /** The bytes written so far. */
  long length;
  private final long mostBytes;
  private final long leastBlockBytes;
  private final int leastCopies;
  private FSDataOutputStream out;

  /** Its blocks have at least `leastBlockBytes`, and at least `leastCopies` of each are kept. */
  AttemptFile(FileSystem fs, Path path, long mostBytes, long leastBlockBytes, int leastCopies) {
    this.fs = fs;
    this.path = path;
    this.mostBytes = mostBytes;
    this.leastBlockBytes = leastBlockBytes;
    this.leastCopies = leastCopies;
  }

  /** Returns the size of its blocks: `least`, or that of the file system if it is more. */
  long create(long least) throws IOException {
    failed = true;
    // HDFS takes only multiples of its checksums' chunks.
    long blockSize = Math.max(leastBlockBytes, Math.max(fs.getDefaultBlockSize(path), least >> 20 << 20));
    out = "file".equals(fs.getUri().getScheme()) ? createLocal() : createHadoop(blockSize);
    failed = false;
    return blockSize;
  }

  private FSDataOutputStream createHadoop(long blockSize) throws IOException {
    FsPermission permission = new FsPermission((short) 0600);
    short copies = (short) Math.max(leastCopies, fs.getDefaultReplication(path));
    return fs.createNonRecursive(path, permission, false, BUFFER_BYTES, copies, blockSize, null);
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

  public void write(int one) throws IOException {
    write(new byte[] {(byte) one}, 0, 1);
  }

  /** A few bytes of a source can stand for terabytes, so the length is looked at before each write. */
  public void write(byte[] bytes, int offset, int count) throws IOException {
    if (count > mostBytes - length) throw new IOException("its copy would become more than " + mostBytes + " bytes");
    failed = true;
    out.write(bytes, offset, count);
    length += count;
    failed = false;
  }

  public void close() throws IOException {
    if (out == null) return;
    failed = true;
    out.close();
    out = null;
    failed = false;
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
}
