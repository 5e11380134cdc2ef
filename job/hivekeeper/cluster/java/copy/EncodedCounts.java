package hivekeeper.copy;

import hivekeeper.WorkLimit;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.parquet.bytes.ByteBufferInputStream;
import org.apache.parquet.bytes.BytesUtils;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.values.delta.DeltaBinaryPackingValuesReader;

/**
 * Walks the counts that are encoded inside a page, by which the library's decoders allocate memory before they look for the values.
 *
 * A count that is more than the page's values fails; what decoders allocate for the others has to fit. Each walk takes from a stream what
 * the library's decoder (parquet-mr 1.12 to 1.16) would take from it.
 *
 * Where packed bits end too early, the library reads zeros: the first value of a dictionary, NULL, or false. Arrow and Spark fail. A run of
 * no values goes on for ever in the library; Spark's vectorized reader leaves it out. A boolean of 2 in a run is true, and false for Arrow. A text of a negative length is an empty one in the
 * library, which goes back by that length.
 */
class EncodedCounts {
  /** So many values cost too little to be refused, should a writer have rounded a count up. */
  private static final long FREE = 1L << 16;
  private static final int GROUP = 8;
  private static final int MOST_WIDTH = 32;
  private static final String TEXT = "bytes of a text";

  private final int values;
  private final long longest;
  private final OpenPages open;
  private final WorkLimit work;
  private final String what;
  private long taken;
  /** How many values are really there, if the bytes that were walked last are cut short; else no less than the library can read. */
  private long whole = Long.MAX_VALUE;

  /**
   * No value of the page, which has `values` of them, can take more bytes than `longest`. The memory for them is taken from `open`; what is
   * decoded besides counts in `work`.
   */
  EncodedCounts(int values, long longest, OpenPages open, WorkLimit work, String what) {
    this.values = values;
    this.longest = longest;
    this.open = open;
    this.work = work;
    this.what = what;
  }

  /** The memory that was taken. */
  long taken() {
    return taken;
  }

  /** Repetition or definition levels in front of a page of version 1. */
  void walkLevels(Encoding encoding, int mostLevel, ByteBufferInputStream in) throws IOException {
    int width = BytesUtils.getWidthFromMaxInt(mostLevel);
    // Arrow begins at the other end of the bytes of BIT_PACKED, Spark's vectorized reader refuses it. It is also the name for no levels.
    if (encoding != Encoding.RLE && (encoding != Encoding.BIT_PACKED || width > 0)) {
      throw new IllegalStateException(what + " has levels in the encoding " + encoding.name());
    }
    if (width == 0) return;
    walkRuns(width, withLength(in));
    requireWhole(values);
  }

  /** Those of a page of version 2. */
  void walkBareLevels(int mostLevel, ByteBufferInputStream in) throws IOException {
    if (mostLevel > 0) walkRuns(BytesUtils.getWidthFromMaxInt(mostLevel), in);
    requireWhole(values);
  }

  /** Whether there may be fewer values than the page has with its NULLs. */
  boolean isCut() {
    return whole < values;
  }

  void requireWhole(long count) {
    if (whole < count) throw cut();
  }

  private IllegalStateException cut() {
    return new IllegalStateException(what + " ends too early");
  }

  void walkBooleans(ByteBufferInputStream in) {
    whole = (long) in.available() * GROUP;
  }

  void walkValues(Encoding encoding, ByteBufferInputStream in) throws IOException {
    if (encoding.usesDictionary()) {
      if (in.available() > 0) walkRuns(in.read(), in);
    } else if (encoding == Encoding.RLE) {
      walkRuns(1, withLength(in));
    } else if (encoding == Encoding.DELTA_BINARY_PACKED) {
      walkDelta(in);
    } else if (encoding == Encoding.DELTA_LENGTH_BYTE_ARRAY) {
      walkLengths(in, Integer.MAX_VALUE);
    } else if (encoding == Encoding.DELTA_BYTE_ARRAY) {
      // A value is allocated with the length of what it shares with the one before it.
      take(walkLengths(in, longest));
      walkLengths(in, Integer.MAX_VALUE);
    } else if (encoding == Encoding.BYTE_STREAM_SPLIT) {
      take(in.available());
    }
  }

