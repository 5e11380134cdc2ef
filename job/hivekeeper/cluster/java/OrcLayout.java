package hivekeeper;

import java.security.MessageDigest;
import org.apache.orc.OrcProto;

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

  /** Without what is of its rows. */
  public static OrcProto.Footer footer(OrcProto.FileTail tail) {
    return tail.getFooter().toBuilder().clearContentLength().clearStripes().clearNumberOfRows().clearStatistics().build();
  }

  /** Without the lengths of what lies before. */
  public static OrcProto.PostScript postscript(OrcProto.FileTail tail) {
    return tail.getPostscript().toBuilder().clearFooterLength().clearMetadataLength().clearStripeStatisticsLength().build();
  }
}
