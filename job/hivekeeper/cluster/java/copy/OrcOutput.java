package hivekeeper.copy;

import hivekeeper.OrcMeaning;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.PhysicalFsWriter;
import org.apache.orc.impl.StreamName;
import org.apache.orc.impl.writer.WriterEncryptionVariant;
import org.apache.orc.util.BloomFilterIO;

/** Writes what the library made of stored values, with the types, user metadata, calendar and time zone of a source. */
class OrcOutput extends PhysicalFsWriter {
  private final OrcMeaning source;
  private final List<OrcColumn> columns;
  private final WriterZone zone;

  /** `columns` are those of the source, by id. */
  OrcOutput(FSDataOutputStream out, OrcFile.WriterOptions options, OrcMeaning source, List<OrcColumn> columns) throws IOException {
    super(out, options, new WriterEncryptionVariant[0]);
    this.source = source;
    this.columns = columns;
    zone = new WriterZone(source.zone());
  }

  public void writeIndex(StreamName name, OrcProto.RowIndex.Builder index) throws IOException {
    for (int i = 0; i < index.getEntryCount(); i++) {
      if (index.getEntry(i).hasStatistics()) correct(name.getColumn(), index.getEntryBuilder(i).getStatisticsBuilder());
    }
    super.writeIndex(name, index);
  }

  public void writeStatistics(StreamName name, OrcProto.ColumnStatistics.Builder statistics) {
    correct(name.getColumn(), statistics);
    super.writeStatistics(name, statistics);
  }

  private void correct(int column, OrcProto.ColumnStatistics.Builder statistics) {
    if (source.footer.getTypes(column).getKind() == OrcProto.Type.Kind.TIMESTAMP) zone.correct(statistics);
    // The library's bounds leave out what comes after a NaN at the start of a row group.
    boolean hasNaN = ((OrcColumn) columns.get(column)).hasNaN;
    if (statistics.hasDoubleStatistics()) includeEveryNumber(statistics.getDoubleStatisticsBuilder(), hasNaN);
    if (!statistics.hasStringStatistics()) return;
    OrcProto.StringStatistics bounds = statistics.getStringStatistics();
    boolean low = isExact(bounds.getMinimum()) && isExact(bounds.getLowerBound());
    boolean high = isExact(bounds.getMaximum()) && isExact(bounds.getUpperBound());
    boolean isOrdered = isOrderedLow(bounds.getMinimum() + bounds.getLowerBound()) && isOrderedHigh(bounds.getMaximum() + bounds.getUpperBound());
    // Not none at all: ORC 1.7 takes a column without bounds for one of NULLs only. It skips nothing if one is missing.
    if (!low || !high || !isOrdered) statistics.getStringStatisticsBuilder().clear().setMinimum("").setSum(bounds.getSum());
  }

  /**
   * The library's bounds have the zero that came first, and its readers take 0.0 for more than -0.0; SQL takes them for equal. Bounds that
   * may lack a NaN include all numbers, and a sum that is NaN tells the library not to use them.
   */
  private static void includeEveryNumber(OrcProto.DoubleStatistics.Builder bounds, boolean hasNaN) {
    if (hasNaN) bounds.setMinimum(Double.NEGATIVE_INFINITY).setMaximum(Double.POSITIVE_INFINITY).setSum(Double.NaN);
    if (bounds.hasMinimum() && bounds.getMinimum() == 0) bounds.setMinimum(-0.0);
    if (bounds.hasMaximum() && bounds.getMaximum() == 0) bounds.setMaximum(0.0);
  }

  /** Its readers look for the bits of one zero; SQL takes both for equal. */
  public void writeBloomFilter(StreamName name, OrcProto.BloomFilterIndex.Builder index) throws IOException {
    OrcProto.Type.Kind kind = source.footer.getTypes(name.getColumn()).getKind();
    boolean hasZeros = kind == OrcProto.Type.Kind.DOUBLE || kind == OrcProto.Type.Kind.FLOAT;
    for (int i = 0; hasZeros && i < index.getBloomFilterCount(); i++) includeBothZeros(name, index.getBloomFilterBuilder(i));
    super.writeBloomFilter(name, index);
  }

  private static void includeBothZeros(StreamName name, OrcProto.BloomFilter.Builder bits) {
    org.apache.orc.util.BloomFilter filter = BloomFilterIO.deserialize(name.getKind(), OrcProto.ColumnEncoding.getDefaultInstance(),
        OrcFile.CURRENT_WRITER, TypeDescription.Category.DOUBLE, bits.build());
    if (!filter.testDouble((double) 0.0) && !filter.testDouble((double) -0.0)) return;
    filter.addDouble((double) 0.0);
    filter.addDouble((double) -0.0);
    BloomFilterIO.serialize(bits, filter);
  }

  /** Bytes that are not UTF-8 become this character in the library's bounds, which then are wrong. */
  private static boolean isExact(String bound) {
    return bound.indexOf('\ufffd') < 0;
  }

  /**
   * The library's writer orders texts by their bytes in UTF-8, its reader by their chars in UTF-16, where those above U+FFFF, as pairs of
   * surrogates, come before U+E000. Both have the texts behind a bound in one order if it has no char at which they differ: for a lower one
   * these are the chars from U+E000 on, before which a pair may come; for an upper one the pairs, behind which such a char may come.
   */
  private static boolean isOrderedLow(String bound) {
    for (int i = 0; i < bound.length(); i++) {
      if (bound.charAt(i) > Character.MAX_SURROGATE) return false;
    }
    return true;
  }

  private static boolean isOrderedHigh(String bound) {
    for (int i = 0; i < bound.length(); i++) {
      if (Character.isSurrogate(bound.charAt(i))) return false;
    }
    return true;
  }

  public void finalizeStripe(OrcProto.StripeFooter.Builder footer, OrcProto.StripeInformation.Builder entry) throws IOException {
    if (zone.id.isEmpty()) footer.clearWriterTimezone();
    else footer.setWriterTimezone(zone.id);
    super.finalizeStripe(footer, entry);
  }

  public void writeFileFooter(OrcProto.Footer.Builder footer) throws IOException {
    footer.clearTypes().addAllTypes(source.footer.getTypesList());
    footer.clearMetadata().addAllMetadata(source.footer.getMetadataList());
    if (source.footer.hasCalendar()) footer.setCalendar(source.footer.getCalendar());
    else footer.clearCalendar();
    super.writeFileFooter(footer);
  }
}
