package hivekeeper.copy;

import hivekeeper.WorkLimit;
import java.io.IOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.UnionColumnVector;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.orc.OrcProto;
import org.apache.orc.TypeDescription;

/**
 * Folds the values of one column and of those inside it into the hashes of their rows.
 *
 * The entries of a row are, in the order of the schema: for each value NULL or present, how many elements a list or map has, which
 * alternative a union has, and then what is inside it. They alone give the shape of a row, so equal entries mean equal rows.
 */
class OrcColumn {
  private static final long CANONICAL = 0x7ff8000000000000L;
  /** As many entries as take the time of one value where nothing is there. */
  private static final int PASSED_PER_VALUE = 4;

  final int id;
  /** The values of the current stripe, null if nobody compares them. */
  OrcRange range;
  /** Whether a NaN was met, and one that the library would write as another NaN. */
  boolean hasNaN;
  boolean hasOddNaN;
  /** A value that readers do not agree on, "" if there is none. */
  private String doubtful = "";
  private final WorkLimit work;
  private final String name;
  private final String kind;
  /** Stored are numbers of any length. Readers cut those of the types below 64 bits, but bounds do not say so. */
  private final int spareBits;
  /** How many characters readers leave of a text: bounds do not say so either. */
  private final int mostCharacters;
  /** How many digits a decimal has before and behind its point. */
  private final int mostWhole;
  private final int mostFraction;
  private final long absent;
  private final OrcColumn[] children;
  private int[] places = new int[0];
  private int[] owners = new int[0];
  private int found;

  /** `types` are the file's own, by column id, and name the columns. */
  OrcColumn(TypeDescription type, List<OrcProto.Type> types, String name, WorkLimit work) throws IOException {
    id = type.getId();
    this.work = work;
    this.name = name;
    OrcProto.Type declared = (OrcProto.Type) types.get(id);
    kind = declared.getKind().name();
    spareBits = kind.equals("SHORT") ? Long.SIZE - Short.SIZE : kind.equals("INT") || kind.equals("DATE") ? Long.SIZE - Integer.SIZE : 0;
    mostCharacters = mostCharacters(declared);
    mostFraction = type.getScale();
    mostWhole = type.getPrecision() - mostFraction;
    byte[] path = name.getBytes("UTF-8");
    absent = RowDigest.hash(path, 0, path.length);
    int count = type.getChildren() == null ? 0 : type.getChildren().size();
    children = new OrcColumn[count];
    for (int i = 0; i < count; i++) {
      String part = kind.equals("STRUCT") ? declared.getFieldNames(i) : "\0" + i;
      children[i] = new OrcColumn((TypeDescription) type.getChildren().get(i), types, id == 0 ? part : name + "\0" + part, work);
    }
  }

  private static int mostCharacters(OrcProto.Type declared) {
    OrcProto.Type.Kind kind = declared.getKind();
    if (kind != OrcProto.Type.Kind.CHAR && kind != OrcProto.Type.Kind.VARCHAR) return Integer.MAX_VALUE;
    return declared.hasMaximumLength() ? declared.getMaximumLength() : TypeDescription.createVarchar().getMaxLength();
  }

  /** This column and all inside it. */
  List<OrcColumn> all() {
    List<OrcColumn> out = new ArrayList<OrcColumn>();
    out.add(this);
    for (OrcColumn child : children) out.addAll(((OrcColumn) child).all());
    return out;
  }

  /** The rows of a batch, whose columns are those of this struct. */
  void foldRows(ColumnVector[] columns, int count, long[] hashes) throws IOException {
    places = grown(places, count);
    for (int i = 0; i < count; i++) places[i] = i;
    for (int i = 0; i < children.length; i++) children[i].fold(columns[i], places, places, count, count, hashes);
    if (range != null) range.addCount(count);
  }

