package hivekeeper.copy;

import hivekeeper.WorkLimit;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.IntLogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;

/** Copies the entries of one leaf column as (repetition level, definition level, physical value) and folds them into the rows' hashes. */
class ColumnCopier {
  private static final long CANONICAL_DOUBLE = 0x7ff8000000000000L;
  private static final int CANONICAL_FLOAT = 0x7fc00000;
  private static final long ENTRIES_PER_LOOK = 0xffffL;
  private static final long VALUE_BYTES = 8L;
  private static final long BYTES_PER_LOOK = 8L << 20;

  final ColumnDescriptor column;
  /** Whether a NaN was met that the library's own writers would replace with the canonical one. */
  boolean hasOddNaN;
  private final WorkLimit work;
  private final PrimitiveTypeName type;
  private final int whole;
  /** How many of its bits no number needs, by the annotation. */
  private final int spareBits;
  private final boolean isUnsigned;
  /** Null if it has no decimals. */
  private final DecimalRange decimals;
  // What a fold takes for an entry, by repetition and definition level; a level that the column cannot have is out of bounds.
  private final long[][] entries;
  private ColumnReader reader;
  private ChunkClaims claims;
  private long left;
  private long bytes;
  private long lookedAt;

  ColumnCopier(ColumnDescriptor column, GroupType schema, WorkLimit work) throws IOException {
    this.column = column;
    this.work = work;
    type = column.getPrimitiveType().getPrimitiveTypeName();
    whole = column.getMaxDefinitionLevel();
    LogicalTypeAnnotation annotation = column.getPrimitiveType().getLogicalTypeAnnotation();
    IntLogicalTypeAnnotation number = annotation instanceof IntLogicalTypeAnnotation ? (IntLogicalTypeAnnotation) annotation : null;
    spareBits = number == null || type != PrimitiveTypeName.INT32 ? 0 : Integer.SIZE - number.getBitWidth();
    isUnsigned = number != null && !number.isSigned();
    decimals = annotation instanceof DecimalLogicalTypeAnnotation ? new DecimalRange((DecimalLogicalTypeAnnotation) annotation) : null;
    long path = hash(Binary.fromConstantByteArray(String.join("\0", column.getPath()).getBytes("UTF-8")));
    int[] depths = depths(schema);
    entries = new long[column.getMaxRepetitionLevel() + 1][whole + 1];
    for (int repetition = 0; repetition < entries.length; repetition++) {
      for (int level = 0; level <= whole; level++) entries[repetition][level] = path + ((long) repetition << 8 | depths[level]);
    }
  }

  /** How many nodes of the path are there, by definition level: the same whether a node is required or optional. */
  private int[] depths(GroupType schema) {
    int[] depths = new int[whole + 1];
    String[] path = column.getPath();
    int level = 0;
    Type node = schema;
    for (int i = 0; i < path.length; i++) {
      node = node.asGroupType().getType(path[i]);
      if (!node.isRepetition(Type.Repetition.REQUIRED)) depths[level++] = i;
    }
    depths[level] = path.length;
    return depths;
  }

  /** Begin the next row group; its values are compared with `chunk`, unless that is null. */
  void open(ColumnReadStoreImpl store, ChunkClaims chunk) {
    claims = chunk;
    reader = store.getColumnReader(column);
    // The reader's levels say nothing after the last value, so values are counted.
    left = reader.getTotalValueCount();
    work.takeValues(left);
  }

  void requireEnd() throws IOException {
    if (left != 0) throw new IOException("the column " + String.join(".", column.getPath()) + " has more rows than its row group");
    if (claims != null) claims.checkNulls();
  }

  /**
   * Copies `count` rows, or only folds them if `writer`, of a column of `merged`, is null. The hash of row i of this batch is hashes[i].
   * Returns the values' bytes.
   */
  long copy(int count, ColumnWriter writer, long[] hashes, MergedFile merged) throws IOException {
    int row = -1;
    bytes = 0;
    lookedAt = 0;
    while (left > 0) {
      if ((left & ENTRIES_PER_LOOK) == 0 || bytes - lookedAt >= BYTES_PER_LOOK) {
        FileMerge.requireNotKilled();
        if (merged != null) merged.requireRoom();
        work.takeBytes(bytes - lookedAt);
        lookedAt = bytes;
      }
      int repetition = reader.getCurrentRepetitionLevel();
      if (repetition == 0 && row == count - 1) return bytes;
      if (repetition == 0) row++;
      else if (row < 0) throw new IOException("a row group begins inside a row of " + String.join(".", column.getPath()));
      int level = reader.getCurrentDefinitionLevel();
      long entry = entries[repetition][level];
      if (level < whole) {
        if (claims != null) claims.addNull();
        if (writer != null) writer.writeNull(repetition, level);
        hashes[row] = RowDigest.fold(hashes[row], entry, 0L);
      } else {
        bytes += VALUE_BYTES;
        hashes[row] = RowDigest.fold(hashes[row], entry, copyValue(writer, repetition, level));
      }
      reader.consume();
      left--;
    }
    if (row != count - 1) throw new IOException("the column " + String.join(".", column.getPath()) + " has fewer rows than its row group");
    return bytes;
  }

