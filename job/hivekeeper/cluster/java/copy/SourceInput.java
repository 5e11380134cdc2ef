package hivekeeper.copy;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.io.DelegatingSeekableInputStream;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.SeekableInputStream;

/** A file, or a part of one, from memory if `content` is not null, and behind its last byte another ending, which may be empty. */
class SourceInput implements InputFile {
  private final FileSystem fs;
  private final Path path;
  private final byte[] content;
  private final long begin;
  private final long length;
  private final byte[] ending;

  SourceInput(FileSystem fs, Path path, byte[] content, long begin, long length, byte[] ending) {
    this.fs = fs;
    this.path = path;
    this.content = content;
    this.begin = begin;
    this.length = length;
    this.ending = ending;
  }

  public long getLength() {
    return length + ending.length;
  }

  public SeekableInputStream newStream() throws IOException {
    final Bytes bytes = new Bytes(content == null ? fs.open(path) : null);
    return new DelegatingSeekableInputStream(bytes) {
      public long getPos() {
        return bytes.position;
      }

      public void seek(long position) {
        bytes.position = position;
      }
    };
  }

  public String toString() {
    return path.toString();
  }

  private class Bytes extends InputStream {
    private final FSDataInputStream in;
    private long position;

    Bytes(FSDataInputStream in) {
      this.in = in;
    }

    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 255;
    }

    public int read(byte[] target, int offset, int count) throws IOException {
      if (count == 0) return 0;
      int inContent = (int) Math.max(0L, Math.min((long) count, length - position));
      int got = inContent > 0 ? readContent(target, offset, inContent) : readEnding(target, offset, count);
      if (got > 0) position += got;
      return got;
    }

    private int readContent(byte[] target, int offset, int count) throws IOException {
      if (content != null) {
        System.arraycopy(content, (int) position, target, offset, count);
        return count;
      }
      if (in.getPos() != begin + position) in.seek(begin + position);
      int got = in.read(target, offset, count);
      if (got < 0) throw new EOFException("it is shorter than the " + length + " bytes that were listed");
      return got;
    }

    private int readEnding(byte[] target, int offset, int count) {
      int from = (int) (position - length);
      int some = Math.min(count, ending.length - from);
      if (some <= 0) return -1;
      System.arraycopy(ending, from, target, offset, some);
      return some;
    }

    public void close() throws IOException {
      if (in != null) in.close();
    }
  }
}
