package hivekeeper;

import java.io.IOException;
import java.security.MessageDigest;
import org.apache.orc.OrcProto;
import org.apache.orc.impl.BufferChunk;
import org.apache.orc.impl.OrcTail;

/** What the end of an ORC file says of all its stripes: how they are compressed and indexed, and who wrote them. */
public class OrcLayout {
  private OrcLayout() {}

  /** A hash; the same for two files if stripes of both can stand in one footer. */
  static String of(OrcProto.FileTail tail) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    digest.update(footer(tail).toByteArray());
    digest.update(postscript(tail).toByteArray());
    return Footer.hex(digest);
  }

  /** The most bytes that a block becomes. ORC 1.7 has no default for it, by which later versions and C++ read files that do not say it. */
  public static long blockSize(OrcProto.PostScript postscript) throws IOException {
    if (postscript.hasCompressionBlockSize()) return postscript.getCompressionBlockSize();
    // Without a type there is no tail.
    OrcProto.Footer footer = OrcProto.Footer.newBuilder().addTypes(OrcProto.Type.newBuilder().setKind(OrcProto.Type.Kind.STRUCT)).build();
    OrcProto.FileTail tail = OrcProto.FileTail.newBuilder().setPostscript(postscript).setFooter(footer).build();
    return new OrcTail(tail, (BufferChunk) null, -1L).getCompressionBufferSize();
  }

  /** Without what is of its rows. */
  public static OrcProto.Footer footer(OrcProto.FileTail tail) {
    return tail.getFooter().toBuilder().clearContentLength().clearStripes().clearNumberOfRows().clearStatistics().build();
  }

  /** Without the lengths of what lies before. */
  public static OrcProto.PostScript postscript(OrcProto.FileTail tail) {
    return tail.getPostscript().toBuilder().clearFooterLength().clearMetadataLength().clearStripeStatisticsLength().build();
  }
}
