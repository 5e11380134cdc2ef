package hivekeeper;

import com.github.luben.zstd.ZstdDecompressCtx;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.apache.orc.CompressionCodec;
import org.apache.orc.CompressionKind;
import org.apache.orc.impl.OrcCodecPool;

/**
 * Decompresses the blocks of an ORC file. The library's decompressors crash the JVM at some malformed ones (all but that of ZLIB, with
 * aircompressor before 0.27: CVE-2024-36114), or never come to the end of a block that does not fit into its buffer (ZLIB, with ORC 1.7).
 */
public class OrcBlocks {
  private static final int HEADER_BYTES = 3;
  /** A shorter one costs the library as much time: it makes a new decompressor for each. */
  private static final int LEAST_BLOCK = 1 << 10;
  /** What a section may become when it is decompressed: some in any case, and twice as much as zlib can pack into a byte. */
  private static final long FREE_BYTES = 1L << 20;
  private static final long BYTES_PER_BYTE = 2048L;
  private static final long ZSTD_FRAME = 0xfd2fb528L;
  /** The version of aircompressor; null if it is not known. */
  private static final String VERSION = version();
  private static final boolean CRASHES = VERSION == null || VERSION.matches("0\\.([01]?\\d|2[0-6])(\\D.*)?");

  public final CompressionKind kind;
  private Inflater inflater;
  private ZstdDecompressCtx zstd;
  private CompressionCodec library;

  public OrcBlocks(CompressionKind kind) {
    this.kind = kind;
  }

  public void close() {
    if (inflater != null) inflater.end();
    if (zstd != null) zstd.close();
    if (library != null) OrcCodecPool.returnCodec(kind, library);
    inflater = null;
    zstd = null;
    library = null;
  }

  /** What the library takes as memory for a block, or as much time as that costs. */
  static long costOf(int size) {
    return Math.max(size, LEAST_BLOCK);
  }

  /** Fails for a section (of the end, or a stripe's footer) that the library should not decompress, `size` being the one of its buffers. */
  static void requireSound(byte[] stored, CompressionKind kind, int size) throws IOException {
    unpack(stored, kind, size, (ByteArrayOutputStream) null);
  }

  /** What such a section becomes. */
  static byte[] unpacked(byte[] stored, CompressionKind kind, int size) throws IOException {
    if (kind == CompressionKind.NONE) return stored;
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    unpack(stored, kind, size, out);
    return out.toByteArray();
  }

  /**
   * Fails for more blocks than a sound section has: for each that follows one which is stored as it is, the library takes a new buffer; in a
   * sound section each but the last fills its buffer. `out` may be null.
   */
  private static void unpack(byte[] stored, CompressionKind kind, int size, ByteArrayOutputStream out) throws IOException {
    long mostBuffers = Footer.MOST_BYTES + 2L * stored.length;
    long most = Math.min(Footer.MOST_BYTES, FREE_BYTES + BYTES_PER_BYTE * stored.length);
    long buffers = 0;
    long found = 0;
    ByteBuffer buffer = null;
    OrcBlocks blocks = new OrcBlocks(kind);
    try {
      int next = 0;
      for (int at = 0; at < stored.length; at = next) {
        int header = (int) number(stored, at, HEADER_BYTES, stored.length);
        int begin = at + HEADER_BYTES;
        if (header >> 1 > stored.length - begin) throw new EOFException("a compressed block does not fit into its section");
        if (header >> 1 > size) {
          throw new IOException("a compressed block of " + (header >> 1) + " bytes is longer than the " + size + " bytes that are claimed");
        }
        next = begin + (header >> 1);
        boolean isPlain = (header & 1) == 1;
        if (!isPlain) {
          buffers += costOf(size);
          if (buffers > mostBuffers) {
            throw new IOException("the blocks of a section of " + stored.length + " bytes take more than " + mostBuffers + " bytes of buffers");
          }
          // Not as long as a block may be: stripes of some bytes, ten thousand of them, would take as many times 8 MiB.
          if (buffer == null) buffer = ByteBuffer.allocate((int) Math.min((long) size, most + 1));
          buffer.clear();
          blocks.decompress(ByteBuffer.wrap(stored, begin, next - begin), buffer);
        }
        int length = isPlain ? next - begin : buffer.remaining();
        found += length;
        if (found > most) throw new IOException("a section of " + stored.length + " bytes takes more than " + most + " when it is decompressed");
        if (out != null) out.write(isPlain ? stored : buffer.array(), isPlain ? begin : 0, length);
      }
    } finally {
      blocks.close();
    }
  }

  /** As `CompressionCodec`: `in` is a whole block, `out` is flipped. Both have arrays. */
  void decompress(ByteBuffer in, ByteBuffer out) throws IOException {
    try {
      if (kind == CompressionKind.ZLIB) out.position(out.position() + inflate(in, out));
      else if (kind == CompressionKind.ZSTD) out.position(out.position() + unpackZstd(in, out));
      else if (kind == CompressionKind.LZ4) out.position(out.position() + Lz4Blocks.unpack(in, out));
      else byLibrary(in, out);
    } catch (DataFormatException damaged) {
      throw new IOException("a compressed block is malformed", damaged);
    } catch (RuntimeException damaged) {
      throw new IOException("a compressed block is malformed, or longer than the " + out.capacity() + " bytes that are claimed", damaged);
    }
    if (kind == CompressionKind.ZLIB || kind == CompressionKind.ZSTD || kind == CompressionKind.LZ4) out.flip();
    in.position(in.limit());
  }

