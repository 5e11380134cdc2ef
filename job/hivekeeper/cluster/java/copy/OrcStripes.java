package hivekeeper.copy;

import hivekeeper.OrcBlocks;
import hivekeeper.OrcStreamCodec;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.orc.CompressionKind;
import org.apache.orc.DataReader;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.StripeInformation;
import org.apache.orc.impl.BufferChunkList;
import org.apache.orc.impl.DataReaderProperties;
import org.apache.orc.impl.InStream;
import org.apache.orc.impl.RecordReaderUtils;

/** Gives the library the stripes of a file: footers that were read before, and streams that it decompresses by `OrcStreamCodec`. */
class OrcStripes implements DataReader {
  private final DataReader bytes;
  private final List<OrcProto.StripeFooter> footers;
  private final int size;
  private final OrcBlocks blocks;
  private boolean isOpen;

  OrcStripes(FileSystem fs, String path, Reader reader, List<OrcProto.StripeFooter> footers) {
    DataReaderProperties.Builder how = DataReaderProperties.builder().withFileSystem(fs).withPath(new Path(path)).withZeroCopy(false);
    bytes = RecordReaderUtils.createDefaultDataReader(how.withCompression(InStream.options()).build());
    this.footers = footers;
    size = reader.getCompressionSize();
    blocks = new OrcBlocks(reader.getCompressionKind());
  }

  /** How a stream of a file is read that is compressed like this. The library asks for it once for each stream. */
  static InStream.StreamOptions options(OrcBlocks blocks, int size) {
    if (blocks.kind == CompressionKind.NONE) return InStream.options();
    return InStream.options().withCodec(new OrcStreamCodec(blocks)).withBufferSize(size);
  }

  public void open() throws IOException {
    if (!isOpen) bytes.open();
    isOpen = true;
  }

  public OrcProto.StripeFooter readStripeFooter(StripeInformation stripe) {
    return (OrcProto.StripeFooter) footers.get((int) stripe.getStripeId());
  }

  public BufferChunkList readFileData(BufferChunkList ranges, boolean direct) throws IOException {
    // The library relies on the footer having been read by the same object.
    open();
    return bytes.readFileData(ranges, direct);
  }

  public InStream.StreamOptions getCompressionOptions() {
    return options(blocks, size);
  }

  public boolean isTrackingDiskRanges() {
    return false;
  }

  public void releaseBuffer(ByteBuffer buffer) {}

  /** Of ORC 2. */
  public void releaseAllBuffers() {}

  /** The library makes a reader of rows of a clone, and here nobody else uses the original. */
  public DataReader clone() {
    return this;
  }

  public void close() throws IOException {
    blocks.close();
    bytes.close();
  }
}
