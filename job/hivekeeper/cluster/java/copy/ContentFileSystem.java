package hivekeeper.copy;

import java.io.EOFException;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;

/** A file system on which every file has this content, for a library that reads from file systems only. */
class ContentFileSystem extends FilterFileSystem {
  private final byte[] content;

  ContentFileSystem(FileSystem fs, byte[] content) {
    super(fs);
    this.content = content;
  }

  public FSDataInputStream open(Path path, int bufferSize) {
    return new FSDataInputStream(new Content(content));
  }

  private static class Content extends FSInputStream {
    private final byte[] content;
    private int position;

    Content(byte[] content) {
      this.content = content;
    }

    public void seek(long target) throws IOException {
      if (target < 0 || target > content.length) throw new EOFException("the file has " + content.length + " bytes");
      position = (int) target;
    }

    public long getPos() {
      return position;
    }

    public boolean seekToNewSource(long target) {
      return false;
    }

    public int read() {
      return position < content.length ? content[position++] & 255 : -1;
    }

    public int read(byte[] target, int offset, int count) {
      int got = Math.min(count, content.length - position);
      if (count > 0 && got <= 0) return -1;
      System.arraycopy(content, position, target, offset, got);
      position += got;
      return got;
    }
  }
}
