package hivekeeper.copy;

import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/**
 * A fingerprint of rows whose order does not matter: their number, and two sums over a 64-bit hash of each row.
 *
 * The hash of a row is a fold over the entries of all its leaf columns, in the order of the schema. An entry is the column's path, its
 * repetition level, how many nodes of its path are there, and its value's bits; every NaN and the sign of zero count. Each step is a
 * bijection in the state for a given entry, and in the value for a given state, and so is the final mixing. So two rows that differ in
 * exactly one number never have the same hash. Byte arrays enter by their 64-bit XXH64: for them, and for rows that differ in more
 * places, the chance of one hash for two rows is 2^-64.
 *
 * Not seen: the order of rows, annotations, whether a column is required, and its physical type: 0 and 0.0 have the same bits.
 * `Form.identity` covers these, all but the order.
 */
class RowDigest {
  /** The state before the first entry of a row. */
  static final long START = 0x243f6a8885a308d3L;

  private static final long SEED = 42L;

  long rows;
  long high;
  long low;

  static long fold(long state, long entry, long value) {
    long mixed = ((state + entry) ^ spread(value)) * 0x9e3779b97f4a7c15L;
    return mixed ^ (mixed >>> 32);
  }

  /** Without it, related changes of two values could cancel out: a flip of the highest bit outlives the multiplication. */
  static long spread(long value) {
    long mixed = (value ^ (value >>> 33)) * 0xff51afd7ed558ccdL;
    mixed = (mixed ^ (mixed >>> 33)) * 0xc4ceb9fe1a85ec53L;
    return mixed ^ (mixed >>> 33);
  }

  /** What stands for a byte array in a fold. */
  static long hash(byte[] bytes, int offset, int count) {
    return hash(bytes, offset, count, SEED);
  }

  static long hash(byte[] bytes, int offset, int count, long seed) {
    // XXH64 reads what it is told, also outside the array: a JVM ends there. ORC's reader gives lengths as a file claims them.
    if (offset < 0 || count < 0 || count > bytes.length - offset) {
      throw new IllegalStateException("a text claims " + count + " bytes from " + offset + " on, there are " + bytes.length);
    }
    return XXH64.hashUnsafeBytes(bytes, (long) (Platform.BYTE_ARRAY_OFFSET + offset), count, seed);
  }

  void add(long[] hashes, int count) {
    rows += count;
    for (int i = 0; i < count; i++) {
      long mixed = hashes[i];
      mixed = (mixed ^ (mixed >>> 33)) * 0xff51afd7ed558ccdL;
      mixed ^= mixed >>> 33;
      low += mixed;
      mixed *= 0xc4ceb9fe1a85ec53L;
      high += mixed ^ (mixed >>> 29);
    }
  }
}
