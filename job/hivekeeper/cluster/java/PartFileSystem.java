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
  private static final int BYTES_OF_END = 16 << 10;

  private final long begin;
  private final long length;
  /** For the first one that opens it; null if there is none. */
  FSDataInputStream opened;

  public PartFileSystem(FileSystem fs, long begin, long length) {
    super(fs);
    this.begin = begin;
    this.length = length;
  }

  /**
   * With this file opened and its last bytes in memory, so that a look at its end before a library reads it costs no further call. Whoever
   * opens it first has to close it.
   */
  static PartFileSystem opened(FileSystem fs, Path path, long begin, long length) throws IOException {
    PartFileSystem found = new PartFileSystem(fs, begin, length);
    FSDataInputStream in = fs.open(path);
    try {
      byte[] end = new byte[(int) Math.min(length, (long) BYTES_OF_END)];
      in.readFully(begin + length - end.length, end);
      found.opened = new FSDataInputStream(new Part(in, begin, length, end));
      return found;
    } finally {
      if (found.opened == null) in.close();
    }
  }

  /** The file system itself for a file that lies in no other. */
  public static FileSystem of(FileSystem fs, long begin, long length) {
    return begin == 0 ? fs : new PartFileSystem(fs, begin, length);
  }

  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    FSDataInputStream first = opened;
    opened = null;
    return first != null ? first : new FSDataInputStream(new Part(fs.open(path, bufferSize), begin, length, new byte[0]));
  }

  private static class Part extends FSInputStream {
    private final FSDataInputStream in;
    private final long begin;
    private final long length;
    private final byte[] end;
    private long position;

    /** `end`: its last bytes, as far as they are in memory. */
    Part(FSDataInputStream in, long begin, long length, byte[] end) {
      this.in = in;
      this.begin = begin;
      this.length = length;
      this.end = end;
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
      long inEnd = from - (length - end.length);
      if (count > 0 && inEnd >= 0) {
        int held = (int) Math.min((long) count, length - from);
        System.arraycopy(end, (int) inEnd, target, offset, held);
        return held;
      }
      int got = in.read(begin + from, target, offset, (int) Math.min((long) count, length - from));
      if (count > 0 && got < 0) throw new EOFException("it is shorter than the " + length + " bytes that were listed");
      return got;
    }

    public void close() throws IOException {
      in.close();
    }
  }
}
