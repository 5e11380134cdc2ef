package hivekeeper;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** The end of a Parquet file: footer, its length (four bytes, little-endian), magic. */
public class ParquetTail {
  /** Length and magic. */
  public static final int ENDING = 8;
  private static final int FIRST_READ = 64 << 10;
  private static final int MAGIC_BYTES = 4;

  private ParquetTail() {}

  /** The footer of a file with this length, as bytes; one read for most files. */
  public static byte[] footer(FileSystem fs, Path path, long length) throws IOException {
    return footer(fs, path, 0L, length);
  }

  public static byte[] footer(FileSystem fs, Path path, long begin, long length) throws IOException {
    FSDataInputStream in = fs.open(path);
    try {
      return begin == 0 ? footer(in, length) : footer(in, begin, length);
    } finally {
      in.close();
    }
  }

  public static byte[] footer(FSDataInputStream in, long length) throws IOException {
    requireEnd(in, length);
    return footer(in, 0L, length);
  }

  /** That of a file which lies in another one, from `begin` on. */
  public static byte[] footer(FSDataInputStream in, long begin, long length) throws IOException {
    byte[] end = new byte[(int) Math.min(length, (long) FIRST_READ)];
    in.readFully(begin + length - end.length, end);
    int size = footerBytes(end, length);
    if (size <= end.length - ENDING) return Arrays.copyOfRange(end, end.length - ENDING - size, end.length - ENDING);
    byte[] footer = new byte[size];
    in.readFully(begin + length - ENDING - size, footer);
    return footer;
  }

  /** Fails if the file has become longer than it was when it was listed. */
  public static void requireEnd(FSDataInputStream in, long length) throws IOException {
    if (in.read(length, new byte[1], 0, 1) > 0) throw new IOException("it is longer than the " + length + " bytes that were listed");
  }

  /** The length of the footer of a file that ends with these bytes. */
  public static int footerBytes(byte[] end, long length) throws IOException {
    if (length < MAGIC_BYTES + ENDING) throw new EOFException(length + " bytes are no Parquet file");
    String magic = magic(end, end.length - MAGIC_BYTES);
    if (magic.equals("PARE")) throw new IOException("its footer is encrypted");
    if (!magic.equals("PAR1")) throw new IOException("it does not end like a Parquet file");
    int size = ByteBuffer.wrap(end, end.length - ENDING, MAGIC_BYTES).order(ByteOrder.LITTLE_ENDIAN).getInt();
    Footer.requireShort(size);
    if (size > length - MAGIC_BYTES - ENDING) {
      throw new EOFException("its footer of " + size + " bytes does not fit into " + length + " bytes");
    }
    return size;
  }

  /** `start` is at least the first four bytes. */
  public static void requireStart(byte[] start) throws IOException {
    if (!magic(start, 0).equals("PAR1")) throw new IOException("it does not begin like a Parquet file");
  }

  /** What follows the footer. */
  public static byte[] ending(int footerBytes) {
    ByteBuffer out = ByteBuffer.allocate(ENDING).order(ByteOrder.LITTLE_ENDIAN).putInt(footerBytes);
    return out.put(new byte[] {'P', 'A', 'R', '1'}).array();
  }

  private static String magic(byte[] bytes, int at) throws IOException {
    return new String(bytes, at, MAGIC_BYTES, "ISO-8859-1");
  }
}
