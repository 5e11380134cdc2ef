package hivekeeper;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.orc.OrcProto;
import org.apache.orc.StripeInformation;

/**
 * What decides how a reader understands the values of an ORC file: the types with their attributes, the user metadata, the calendar, and
 * if there are timestamps, the writer's time zone, which is in every stripe.
 */
public class OrcMeaning {
  private static final int MOST_STRIPES = 10000;
  private static final long BYTES_OF_STRIPE = 64L << 10;

  public final OrcProto.Footer footer;
  /** Whether columns have the type timestamp, whose values depend on the zone; a timestamp with local time zone does not. */
  public final boolean timed;
  /** The zones of the stripes as they are written there, "" where there is none; empty for a file without timestamps or stripes. */
  public final Set<String> zones = new TreeSet<String>();
  /** Of all stripes if the zones depend on them or if it was requested; else of the first. */
  public final List<OrcProto.StripeFooter> stripes = new ArrayList<OrcProto.StripeFooter>();
  private final OrcProto.PostScript postscript;

  public OrcMeaning(OrcInput input, boolean allStripes) throws IOException {
    footer = input.reader.getFileTail().getFooter();
    postscript = input.reader.getFileTail().getPostscript();
    timed = hasTimestamps(footer);
    readStripes(input, timed || allStripes);
    if (!timed) return;
    for (OrcProto.StripeFooter stripe : stripes) zones.add(((OrcProto.StripeFooter) stripe).getWriterTimezone());
  }

  private static boolean hasTimestamps(OrcProto.Footer footer) {
    for (int i = 0; i < footer.getTypesCount(); i++) {
      if (footer.getTypes(i).getKind() == OrcProto.Type.Kind.TIMESTAMP) return true;
    }
    return false;
  }

  private void readStripes(OrcInput input, boolean all) throws IOException {
    List<StripeInformation> found = input.reader.getStripes();
    if (found.isEmpty()) return;
    requireApart(found, input.reader.getFileTail().getFileLength());
    for (StripeInformation each : all ? found : found.subList(0, 1)) stripes.add(input.footerOf((StripeInformation) each));
  }

  /** A footer of a few kilobytes can name one stripe millions of times, and each is read. */
  public static void requireFew(int stripes, long length) {
    if (stripes > MOST_STRIPES + length / BYTES_OF_STRIPE) {
      throw new IllegalStateException("its footer says that it has " + stripes + " stripes in " + length + " bytes");
    }
  }

  private static void requireApart(List<StripeInformation> stripes, long length) {
    requireFew(stripes.size(), length);
    long end = 0;
    for (Object each : stripes) {
      StripeInformation stripe = (StripeInformation) each;
      if (stripe.getOffset() < end || stripe.getLength() < 0 || stripe.getLength() > length - stripe.getOffset()) {
        throw new IllegalStateException("a stripe of " + stripe.getLength() + " bytes from " + stripe.getOffset() + " on is not where it may be");
      }
      end = stripe.getOffset() + stripe.getLength();
    }
  }

  /** The only zone, "" if there is none. */
  public String zone() {
    return zones.isEmpty() ? "" : (String) zones.iterator().next();
  }

  /** A hash; the same for two files if every reader understands equal stored values in the same way. */
  public String identity() throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    add(digest, footer.getTypesCount());
    for (int i = 0; i < footer.getTypesCount(); i++) add(digest, footer.getTypes(i).toByteArray());
    add(digest, footer.getMetadataCount());
    for (int i = 0; i < footer.getMetadataCount(); i++) add(digest, footer.getMetadata(i).toByteArray());
    add(digest, footer.hasCalendar() ? footer.getCalendar().getNumber() : -1);
    for (String zone : zones) add(digest, ((String) zone).getBytes("UTF-8"));
    return Footer.hex(digest);
  }

  private static void add(MessageDigest digest, int number) {
    digest.update(ByteBuffer.allocate(4).putInt(number).array());
  }

  private static void add(MessageDigest digest, byte[] part) {
    add(digest, part.length);
    digest.update(part);
  }

  /** What is in the file that this ORC library, or a copy, cannot handle; one short line each. */
  public List<String> undecodable() {
    List<String> found = new ArrayList<String>();
    if (footer.hasEncryption()) found.add("encrypted columns");
    if (hasUnknownTypes()) found.add("a column type that is not known here");
    // A footer of a later version may say more about the values than what is kept here.
    if (footer.getUnknownFields().getSerializedSize() > 0) found.add("fields in its footer that are not known here");
    if (hasUnknownEncodings()) found.add("an encoding that is not known here");
    if (zones.size() > 1) found.add("timestamps of several time zones in one file");
    if (!isKnownVersion()) found.add("the file version " + postscript.getVersionList());
    return found;
  }

  /** An unknown kind would be read as the first one, a boolean. */
  private boolean hasUnknownTypes() {
    for (int i = 0; i < footer.getTypesCount(); i++) {
      if (!footer.getTypes(i).hasKind()) return true;
    }
    return footer.getTypesCount() == 0;
  }

  private boolean hasUnknownEncodings() {
    for (OrcProto.StripeFooter stripe : stripes) {
      OrcProto.StripeFooter one = (OrcProto.StripeFooter) stripe;
      for (int i = 0; i < one.getColumnsCount(); i++) {
        if (!one.getColumns(i).hasKind()) return true;
      }
    }
    return false;
  }

  /** 0.11 and 0.12. The first writers gave none. */
  private boolean isKnownVersion() {
    if (postscript.getVersionCount() == 0) return true;
    int minor = postscript.getVersionCount() > 1 ? postscript.getVersion(1) : 0;
    return postscript.getVersion(0) == 0 && (minor == 11 || minor == 12);
  }
}
