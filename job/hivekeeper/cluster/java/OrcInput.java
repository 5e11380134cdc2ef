package hivekeeper;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.StripeInformation;

/** An open ORC file whose end was looked at before the library read it. */
public class OrcInput {
  public final Reader reader;
  /** The reader closes it. */
  private final FSDataInputStream in;

  OrcInput(Reader reader, FSDataInputStream in) {
    this.reader = reader;
    this.in = in;
  }

  /** Not by the library, which decompresses it without a look. Fails for one with streams that do not fit into the stripe. */
  OrcProto.StripeFooter footerOf(StripeInformation stripe) throws IOException {
    OrcClaims.requireInside(stripe, reader.getFileTail().getFileLength());
    byte[] stored = new byte[(int) stripe.getFooterLength()];
    in.readFully(stripe.getOffset() + stripe.getIndexLength() + stripe.getDataLength(), stored);
    byte[] unpacked = OrcBlocks.unpacked(stored, reader.getCompressionKind(), reader.getCompressionSize());
    OrcProto.StripeFooter footer = OrcProto.StripeFooter.parseFrom(unpacked);
    OrcClaims.requireStreams(stripe, footer);
    return footer;
  }

  public void close() throws IOException {
    reader.close();
  }
}