  /** Returns what a fold takes for the value. */
  private long copyValue(ColumnWriter writer, int repetition, int level) throws IOException {
    if (type == PrimitiveTypeName.INT32) {
      int value = reader.getInteger();
      if (claims != null) claims.check(value);
      if (writer != null && spareBits > 0) requireNarrow(value);
      if (writer != null && decimals != null && !decimals.has(value)) throw tooManyDigits();
      if (writer != null) writer.write(value, repetition, level);
      return value;
    }
    if (type == PrimitiveTypeName.INT64) {
      long value = reader.getLong();
      if (claims != null) claims.check(value);
      if (writer != null && decimals != null && !decimals.has(value)) throw tooManyDigits();
      if (writer != null) writer.write(value, repetition, level);
      return value;
    }
    if (type == PrimitiveTypeName.DOUBLE) return copyDouble(writer, repetition, level);
    if (type == PrimitiveTypeName.FLOAT) return copyFloat(writer, repetition, level);
    if (type == PrimitiveTypeName.BOOLEAN) {
      boolean value = reader.getBoolean();
      if (claims != null) claims.check(value);
      if (writer != null) writer.write(value, repetition, level);
      return value ? 1L : 0L;
    }
    // As bytes that change, of which the library keeps a copy: a short value would hold the long page or dictionary that it lies in.
    Binary value = asReused(reader.getBinary());
    bytes += value.length();
    if (claims != null) claims.check(value);
    if (writer != null && decimals != null && !has(decimals, value)) throw tooManyDigits();
    if (writer != null) writer.write(value, repetition, level);
    return hash(value);
  }

  /** Many readers leave out the bits above those of the annotation, and would be told by bounds and dictionaries that there is no such value. */
  private void requireNarrow(int value) throws IOException {
    int kept = value << spareBits;
    if ((isUnsigned ? kept >>> spareBits : kept >> spareBits) == value) return;
    String bits = (Integer.SIZE - spareBits) + " bits";
    throw new IOException("the column " + String.join(".", column.getPath()) + " has the number " + value + ", its annotation says " + bits);
  }

  /** Some readers cut such a number to 64 bits, which bounds do not say, others take it for NULL or fail. */
  private IOException tooManyDigits() {
    return new IOException("the column " + String.join(".", column.getPath()) + " has a decimal of more than the " + decimals.digits
        + " digits that its annotation says");
  }

  private long copyDouble(ColumnWriter writer, int repetition, int level) throws IOException {
    double value = reader.getDouble();
    long bits = Double.doubleToRawLongBits(value);
    hasOddNaN = hasOddNaN || value != value && bits != CANONICAL_DOUBLE;
    if (claims != null) claims.check(value);
    if (writer != null) writer.write(value, repetition, level);
    return bits;
  }

  private long copyFloat(ColumnWriter writer, int repetition, int level) throws IOException {
    float value = reader.getFloat();
    int bits = Float.floatToRawIntBits(value);
    hasOddNaN = hasOddNaN || value != value && bits != CANONICAL_FLOAT;
    if (claims != null) claims.check((double) value);
    if (writer != null) writer.write(value, repetition, level);
    return bits;
  }

  private static Binary asReused(Binary value) {
    ByteBuffer bytes = value.toByteBuffer();
    if (!bytes.hasArray()) bytes = ByteBuffer.wrap(value.getBytes());
    return Binary.fromReusedByteArray(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
  }

  private static boolean has(DecimalRange decimals, Binary value) {
    ByteBuffer bytes = value.toByteBuffer();
    return decimals.has(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
  }

  private static long hash(Binary value) {
    ByteBuffer bytes = value.toByteBuffer();
    return RowDigest.hash(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
  }
}
