package hivekeeper.concat;

import hivekeeper.Footer;
import hivekeeper.OrcLayout;
import hivekeeper.OrcMeaning;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.orc.OrcProto;
import org.apache.orc.OrcUtils;

/**
 * Ends of ORC files (ORC specification v1, "File Tail"): statistics of the stripes, footer, postscript, and its length. A footer has the
 * places of the stripes in the file, and a stripe has no places but within itself.
 */
class JoinedOrcFooters implements JoinedFooters {
  /** Of a chunk: 23 bits. */
  private static final long MOST_CHUNK = (1L << 23) - 1;
  private static final int MOST_POSTSCRIPT = 255;
  /** Of a file without stripes: its magic. */
  private static final long HEADER_BYTES = 3L;

  /** What the library reads of a file's end. */
  static class Tail {
    final OrcProto.FileTail file;
    final List<OrcProto.StripeStatistics> stripes;

    Tail(OrcProto.FileTail file, List<OrcProto.StripeStatistics> stripes) {
      this.file = file;
      this.stripes = stripes;
    }
  }

  private final List<JoinedOrcStatistics> columns = new ArrayList<JoinedOrcStatistics>();
  private final OrcProto.Metadata.Builder metadata = OrcProto.Metadata.newBuilder();
  private OrcProto.Footer first;
  /** Of the first file, without what is of its rows. */
  private OrcProto.Footer like;
  private OrcProto.PostScript postscript;
  private OrcProto.Footer.Builder footer;
  private boolean knowsStripes = true;
  private boolean areCounted = true;
  private long length;
  /** Of the statistics of stripes. */
  private long bytes;

  public void add(Object end, long start) throws IOException {
    Tail tail = (Tail) end;
    OrcProto.Footer next = tail.file.getFooter();
    if (next.hasEncryption()) throw new IllegalStateException("its columns are encrypted");
    if (first == null) begin(tail.file);
    boolean alike = like.equals(OrcLayout.footer(tail.file)) && postscript.equals(OrcLayout.postscript(tail.file));
    if (!alike) throw new IllegalStateException(UNLIKE);
    footer.setNumberOfRows(Math.addExact(footer.getNumberOfRows(), next.getNumberOfRows()));
    for (int i = 0; i < next.getStripesCount(); i++) {
      OrcProto.StripeInformation stripe = next.getStripes(i);
      footer.addStripes(stripe.toBuilder().setOffset(Math.addExact(stripe.getOffset(), start)));
    }
    footer.setContentLength(Math.addExact(start, next.getContentLength()));
    length = Math.addExact(start, tail.file.getFileLength());
    boolean counts = JoinedOrcStatistics.isCounted(next);
    areCounted = areCounted && counts;
    for (int column = 0; column < columns.size(); column++) ((JoinedOrcStatistics) columns.get(column)).add(next, column, counts);
    // Readers find those of a stripe by its number.
    knowsStripes = knowsStripes && tail.stripes.size() == next.getStripesCount();
    if (knowsStripes) keep(tail.stripes);
    else metadata.clear();
  }

  private void keep(List<OrcProto.StripeStatistics> stripes) {
    for (Object stripe : stripes) {
      bytes += ((OrcProto.StripeStatistics) stripe).getSerializedSize();
      Footer.requireShort(bytes);
      metadata.addStripeStats((OrcProto.StripeStatistics) stripe);
    }
  }

  private void begin(OrcProto.FileTail file) throws IOException {
    first = file.getFooter();
    like = OrcLayout.footer(file);
    postscript = OrcLayout.postscript(file);
    footer = like.toBuilder();
    boolean corrected = like.getCalendar() == OrcProto.CalendarKind.PROLEPTIC_GREGORIAN;
    for (int column = 0; column < like.getTypesCount(); column++) {
      columns.add(new JoinedOrcStatistics(OrcUtils.convertTypeFromProtobuf(like.getTypesList(), column), corrected));
    }
  }

  public byte[] over() throws IOException {
    OrcMeaning.requireFew(footer.getStripesCount(), length);
    for (JoinedOrcStatistics column : columns) {
      footer.addStatistics(((JoinedOrcStatistics) column).ofAll(areCounted, footer.getNumberOfRows()));
    }
    return end(knowsStripes ? metadata.build() : OrcProto.Metadata.getDefaultInstance(), footer.build());
  }

  public byte[] withoutRows() throws IOException {
    OrcProto.Footer.Builder none = like.toBuilder().setNumberOfRows(0L).setContentLength(HEADER_BYTES);
    for (int i = 0; i < first.getStatisticsCount(); i++) none.addStatistics(JoinedOrcStatistics.ofNoValues(first.getStatistics(i)));
    return end(OrcProto.Metadata.getDefaultInstance(), none.build());
  }

  private byte[] end(OrcProto.Metadata stripes, OrcProto.Footer footer) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    writeChunks(stripes.toByteArray(), out);
    int metadataBytes = out.size();
    writeChunks(footer.toByteArray(), out);
    OrcProto.PostScript.Builder lengths = postscript.toBuilder().setMetadataLength(metadataBytes).setFooterLength(out.size() - metadataBytes);
    byte[] last = lengths.build().toByteArray();
    if (last.length > MOST_POSTSCRIPT) throw new IllegalStateException("a postscript of " + last.length + " bytes is too long");
    out.write(last, 0, last.length);
    out.write(last.length);
    return out.toByteArray();
  }

  /** A chunk of a compressed file may be as it is (the lowest bit of its header), and is no longer than the file's buffers. */
  private void writeChunks(byte[] content, ByteArrayOutputStream out) throws IOException {
    if (postscript.getCompression() == OrcProto.CompressionKind.NONE) {
      out.write(content, 0, content.length);
      return;
    }
    long buffer = OrcLayout.blockSize(postscript);
    if (buffer <= 0) throw new IllegalStateException("its buffers have " + buffer + " bytes");
    int most = (int) Math.min(buffer, MOST_CHUNK);
    for (int from = 0; from < content.length; from += most) {
      int size = Math.min(most, content.length - from);
      int header = size << 1 | 1;
      out.write(header & 255);
      out.write(header >> 8 & 255);
      out.write(header >> 16 & 255);
      out.write(content, from, size);
    }
  }
}