  private static int begin(ByteBuffer buffer) {
    return buffer.arrayOffset() + buffer.position();
  }

  private int inflate(ByteBuffer in, ByteBuffer out) throws IOException, DataFormatException {
    if (inflater == null) inflater = new Inflater(true);
    inflater.reset();
    inflater.setInput(in.array(), begin(in), in.remaining());
    int found = 0;
    for (int got = 1; got > 0; found += got) got = inflater.inflate(out.array(), begin(out) + found, out.remaining() - found);
    if (!inflater.finished() && !inflater.needsInput()) throw tooLong(out.remaining());
    return found;
  }

  private int unpackZstd(ByteBuffer in, ByteBuffer out) throws IOException {
    requireFrame(in.array(), begin(in), begin(in) + in.remaining());
    if (zstd == null) zstd = ZstdContexts.open();
    return zstd.decompressByteArray(out.array(), begin(out), out.remaining(), in.array(), begin(in), in.remaining());
  }

  /**
   * Zstandard's decoder also takes several frames, frames that are passed over, and those of old formats (0.4 to 0.7), which other readers refuse.
   * A frame is a header, blocks, and maybe a checksum (RFC 8878).
   */
  private static void requireFrame(byte[] stored, int begin, int end) throws IOException {
    long magic = number(stored, begin, 4, end);
    int how = (int) number(stored, begin + 4, 1, end);
    boolean isSingle = (how & 32) != 0;
    int sizeBytes = how >> 6 == 0 ? (isSingle ? 1 : 0) : 1 << (how >> 6);
    int dictionaryBytes = 1 << (how & 3) >> 1;
    int at = begin + 5 + (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes;
    boolean isLast = magic != ZSTD_FRAME;
    while (!isLast) {
      long header = number(stored, at, HEADER_BYTES, end);
      isLast = (header & 1) == 1;
      // One byte that is repeated, or so many.
      long size = (header >> 1 & 3) == 1 ? 1 : header >> 3;
      at += HEADER_BYTES + (int) size;
    }
    if ((how & 4) != 0) at += 4;
    if (magic != ZSTD_FRAME || at != end) throw new IOException("a compressed block is malformed: it is not one frame of Zstandard");
  }

  private void byLibrary(ByteBuffer in, ByteBuffer out) throws IOException {
    if (kind == CompressionKind.SNAPPY) requireSnappy(in.array(), begin(in), begin(in) + in.remaining(), out.remaining());
    // There is no other decompressor of LZO here, and nothing that looks at its blocks.
    if (CRASHES && kind == CompressionKind.LZO) {
      throw new IOException("it is compressed with LZO, at which aircompressor " + VERSION + ", before 0.27, may crash the JVM");
    }
    if (library == null) library = OrcCodecPool.getCodec(kind);
    library.decompress(in, out);
  }

  private static String version() {
    try {
      return Class.forName("io.airlift.compress.lzo.LzoDecompressor").getPackage().getImplementationVersion();
    } catch (ClassNotFoundException elsewhere) {
      return null;
    }
  }

  /**
   * Where the length of a text overflows, aircompressor before 0.27 may crash the JVM; a copy from a distance of 0 leaves in the buffer what was
   * there before, with any version. A block is its decompressed length, then texts and copies of what comes before them
   * (format_description.txt of Snappy).
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
      int length = (tag >> 2) + 1;
      if (kind == 0) {
        long told = length;
        if (length > 60) {
          told = number(stored, at, length - 60, end) + 1;
          at += length - 60;
        }
        if (told > end - at) throw malformed();
        length = (int) told;
        at += length;
      } else {
        // Each with a fixed number of bytes: it takes half the time.
        long back = kind == 1 ? number(stored, at, 1, end) | (tag & 224) << 3 : kind == 2 ? number(stored, at, 2, end) : number(stored, at, 4, end);
        if (back <= 0 || back > found) throw malformed();
        if (kind == 1) length = 4 + (tag >> 2 & 7);
        at += kind == 3 ? 4 : kind;
      }
      found += length;
    }
    if (found != claimed) throw malformed();
  }

  private static IOException malformed() {
    return new IOException("a compressed block is malformed");
  }

  private static IOException tooLong(int size) {
    return new IOException("a compressed block becomes longer than the " + size + " bytes that are claimed");
  }

  /** Of so many bytes, the lowest first. */
  private static long number(byte[] stored, int at, int count, int end) throws IOException {
    if (count > end - at) throw new EOFException("a compressed block is cut off");
    long found = 0;
    for (int i = 0; i < count; i++) found |= (stored[at + i] & 255L) << 8 * i;
    return found;
  }
}
