package hivekeeper;

import java.io.EOFException;
import java.io.IOException;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.apache.orc.CompressionKind;

/** Compressed blocks of the end of an ORC file, which are looked at before the library decompresses them. */
class OrcBlocks {
  private static final int HEADER_BYTES = 3;
  /** A shorter one costs the library as much time: it makes a new decompressor for each. */
  private static final int LEAST_BLOCK = 1 << 10;

  private OrcBlocks() {}

  /**
   * Fails for blocks at which some version of the library crashes or never ends, and for more of them than a sound end has. For each block
   * that follows one which is stored as it is, the library takes a new buffer; in a sound end each but the last fills its buffer.
   */
  static void requireSound(byte[] stored, CompressionKind kind, int size) throws IOException {
    long most = Footer.MOST_BYTES + 2L * stored.length;
    long buffers = 0;
    byte[] buffer = null;
    Inflater inflater = new Inflater(true);
    try {
      int next = 0;
      for (int at = 0; at < stored.length; at = next) {
        int header = (int) number(stored, at, HEADER_BYTES, stored.length);
        int begin = at + HEADER_BYTES;
        if (header >> 1 > stored.length - begin) throw new EOFException("a block of its end does not fit into that");
        next = begin + (header >> 1);
        if ((header & 1) == 1) continue;
        buffers += Math.max(size, LEAST_BLOCK);
        if (buffers > most) {
          throw new IOException("the blocks of its end of " + stored.length + " bytes take more than " + most + " bytes of buffers");
        }
        if (kind == CompressionKind.SNAPPY) requireSnappy(stored, begin, next, size);
        if (kind != CompressionKind.ZLIB) continue;
        if (buffer == null) buffer = new byte[size];
        inflater.reset();
        inflater.setInput(stored, begin, next - begin);
        requireFits(inflater, buffer);
      }
    } finally {
      inflater.end();
    }
  }

  /** ORC 1.7 (Spark 3.3) never comes to an end of a block that does not fit into its buffer. */
  private static void requireFits(Inflater inflater, byte[] buffer) throws IOException {
    try {
      int found = 0;
      for (int got = 1; got > 0; found += got) got = inflater.inflate(buffer, found, buffer.length - found);
    } catch (DataFormatException damaged) {
      throw new IOException("a block of its end cannot be decompressed", damaged);
    }
    if (!inflater.finished() && !inflater.needsInput()) throw tooLong(buffer.length);
  }

  /**
   * The decompressor of Spark 3.3 (aircompressor 0.21) crashes the JVM where the length of a text overflows. A block is its decompressed
   * length, then texts and copies of what comes before them (format_description.txt of Snappy).
   */
  private static void requireSnappy(byte[] stored, int begin, int end, int size) throws IOException {
    int at = begin;
    long claimed = 0;
    for (int shift = 0; at == begin || stored[at - 1] < 0; shift += 7) claimed |= (number(stored, at++, 1, end) & 127L) << shift;
    if (at - begin > 5 || claimed > size) throw tooLong(size);
    long found = 0;
    while (at < end) {
      int tag = stored[at++] & 255;
      int kind = tag & 3;
      int more = kind == 3 ? 4 : kind > 0 ? kind : Math.max(0, (tag >> 2) - 59);
      long told = number(stored, at, more, end);
      at += more;
      long length = kind == 1 ? 4 + (tag >> 2 & 7) : kind == 0 && more > 0 ? told + 1 : (tag >> 2) + 1;
      long back = kind == 1 ? told | (tag & 224) << 3 : told;
      boolean isThere = kind == 0 ? length <= end - at : back > 0 && back <= found;
      found += length;
      if (!isThere || found > claimed) throw new IOException("a block of its end is malformed");
      if (kind == 0) at += (int) length;
    }
    if (found != claimed) throw new IOException("a block of its end is malformed");
  }

  private static IOException tooLong(int size) {
    return new IOException("a block of its end becomes longer than the " + size + " bytes that it claims");
  }

  /** Of so many bytes, the lowest first. */
  private static long number(byte[] stored, int at, int count, int end) throws IOException {
    if (count > end - at) throw new EOFException("a block of its end is cut off");
    long found = 0;
    for (int i = 0; i < count; i++) found |= (stored[at + i] & 255L) << 8 * i;
    return found;
  }
}
