package hivekeeper.copy;

import java.math.BigInteger;
import java.util.Arrays;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;

/** The numbers of as many digits as an annotation says, without the point. The stored integers and bytes may be longer. */
class DecimalRange {
  /** Of a number of 64 bits all of them. */
  private static final int MOST_OF_LONG = 18;
  /** No reader knows more than 76; a footer may claim two thousand millions. */
  private static final int MOST = 1000;

  final int digits;
  /** The lowest number with one digit more. */
  private final BigInteger end;
  private final long endOfLong;
  /** A number of so many bytes has not too many digits, whatever it is. */
  private final int safeBytes;

  DecimalRange(DecimalLogicalTypeAnnotation annotation) {
    digits = Math.min(annotation.getPrecision(), MOST);
    end = BigInteger.TEN.pow(digits);
    endOfLong = digits > MOST_OF_LONG ? 0L : end.longValue();
    safeBytes = end.bitLength() / 8;
  }

  boolean has(long number) {
    return endOfLong == 0 || number < endOfLong && number > -endOfLong;
  }

  /** Of the big-endian number in two's complement. */
  boolean has(byte[] bytes, int offset, int length) {
    int at = offset;
    int last = offset + length - 1;
    // A byte that only repeats the sign.
    while (at < last && last - at >= safeBytes && bytes[at] == bytes[at + 1] >> 7) at++;
    if (last - at < safeBytes) return true;
    if (last - at < Long.BYTES) return has(number(bytes, at, last));
    BigInteger number = new BigInteger(Arrays.copyOfRange(bytes, at, last + 1));
    return number.abs().compareTo(end) < 0;
  }

  private static long number(byte[] bytes, int first, int last) {
    long number = bytes[first];
    for (int i = first + 1; i <= last; i++) number = number << 8 | bytes[i] & 255;
    return number;
  }
}
