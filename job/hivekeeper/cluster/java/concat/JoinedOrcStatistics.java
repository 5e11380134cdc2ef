package hivekeeper.concat;

import org.apache.orc.OrcProto;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.ColumnStatisticsImpl;

/** What footers of ORC say of one column in several files together; nothing that one of them does not say of its own values. */
class JoinedOrcStatistics {
  private final TypeDescription type;
  private final boolean corrected;
  private final OrcProto.ColumnStatistics.Builder kinds = OrcProto.ColumnStatistics.newBuilder();
  /** Null before the first values. */
  private ColumnStatisticsImpl bounds;
  /** The library's merge takes the bounds of one side if the other has none. */
  private boolean isBounded = true;
  private boolean hasNull;
  private long values;
  private long textBytes;

  /** `corrected`: their calendar is the proleptic Gregorian one. */
  JoinedOrcStatistics(TypeDescription type, boolean corrected) {
    this.type = type;
    this.corrected = corrected;
  }

  /** Whether a file says how many values each of its columns has, as far as can be seen. A writer without indexes says 0 of every column. */
  static boolean isCounted(OrcProto.Footer file) {
    if (file.getStatisticsCount() < file.getTypesCount()) return false;
    boolean[] repeated = new boolean[file.getTypesCount()];
    for (int i = 0; i < file.getTypesCount(); i++) {
      OrcProto.Type type = file.getTypes(i);
      boolean repeats = repeated[i] || type.getKind() == OrcProto.Type.Kind.LIST || type.getKind() == OrcProto.Type.Kind.MAP;
      // Types stand before those inside them.
      for (int j = 0; j < type.getSubtypesCount(); j++) repeated[type.getSubtypes(j)] = repeats;
      if (!file.getStatistics(i).hasNumberOfValues()) return false;
      long count = file.getStatistics(i).getNumberOfValues();
      if (count < 0 || !repeated[i] && count > file.getNumberOfRows()) return false;
    }
    return file.getTypesCount() == 0 || file.getStatistics(0).getNumberOfValues() == file.getNumberOfRows();
  }

  void add(OrcProto.Footer file, int column, boolean counts) {
    boolean isTold = column < file.getStatisticsCount();
    OrcProto.ColumnStatistics said = isTold ? file.getStatistics(column) : OrcProto.ColumnStatistics.getDefaultInstance();
    hasNull = hasNull || !said.hasHasNull() || said.getHasNull();
    if (counts) values = Math.addExact(values, said.getNumberOfValues());
    textBytes = Math.addExact(textBytes, Math.max(0L, said.getStringStatistics().getSum()));
    kinds.mergeFrom(said);
    if (counts && said.getNumberOfValues() == 0) return;
    isBounded = isBounded && counts && hasBounds(said);
    if (!isBounded) return;
    ColumnStatisticsImpl next = ColumnStatisticsImpl.deserialize(type, said, corrected, corrected);
    // Trino's writer says nothing of the numbers of a column with a NaN.
    isBounded = bounds == null || bounds.getClass() == next.getClass();
    if (bounds == null) bounds = next;
    else if (isBounded) bounds.merge(next);
  }

  /**
   * `rows`: how many they have if some do not count their values. Then a number says that there are more: ORC's C++ library takes a column
   * without one for NULLs only and skips the file, Trino one with as many values as rows for a column without NULLs.
   */
  OrcProto.ColumnStatistics ofAll(boolean isCounted, long rows) {
    boolean isKnown = isBounded && bounds != null;
    OrcProto.ColumnStatistics.Builder told = isKnown ? bounds.serialize() : withoutBounds(kinds.build(), textBytes);
    if (told.hasDoubleStatistics()) includeBothZeros(told.getDoubleStatisticsBuilder());
    return told.setNumberOfValues(isCounted ? values : Math.addExact(rows, 1L)).setHasNull(hasNull).clearBytesOnDisk().build();
  }

  static OrcProto.ColumnStatistics ofNoValues(OrcProto.ColumnStatistics like) {
    return withoutBounds(like, 0L).setNumberOfValues(0L).setHasNull(false).build();
  }

  private static boolean hasBounds(OrcProto.ColumnStatistics said) {
    if (said.hasIntStatistics()) return said.getIntStatistics().hasMinimum() && said.getIntStatistics().hasMaximum();
    if (said.hasDateStatistics()) return said.getDateStatistics().hasMinimum() && said.getDateStatistics().hasMaximum();
    if (said.hasStringStatistics()) return hasBounds(said.getStringStatistics());
    if (said.hasDecimalStatistics()) return said.getDecimalStatistics().hasMinimum() && said.getDecimalStatistics().hasMaximum();
    if (said.hasTimestampStatistics()) {
      return said.getTimestampStatistics().hasMinimumUtc() && said.getTimestampStatistics().hasMaximumUtc();
    }
    if (!said.hasDoubleStatistics()) return true;
    OrcProto.DoubleStatistics numbers = said.getDoubleStatistics();
    return numbers.hasMinimum() && numbers.hasMaximum() && !Double.isNaN(numbers.getSum());
  }

  /** Bytes that are not UTF-8 become others in the library, which may lie below them. */
  private static boolean hasBounds(OrcProto.StringStatistics texts) {
    boolean isText = texts.getMinimumBytes().isValidUtf8() && texts.getMaximumBytes().isValidUtf8();
    return isText && texts.hasMinimum() && texts.hasMaximum();
  }

  /** The library keeps the zero that came first; for Trino 0.0 is more than -0.0. */
  private static void includeBothZeros(OrcProto.DoubleStatistics.Builder numbers) {
    if (numbers.hasMinimum() && numbers.getMinimum() == 0) numbers.setMinimum(-0.0);
    if (numbers.hasMaximum() && numbers.getMaximum() == 0) numbers.setMaximum(0.0);
  }

  /** Of the same kind, which readers expect of a column's type. */
  private static OrcProto.ColumnStatistics.Builder withoutBounds(OrcProto.ColumnStatistics said, long textBytes) {
    OrcProto.ColumnStatistics.Builder kept = OrcProto.ColumnStatistics.newBuilder();
    if (said.hasIntStatistics()) kept.setIntStatistics(OrcProto.IntegerStatistics.getDefaultInstance());
    if (said.hasDoubleStatistics()) kept.setDoubleStatistics(OrcProto.DoubleStatistics.getDefaultInstance());
    if (said.hasStringStatistics()) kept.setStringStatistics(OrcProto.StringStatistics.newBuilder().setSum(textBytes));
    if (said.hasBucketStatistics()) kept.setBucketStatistics(OrcProto.BucketStatistics.newBuilder().addCount(0L));
    if (said.hasDecimalStatistics()) kept.setDecimalStatistics(OrcProto.DecimalStatistics.getDefaultInstance());
    if (said.hasDateStatistics()) kept.setDateStatistics(OrcProto.DateStatistics.getDefaultInstance());
    if (said.hasBinaryStatistics()) kept.setBinaryStatistics(OrcProto.BinaryStatistics.newBuilder().setSum(0L));
    if (said.hasTimestampStatistics()) kept.setTimestampStatistics(OrcProto.TimestampStatistics.getDefaultInstance());
    if (said.hasCollectionStatistics()) kept.setCollectionStatistics(OrcProto.CollectionStatistics.getDefaultInstance());
    return kept;
  }
}
