package hivekeeper;

import java.io.IOException;
import java.nio.ByteBuffer;
import net.jpountz.lz4.LZ4Factory;

/** Single blocks of LZ4. They are decompressed by what uses neither native code nor unsafe access. */
public class Lz4Blocks {
  private Lz4Blocks() {}

  /** How many bytes so many may take. */
  public static int mostPacked(int length) {
    return LZ4Factory.fastestInstance().fastCompressor().maxCompressedLength(length);
  }

  /** Returns how many bytes they take. */
  public static int pack(byte[] bytes, byte[] out) {
    return LZ4Factory.fastestInstance().fastCompressor().compress(bytes, out);
  }

  /** Returns how many bytes a block has become, which are written from the position of `out` on. Both have arrays. */
  public static int unpack(ByteBuffer in, ByteBuffer out) throws IOException {
    byte[] stored = in.array();
    int at = in.arrayOffset() + in.position();
    int to = out.arrayOffset() + out.position();
    int found = LZ4Factory.safeInstance().safeDecompressor().decompress(stored, at, in.remaining(), out.array(), to, out.remaining());
    requireDistances(stored, at, at + in.remaining());
    return found;
  }

  /**
   * Of a block that was decompressed, whose lengths and places are right therefore. A copy from a distance of 0 leaves in the buffer what was
   * there before, which is zeros for other readers. A block is texts and such copies in turn (lz4_Block_format.md).
   */
  private static void requireDistances(byte[] stored, int begin, int end) throws IOException {
    int at = begin;
    while (at < end) {
      int token = stored[at++] & 255;
      int length = token >> 4;
      for (int more = length == 15 ? 255 : 0; more == 255; length += more) more = stored[at++] & 255;
      at += length;
      // The last text has no copy behind it.
      if (at >= end) return;
      if (stored[at] == 0 && stored[at + 1] == 0) throw new IOException("a compressed block is malformed");
      at += 2;
      for (int more = (token & 15) == 15 ? 255 : 0; more == 255; ) more = stored[at++] & 255;
    }
  }
}
