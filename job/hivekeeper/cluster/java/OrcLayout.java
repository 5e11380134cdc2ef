package hivekeeper;

import java.security.MessageDigest;
import org.apache.orc.OrcProto;

/** What the end of an ORC file says of all its stripes: how they are compressed and indexed, and who wrote them. */
public class OrcLayout {
  private static final int HASH_BYTES = 16;

  private OrcLayout() {}

  /** A hash; the same for two files if stripes of both can stand in one footer. */
  static String of(OrcProto.FileTail tail) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    digest.update(footer(tail).toByteArray());
    byte[] hash = digest.digest(postscript(tail).toByteArray());
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < HASH_BYTES; i++) out.append(Integer.toHexString(256 + (hash[i] & 255)).substring(1));
    return out.toString();
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