  /**
   * Folds the value at at[i] into the hash of row rows[i], for the first `count`. The vector has `entries`: the library has gone through all of
   * them, also through those that are another alternative of a union, or in a struct that is not there.
   */
  private void fold(ColumnVector vector, int[] at, int[] rows, int count, long entries, long[] hashes) throws IOException {
    work.takeValues(Math.max((long) count, entries / PASSED_PER_VALUE));
    if (vector instanceof DoubleColumnVector) keepZeroSigns(vector);
    places = grown(places, count);
    owners = grown(owners, count);
    found = 0;
    for (int i = 0; i < count; i++) {
      int place = vector.isRepeating ? 0 : at[i];
      if (!vector.noNulls && vector.isNull[place]) {
        // The library has set the others, also those of an earlier batch.
        boolean isLost = vector instanceof DecimalColumnVector && !((DecimalColumnVector) vector).vector[place].isSet();
        if (isLost) doubtful = "a decimal that the ORC library takes for NULL";
        hashes[rows[i]] = RowDigest.fold(hashes[rows[i]], absent, 0L);
      } else {
        places[found] = place;
        owners[found++] = rows[i];
      }
    }
    if (range != null) range.addCount(found);
    if (found > 0) foldPresent(vector, entries, hashes);
  }

  /** The library's reader takes 0.0 and -0.0 as one repeated value, but has read each in its place. */
  private static void keepZeroSigns(ColumnVector vector) {
    if (vector.noNulls) vector.isRepeating = false;
  }

  private void foldPresent(ColumnVector vector, long entries, long[] hashes) throws IOException {
    if (vector instanceof BytesColumnVector) foldBytes((BytesColumnVector) vector, hashes);
    else if (vector instanceof LongColumnVector) foldLongs((LongColumnVector) vector, hashes);
    else if (vector instanceof DoubleColumnVector) foldDoubles((DoubleColumnVector) vector, hashes);
    else if (vector instanceof DecimalColumnVector) foldDecimals((DecimalColumnVector) vector, hashes);
    else if (vector instanceof TimestampColumnVector) foldTimestamps((TimestampColumnVector) vector, hashes);
    else if (vector instanceof StructColumnVector) foldStruct((StructColumnVector) vector, entries, hashes);
    else if (vector instanceof UnionColumnVector) foldUnion((UnionColumnVector) vector, entries, hashes);
    else if (vector instanceof ListColumnVector) foldLists((MultiValuedColumnVector) vector, hashes);
    else if (vector instanceof MapColumnVector) foldLists((MultiValuedColumnVector) vector, hashes);
    else throw new IOException("the column " + name + " has the type " + kind + ", which cannot be copied");
  }

  private void add(long[] hashes, int i, long value) {
    hashes[owners[i]] = RowDigest.fold(hashes[owners[i]], absent + 1, value);
  }

  private void addMore(long[] hashes, int i, long value) {
    hashes[owners[i]] = RowDigest.fold(hashes[owners[i]], absent + 2, value);
  }

  private void foldLongs(LongColumnVector vector, long[] hashes) {
    for (int i = 0; i < found; i++) {
      long value = vector.vector[places[i]];
      if (spareBits > 0 && value << spareBits >> spareBits != value) doubtful = "the number " + value + ", which is none of the type " + kind;
      if (range != null) range.add(value);
      add(hashes, i, value);
    }
  }

  private void foldDoubles(DoubleColumnVector vector, long[] hashes) {
    for (int i = 0; i < found; i++) {
      double value = vector.vector[places[i]];
      long bits = Double.doubleToRawLongBits(value);
      hasNaN = hasNaN || value != value;
      hasOddNaN = hasOddNaN || value != value && bits != CANONICAL;
      if (range != null) range.add(value);
      add(hashes, i, bits);
    }
  }

  private void foldBytes(BytesColumnVector vector, long[] hashes) {
    for (int i = 0; i < found; i++) {
      int place = places[i];
      work.takeBytes(vector.length[place]);
      if (vector.length[place] > mostCharacters && characters(vector, place) > mostCharacters) {
        doubtful = "a text of more characters than its type " + kind + " has";
      }
      if (range != null) range.add(vector.vector[place], vector.start[place], vector.length[place]);
      add(hashes, i, RowDigest.hash(vector.vector[place], vector.start[place], vector.length[place]));
    }
  }

