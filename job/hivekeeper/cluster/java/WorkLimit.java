package hivekeeper;

/**
 * How many values files may hold, by their lengths: a run of one value takes a few bytes however long it is, and rows without columns take
 * none, so a file of a kilobyte can be read for years. A long value counts for several.
 */
public class WorkLimit {
  /** Read in less than a minute. */
  private static final long FREE = 1L << 30;
  /** A table of which nearly all columns are NULL has a hundred. */
  private static final long VALUES_PER_BYTE = 1000L;
  private static final long BYTES_PER_VALUE = 64L;

  private final long bytes;
  private long left;

  /** For files that have these many bytes together. */
  public WorkLimit(long bytes) {
    this.bytes = bytes;
    left = FREE + VALUES_PER_BYTE * bytes;
  }

  public void takeValues(long count) {
    if (count > left) throw new IllegalStateException("it has more values than " + bytes + " bytes can be expected to hold");
    left -= Math.max(0L, count);
  }

  /** The bytes of values that have been counted already. */
  public void takeBytes(long count) {
    takeValues(count / BYTES_PER_VALUE);
  }
}