  private ByteBufferInputStream withLength(ByteBufferInputStream in) throws IOException {
    int length = BytesUtils.readIntLittleEndian(in);
    require(length, in.available(), "bytes of runs");
    return in.sliceStream(length);
  }

  /** Runs of one value, and of groups of eight, which are decoded at a time. */
  private void walkRuns(int width, ByteBufferInputStream in) throws IOException {
    if (width > MOST_WIDTH) throw new IllegalStateException(what + " has values of " + width + " bits");
    long most = 0;
    long left = values;
    whole = Long.MAX_VALUE;
    while (left > 0 && in.available() > 0) {
      int header = BytesUtils.readUnsignedVarInt(in);
      long count = header >>> 1;
      long bytes = (width + GROUP - 1) / GROUP;
      boolean isPacked = (header & 1) == 1;
      if (isPacked) {
        bytes = count * width;
        count *= GROUP;
        require(count, left + GROUP - 1, "values in a run");
        most = Math.max(most, bytes + Integer.BYTES * count);
      }
      // The last run may be cut short, behind its last value.
      if (width > 0 && bytes > in.available()) whole = values - left + (long) in.available() * GROUP / width;
      boolean isSound = count > 0 && (isPacked || bytes > in.available() || isInside(in, width));
      if (!isSound) {
        whole = values - left;
        break;
      }
      in.skipFully(Math.min(bytes, (long) in.available()));
      left -= count;
    }
    take(most);
  }

  /** Whether the value of a run, which comes next and is left there, has no more bits than it may have. */
  private static boolean isInside(ByteBufferInputStream in, int width) throws IOException {
    in.mark(in.available());
    int value = BytesUtils.readIntLittleEndianPaddedOnBitWidth(in, width);
    in.reset();
    return Integer.toUnsignedLong(value) >>> width == 0;
  }

  /** What is allocated for a sequence of deltas, of which only the header is looked at. Returns how many values it has. */
  private int walkDelta(ByteBufferInputStream in) throws IOException {
    in.mark(in.available());
    long block = BytesUtils.readUnsignedVarInt(in);
    long parts = BytesUtils.readUnsignedVarInt(in);
    int total = BytesUtils.readUnsignedVarInt(in);
    require(total, values, "values in a sequence of deltas");
    require(block, Integer.MAX_VALUE, "values in a block of deltas");
    require(parts, in.available(), "parts in a block of deltas");
    in.reset();
    long part = parts == 0 ? 0 : block / parts;
    // The library refuses others.
    if (part <= 0) return total;
    // A part is decoded to its end: in a few bytes it may have as many deltas as there is memory for.
    long decoded = (total + part - 1) / part * part;
    take(Long.BYTES * (1 + decoded) + Integer.BYTES * parts);
    work.takeValues(decoded - Math.min(total, values));
    return total;
  }

  /** Those of texts, or of what they share with the one before. Returns the largest. */
  private int walkLengths(ByteBufferInputStream in, long most) throws IOException {
    int total = walkDelta(in);
    DeltaBinaryPackingValuesReader lengths = new DeltaBinaryPackingValuesReader();
    lengths.initFromPage(values, in);
    int largest = 0;
    for (int i = 0; i < total; i++) {
      int length = lengths.readInteger();
      require(length, most, TEXT);
      largest = Math.max(largest, length);
    }
    return largest;
  }

  /** Plain ones, with their lengths in front. */
  void walkTexts(ByteBufferInputStream in) throws IOException {
    ByteBuffer bytes = in.slice(in.available()).order(ByteOrder.LITTLE_ENDIAN);
    int at = bytes.position();
    for (int i = 0; i < values && bytes.limit() - at >= Integer.BYTES; i++) {
      int length = bytes.getInt(at);
      at += Integer.BYTES;
      require(length, bytes.limit() - at, TEXT);
      at += Math.min(length, bytes.limit() - at);
    }
  }

  private void require(long count, long most, String counted) {
    if (count < 0 || count > Math.max(most, FREE)) {
      throw new IllegalStateException(what + " claims " + count + " " + counted + ", there can be no more than " + most);
    }
  }

  private void take(long bytes) {
    open.take(bytes, what);
    taken += bytes;
  }
}
