package hivekeeper;

import java.io.EOFException;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;
import org.apache.orc.StripeInformation;

/** Places and sizes that the end of a file and the footers of its stripes claim: the library allocates memory for them before it reads. */
public class OrcClaims {
  private static final int MOST_POSTSCRIPT = 256;
  /** The header of a compressed block cannot tell a longer one. */
  private static final long MOST_BLOCK = 1L << 23;

  private OrcClaims() {}

  public static OrcProto.PostScript postscript(FileSystem fs, Path path, long length) throws IOException {
    FSDataInputStream in = fs.open(path);
    try {
      return OrcProto.PostScript.parseFrom(postscript(in, 0L, length));
    } finally {
      in.close();
    }
  }

  /** Of a file that lies in this one from `begin` on. Its own length is the last byte of the file. */
  private static byte[] postscript(FSDataInputStream in, long begin, long length) throws IOException {
    byte[] end = new byte[(int) Math.min(length, (long) MOST_POSTSCRIPT)];
    in.readFully(begin + length - end.length, end);
    int size = end.length == 0 ? 0 : end[end.length - 1] & 255;
    if (size > end.length - 1) throw new EOFException("a file of " + length + " bytes ends with " + size + " bytes");
    return Arrays.copyOfRange(end, end.length - 1 - size, end.length - 1);
  }

  /** Statistics of stripes, footer, postscript and its length, of a file that lies in this one from `begin` on. */
  public static byte[] end(FSDataInputStream in, long begin, long length) throws IOException {
    byte[] last = postscript(in, begin, length);
    long size = sizeOfEnd(OrcProto.PostScript.parseFrom(last), last.length, length);
    byte[] end = new byte[(int) size];
    in.readFully(begin + length - size, end);
    return end;
  }

  /** As the postscript, of so many bytes, claims it for a file of this length. */
  private static long sizeOfEnd(OrcProto.PostScript postscript, int bytes, long length) throws IOException {
    long size = bytes + 1;
    for (long claimed : new long[] {postscript.getMetadataLength(), postscript.getStripeStatisticsLength(), postscript.getFooterLength()}) {
      Footer.requireShort(claimed);
      size += claimed;
    }
    if (size > length) throw new EOFException("its end of " + size + " bytes does not fit into " + length + " bytes");
    return size;
  }

  /**
   * Reads the footer. Fails before for what may take the memory of the process, its time or its life; `withStripes`: also in the stripes'
   * statistics, which the reader has to be asked for.
   */
  public static OrcInput open(Configuration conf, ListedFile file, boolean withStripes) throws IOException {
    return open(conf, file.system(conf), file.place(), file.begin, file.length, withStripes);
  }

  /** Of a file that lies in the one at this place from `begin` on. */
  public static OrcInput open(Configuration conf, FileSystem whole, Path place, long begin, long length, boolean withStripes) throws IOException {
    PartFileSystem fs = PartFileSystem.opened(whole, place, begin, length);
    FSDataInputStream in = fs.opened;
    OrcInput input = null;
    try {
      requireSound(in, length, withStripes);
      // With its length, as listed: without one the library asks the NameNode for each file again.
      input = new OrcInput(OrcFile.createReader(place, OrcFile.readerOptions(conf).filesystem(fs).maxLength(length)), in);
    } finally {
      if (input == null) in.close();
    }
    return input;
  }

  private static void requireSound(FSDataInputStream in, long length, boolean withStripes) throws IOException {
    byte[] last = postscript(in, 0L, length);
    OrcProto.PostScript postscript = OrcProto.PostScript.parseFrom(last);
    sizeOfEnd(postscript, last.length, length);
    CompressionKind kind = CompressionKind.valueOf(postscript.getCompression().name());
    if (kind == CompressionKind.NONE) return;
    long block = OrcLayout.blockSize(postscript);
    if (block == 0) throw new IOException("it does not say how long its blocks are, which this version of ORC has to know");
    if (block < 0 || block > MOST_BLOCK) throw new IOException("it claims blocks of " + block + " bytes; none has more than " + MOST_BLOCK);
    long footer = length - last.length - 1 - postscript.getFooterLength();
    requireSound(in, footer, postscript.getFooterLength(), kind, (int) block);
    if (withStripes) requireSound(in, footer - postscript.getMetadataLength(), postscript.getMetadataLength(), kind, (int) block);
  }

  private static void requireSound(FSDataInputStream in, long begin, long size, CompressionKind kind, int block) throws IOException {
    byte[] stored = new byte[(int) size];
    in.readFully(begin, stored);
    OrcBlocks.requireSound(stored, kind, block);
  }

  /** Before its footer is read; `length` is the file's. */
  static void requireInside(StripeInformation stripe, long length) throws IOException {
    Footer.requireShort(stripe.getFooterLength());
    long left = length;
    for (long size : new long[] {stripe.getOffset(), stripe.getIndexLength(), stripe.getDataLength(), stripe.getFooterLength()}) {
      if (size < 0 || size > left) throw new EOFException("a stripe does not fit into the file of " + length + " bytes");
      left -= size;
    }
  }

  static void requireStreams(StripeInformation stripe, OrcProto.StripeFooter footer) throws IOException {
    long left = stripe.getIndexLength() + stripe.getDataLength();
    Set<Long> known = new HashSet<Long>();
    for (int i = 0; i < footer.getStreamsCount(); i++) {
      OrcProto.Stream stream = footer.getStreams(i);
      // ORC's Java library reads the last of them, its C++ library the first.
      if (stream.hasKind() && !known.add((long) stream.getColumn() << Integer.SIZE | stream.getKind().getNumber())) {
        throw new IOException("a stripe has the stream " + stream.getKind() + " of column " + stream.getColumn() + " twice");
      }
      long size = stream.getLength();
      if (size < 0 || size > left) throw new EOFException("a stream claims " + size + " bytes, its stripe has " + left + " left");
      left -= size;
    }
  }
}