  /** In UTF-8, where all bytes of a character but the first are 10xxxxxx. */
  private static int characters(BytesColumnVector vector, int place) {
    int count = 0;
    for (int i = 0; i < vector.length[place]; i++) count += (vector.vector[place][vector.start[place] + i] & 0xc0) == 0x80 ? 0 : 1;
    return count;
  }

  /** As the library reads them: without zeros at the end of the fraction, which do not count. */
  private void foldDecimals(DecimalColumnVector vector, long[] hashes) {
    for (int i = 0; i < found; i++) {
      HiveDecimalWritable value = vector.vector[places[i]];
      // Readers round or cut it, or take it for NULL; bounds do not say so.
      boolean isDeclared = value.scale() <= mostFraction && value.rawPrecision() - value.scale() <= mostWhole;
      if (!isDeclared) doubtful = "a decimal of more digits than its type has";
      if (range != null) range.add(value);
      BigInteger digits = value.getHiveDecimal().unscaledValue();
      byte[] bytes = digits.toByteArray();
      add(hashes, i, bytes.length <= 8 ? digits.longValue() : RowDigest.hash(bytes, 0, bytes.length));
      addMore(hashes, i, value.scale());
    }
  }

  private void foldTimestamps(TimestampColumnVector vector, long[] hashes) {
    for (int i = 0; i < found; i++) {
      int place = places[i];
      if (range != null) range.addTime(vector.time[place], vector.nanos[place]);
      add(hashes, i, vector.time[place]);
      addMore(hashes, i, vector.nanos[place]);
    }
  }

  private void foldStruct(StructColumnVector vector, long entries, long[] hashes) throws IOException {
    for (int i = 0; i < found; i++) add(hashes, i, 1L);
    for (int i = 0; i < children.length; i++) children[i].fold(vector.fields[i], places, owners, found, entries, hashes);
  }

  private void foldUnion(UnionColumnVector vector, long entries, long[] hashes) throws IOException {
    for (int i = 0; i < found; i++) add(hashes, i, vector.tags[places[i]]);
    for (int tag = 0; tag < children.length; tag++) {
      int[] at = new int[found];
      int[] rows = new int[found];
      int count = 0;
      for (int i = 0; i < found; i++) {
        if (vector.tags[places[i]] != tag) continue;
        at[count] = places[i];
        rows[count++] = owners[i];
      }
      children[tag].fold(vector.fields[tag], at, rows, count, entries, hashes);
    }
  }

  private void foldLists(MultiValuedColumnVector vector, long[] hashes) throws IOException {
    long count = 0;
    for (int i = 0; i < found; i++) {
      add(hashes, i, vector.lengths[places[i]]);
      count += vector.lengths[places[i]];
    }
    int[] at = new int[(int) count];
    int[] rows = new int[(int) count];
    int next = 0;
    for (int i = 0; i < found; i++) {
      for (long j = 0; j < vector.lengths[places[i]]; j++) {
        at[next] = (int) (vector.offsets[places[i]] + j);
        rows[next++] = owners[i];
      }
    }
    foldInside(vector, at, rows, next, hashes);
  }

  private void foldInside(MultiValuedColumnVector vector, int[] at, int[] rows, int count, long[] hashes) throws IOException {
    if (vector instanceof ListColumnVector) {
      children[0].fold(((ListColumnVector) vector).child, at, rows, count, vector.childCount, hashes);
    } else {
      children[0].fold(((MapColumnVector) vector).keys, at, rows, count, vector.childCount, hashes);
      children[1].fold(((MapColumnVector) vector).values, at, rows, count, vector.childCount, hashes);
    }
  }

  private static int[] grown(int[] array, int count) {
    return array.length >= count ? array : new int[Math.max(count, 2 * array.length)];
  }

  void requireWritable() throws IOException {
    if (!doubtful.isEmpty()) throw new IOException("the column " + name.replace('\0', '.') + " has " + doubtful);
    if (hasOddNaN) throw new IOException("the column " + name.replace('\0', '.') + " has a NaN whose bits the ORC library does not write");
  }
}
