package hivekeeper.copy;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.parquet.bytes.BytesInput;
import org.apache.parquet.compression.CompressionCodecFactory;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;

/**
 * Decompressors that refuse a page whose header claims more than its column chunk or a task can have: a decompressor allocates the
 * claimed size before it looks at the data.
 */
class BoundedCodecs implements CompressionCodecFactory {
  private final CompressionCodecFactory codecs;
  private long mostBytes;

  BoundedCodecs(CompressionCodecFactory codecs) {
    this.codecs = codecs;
  }

  /** For the pages that are decompressed from now on. */
  void limit(long bytes) {
    mostBytes = bytes;
  }

  public CompressionCodecFactory.BytesInputCompressor getCompressor(CompressionCodecName name) {
    return codecs.getCompressor(name);
  }

  public CompressionCodecFactory.BytesInputDecompressor getDecompressor(CompressionCodecName name) {
    final CompressionCodecFactory.BytesInputDecompressor inner = codecs.getDecompressor(name);
    return new CompressionCodecFactory.BytesInputDecompressor() {
      public BytesInput decompress(BytesInput bytes, int size) throws IOException {
        requireBounded(size);
        return inner.decompress(bytes, size);
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
  }
}
