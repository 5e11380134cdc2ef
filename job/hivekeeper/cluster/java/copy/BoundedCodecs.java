package hivekeeper.copy;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.parquet.bytes.ByteBufferInputStream;
import org.apache.parquet.bytes.BytesInput;
import org.apache.parquet.bytes.BytesUtils;
import org.apache.parquet.compression.CompressionCodecFactory;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;

/**
 * Decompressors that refuse a page whose header claims more than its column chunk or a task can have, or whose content claims more than
 * its header: a decompressor allocates the claimed size before it looks at the data.
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
        if (name != CompressionCodecName.SNAPPY) return inner.decompress(bytes, size);
        ByteBuffer compressed = bytes.toByteBuffer();
        requireSnappy(compressed, size);
        return inner.decompress(BytesInput.from(new ByteBuffer[] {compressed}), size);
      }

      public void decompress(ByteBuffer input, int compressedSize, ByteBuffer output, int size) throws IOException {
        requireBounded(size);
        inner.decompress(input, compressedSize, output, size);
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

  /** Snappy's data begin with their length, for which a direct buffer is allocated. */
  private static void requireSnappy(ByteBuffer compressed, int size) throws IOException {
    if (!compressed.hasRemaining()) return;
    int length = BytesUtils.readUnsignedVarInt(ByteBufferInputStream.wrap(new ByteBuffer[] {compressed}));
    if (length < 0 || length > size) throw new IllegalStateException("a page of " + size + " bytes claims " + length + " bytes inside");
  }
}
