package hivekeeper.copy;

import hivekeeper.Lz4Blocks;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.parquet.bytes.ByteBufferInputStream;
import org.apache.parquet.bytes.BytesInput;
import org.apache.parquet.bytes.BytesUtils;
import org.apache.parquet.compression.CompressionCodecFactory;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;

/**
 * Decompressors that refuse a page whose header claims more than its column chunk or a task can have, or whose content is not as long as its
 * header claims: a decompressor allocates the claimed size before it looks at the data, and those of Snappy and LZ4_RAW before parquet-mr
 * 1.15 wait for ever for what a short page lacks.
 *
 * LZ4_RAW is decompressed here. The library's own is aircompressor's, which may crash the JVM (CVE-2024-36114), and of which a page can show
 * what was in the buffer before: that of the file, and table, that this process read last. The other codecs take no page that is shorter,
 * and check how far back a copy begins; what GZIP and Zstandard have behind a page's bytes is not read.
 */
class BoundedCodecs implements CompressionCodecFactory {
  private final CompressionCodecFactory codecs;
  private long mostBytes;
  private long room;

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
        if (!isLz4 && name != CompressionCodecName.SNAPPY) return inner.decompress(bytes, size);
        ByteBuffer compressed = bytes.toByteBuffer();
        if (compressed.hasRemaining() && isLz4) return BytesInput.from(unpackLz4(withArray(compressed), size));
        requireLength(size, compressed.hasRemaining() ? snappyLength(compressed) : 0);
        return size == 0 ? BytesInput.empty() : inner.decompress(BytesInput.from(new ByteBuffer[] {compressed}), size);
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
    codecs.release();
  }

  private void requireBounded(int size) {
    if (size < 0 || size > mostBytes) throw new IllegalStateException("a page claims " + size + " bytes, the most are " + mostBytes);
    if (size > room) throw new ShareExceeded("a page", size, room);
  }

  private static void requireLength(int size, int found) {
    if (found != size) throw new IllegalStateException("a page of " + size + " bytes claims " + found + " bytes inside");
  }

  /** Snappy's data begin with it. A direct buffer is allocated for it. */
  private static int snappyLength(ByteBuffer compressed) throws IOException {
    return BytesUtils.readUnsignedVarInt(ByteBufferInputStream.wrap(new ByteBuffer[] {compressed}));
  }

  private static byte[] unpackLz4(ByteBuffer compressed, int size) {
    byte[] page = new byte[size];
    int found;
    try {
      found = Lz4Blocks.unpack(compressed, ByteBuffer.wrap(page));
    } catch (Exception damaged) {
      throw new IllegalStateException("a page of " + size + " bytes is malformed, or claims more bytes inside", damaged);
    }
    requireLength(size, found);
    return page;
  }

  private static ByteBuffer withArray(ByteBuffer buffer) {
    if (buffer.hasArray()) return buffer;
    byte[] copy = new byte[buffer.remaining()];
    buffer.get(copy);
    return ByteBuffer.wrap(copy);
  }
}
