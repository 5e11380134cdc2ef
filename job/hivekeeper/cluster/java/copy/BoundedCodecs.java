package hivekeeper.copy;

import com.github.luben.zstd.ZstdDecompressCtx;
import hivekeeper.Lz4Blocks;
import hivekeeper.ZstdContexts;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.parquet.bytes.ByteBufferInputStream;
import org.apache.parquet.bytes.BytesInput;
import org.apache.parquet.bytes.BytesUtils;
import org.apache.parquet.compression.CompressionCodecFactory;
import org.apache.parquet.hadoop.CodecFactory;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.xerial.snappy.Snappy;

/**
 * Decompressors that refuse a page whose header claims more than its column chunk or a task can have, or whose content is not as long as its
 * header claims: a decompressor allocates the claimed size before it looks at the data, and those of Snappy and LZ4_RAW before parquet-mr
 * 1.15 wait for ever for what a short page lacks.
 *
 * Pages of Snappy, Zstandard and LZ4_RAW are decompressed here, each into an array of its own. The library takes memory outside the heap for
 * them, where nobody counts it, and YARN kills an executor that has too much: for Snappy and LZ4_RAW buffers as large as a page, which are
 * kept, for Zstandard up to 128 MiB, until a garbage collection if the page is damaged. Its decompressor of LZ4_RAW is aircompressor's,
 * which may crash the JVM (CVE-2024-36114), and of which a page can show what was in the buffer before: that of the file, and table, that
 * this process read last. GZIP takes no page that is shorter; what it has behind a page's bytes is not read.
 */
class BoundedCodecs implements CompressionCodecFactory {
  private final CompressionCodecFactory codecs;
  private long mostBytes;
  private long room;
  private ZstdDecompressCtx zstd;

  BoundedCodecs(CompressionCodecFactory codecs) {
    this.codecs = codecs;
  }

  /** No page of those that are decompressed from now on can be longer. */
  void limit(long bytes) {
    mostBytes = bytes;
  }

  /** The memory that there is for the next page. */
  void room(long bytes) {
    room = bytes;
  }

  public CompressionCodecFactory.BytesInputCompressor getCompressor(CompressionCodecName name) {
    return codecs.getCompressor(name);
  }

  public CompressionCodecFactory.BytesInputDecompressor getDecompressor(final CompressionCodecName name) {
    final CompressionCodecFactory.BytesInputDecompressor inner = codecs.getDecompressor(name);
    return new CompressionCodecFactory.BytesInputDecompressor() {
      public BytesInput decompress(BytesInput bytes, int size) throws IOException {
        requireBounded(size);
        // As a constant it is not known to parquet-mr 1.12.
        boolean isLz4 = name.name().equals("LZ4_RAW");
        if (!isLz4 && name != CompressionCodecName.SNAPPY && name != CompressionCodecName.ZSTD) return inner.decompress(bytes, size);
        ByteBuffer compressed = withArray(bytes.toByteBuffer());
        if (compressed.hasRemaining()) return BytesInput.from(unpacked(name, compressed, size));
        requireLength(size, 0);
        return BytesInput.empty();
      }

      public void decompress(ByteBuffer input, int compressedSize, ByteBuffer output, int size) throws IOException {
        output.put(decompress(BytesInput.from(new ByteBuffer[] {input}), size).toByteBuffer());
      }

      public void release() {
        inner.release();
      }
    };
  }

  public void release() {
    if (zstd != null) zstd.close();
    zstd = null;
    codecs.release();
  }

  /**
   * What a copy's pages are compressed by, one after the other. A page has at least one value, whatever that takes, and the library keeps
   * buffers more than twice as large outside the heap for Snappy and LZ4_RAW.
   */
  static CodecFactory.BytesCompressor compressor(CodecFactory codecs, final CompressionCodecName name) {
    final boolean isLz4 = name.name().equals("LZ4_RAW");
    if (!isLz4 && name != CompressionCodecName.SNAPPY) return codecs.getCompressor(name);
    return new CodecFactory.BytesCompressor() {
      public BytesInput compress(BytesInput bytes) throws IOException {
        byte[] page = bytes.toByteArray();
        // Not cut to what it takes: there need not be room for one more copy of a large page.
        byte[] packed = new byte[isLz4 ? Lz4Blocks.mostPacked(page.length) : Snappy.maxCompressedLength(page.length)];
        int length = isLz4 ? Lz4Blocks.pack(page, packed) : Snappy.compress(page, 0, page.length, packed, 0);
        return BytesInput.from(packed, 0, length);
      }

      public CompressionCodecName getCodecName() {
        return name;
      }

      public void release() {}
    };
  }

  private void requireBounded(int size) {
    if (size < 0 || size > mostBytes) throw new IllegalStateException("a page claims " + size + " bytes, the most are " + mostBytes);
    if (size > room) throw new ShareExceeded("a page", size, room);
  }

  private static void requireLength(int size, int found) {
    if (found != size) throw new IllegalStateException("a page of " + size + " bytes claims " + found + " bytes inside");
  }

  private byte[] unpacked(CompressionCodecName name, ByteBuffer compressed, int size) throws IOException {
    // Snappy's decoder writes as much, whatever there is room for.
    if (name == CompressionCodecName.SNAPPY) requireLength(size, lengthOf(compressed));
    if (name == CompressionCodecName.ZSTD) openZstd();
    byte[] page = new byte[size];
    int found;
    try {
      found = unpack(name, compressed, page);
    } catch (Exception damaged) {
      throw new IllegalStateException("a page of " + size + " bytes is malformed, or claims more bytes inside", damaged);
    }
    requireLength(size, found);
    return page;
  }

  private void openZstd() {
    try {
      if (zstd == null) zstd = ZstdContexts.open();
    } catch (IOException failed) {
      // Of an IOException the library tells no more than that a page could not be decompressed.
      throw new IllegalStateException(failed.getMessage(), failed);
    }
  }

  private static int lengthOf(ByteBuffer compressed) throws IOException {
    return BytesUtils.readUnsignedVarInt(ByteBufferInputStream.wrap(new ByteBuffer[] {compressed}));
  }

  private int unpack(CompressionCodecName name, ByteBuffer compressed, byte[] page) throws IOException {
    byte[] stored = compressed.array();
    int at = compressed.arrayOffset() + compressed.position();
    if (name == CompressionCodecName.SNAPPY) return Snappy.uncompress(stored, at, compressed.remaining(), page, 0);
    if (name != CompressionCodecName.ZSTD) return Lz4Blocks.unpack(compressed, ByteBuffer.wrap(page));
    return zstd.decompressByteArray(page, 0, page.length, stored, at, compressed.remaining());
  }

  private static ByteBuffer withArray(ByteBuffer buffer) {
    if (buffer.hasArray()) return buffer;
    byte[] copy = new byte[buffer.remaining()];
    buffer.get(copy);
    return ByteBuffer.wrap(copy);
  }
}
