package hivekeeper;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.orc.CompressionCodec;
import org.apache.orc.CompressionKind;

/**
 * The codec by which the library decompresses one stream of a stripe. It fails for more buffers than the stream's bytes explain: for each block
 * that follows one which is stored as it is, the library takes a new one, also if the block is empty. Other blocks may be short: ORC in C++ can
 * begin one with each row group.
 */
public class OrcStreamCodec implements CompressionCodec {
  /** Of buffers, for some short blocks in any case; then for each byte of a block, and for each that it becomes. */
  private static final long FREE_BYTES = 16L << 20;
  private static final long PER_STORED_BYTE = 1024L;
  private static final long PER_FOUND_BYTE = 64L;

  private final OrcBlocks blocks;
  private long room = FREE_BYTES;
  private ByteBuffer last;

  /** The decompressor stays open. */
  public OrcStreamCodec(OrcBlocks blocks) {
    this.blocks = blocks;
  }

  public void decompress(ByteBuffer in, ByteBuffer out) throws IOException {
    int stored = in.remaining();
    long cost = OrcBlocks.costOf(out == last ? 0 : out.remaining());
    last = out;
    blocks.decompress(in, out);
    room += PER_STORED_BYTE * stored + PER_FOUND_BYTE * out.remaining() - cost;
    if (room < 0) throw new IOException("a stream has many blocks that are almost empty, which take a buffer of " + cost + " bytes each");
  }

  public boolean compress(ByteBuffer in, ByteBuffer out, ByteBuffer overflow, CompressionCodec.Options options) {
    throw new UnsupportedOperationException("compress");
  }

  public CompressionCodec.Options getDefaultOptions() {
    throw new UnsupportedOperationException("options");
  }

  public CompressionKind getKind() {
    return blocks.kind;
  }

  public void reset() {}

  public void destroy() {}

  public void close() {}
}
