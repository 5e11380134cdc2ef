package hivekeeper.copy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;

/** A file whose tail is held back, so that the footer can be changed before it is written. */
class HeldTailOutput implements OutputFile {
  final AttemptFile file;
  private final OutputFile like;
  private ByteArrayOutputStream tail;
  private long position;

  HeldTailOutput(AttemptFile file) throws IOException {
    this.file = file;
    like = HadoopOutputFile.fromPath(file.path, file.fs.getConf());
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
    file.write(ending, 0, ending.length);
    file.close();
    position += ending.length - tail.size();
  }

  /** The bytes written so far, with those held back. */
  long length() {
    return position;
  }

  public PositionOutputStream create(long blockSizeHint) throws IOException {
    file.create(blockSizeHint);
    return new Stream();
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
    return file.path.toString();
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
      if (tail != null) tail.write(bytes, offset, count);
      else file.write(bytes, offset, count);
    }

    public void flush() {}

    public void close() {}
  }
}
