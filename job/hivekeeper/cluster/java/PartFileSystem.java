package hivekeeper;

import java.io.EOFException;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;

/** A file system on which every file is a part of what it is, for a library that reads whole files only. */
public class PartFileSystem extends FilterFileSystem {
  private final long begin;
  private final long length;

  public PartFileSystem(FileSystem fs, long begin, long length) {
    super(fs);
    this.begin = begin;
    this.length = length;
  }

  /** The file system itself for a file that lies in no other. */
  public static FileSystem of(FileSystem fs, long begin, long length) {
    return begin == 0 ? fs : new PartFileSystem(fs, begin, length);
  }

  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Part(fs.open(path, bufferSize), begin, length));
  }

  private static class Part extends FSInputStream {
    private final FSDataInputStream in;
    private final long begin;
    private final long length;
    private long position;

    Part(FSDataInputStream in, long begin, long length) {
      this.in = in;
      this.begin = begin;
      this.length = length;
    }

    public void seek(long target) throws IOException {
      if (target < 0 || target > length) throw new EOFException("the file has " + length + " bytes");
      position = target;
    }

    public long getPos() {
      return position;
    }

    public boolean seekToNewSource(long target) {
      return false;
    }

    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 255;
    }

    public int read(byte[] target, int offset, int count) throws IOException {
      int got = read(position, target, offset, count);
      if (got > 0) position += got;
      return got;
    }

    public int read(long from, byte[] target, int offset, int count) throws IOException {
      if (count > 0 && from >= length) return -1;
      int got = in.read(begin + from, target, offset, (int) Math.min((long) count, length - from));
      if (count > 0 && got < 0) throw new EOFException("it is shorter than the " + length + " bytes that were listed");
      return got;
    }

    public void close() throws IOException {
      in.close();
    }
  }
}
