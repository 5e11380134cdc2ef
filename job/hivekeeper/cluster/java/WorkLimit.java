package hivekeeper;

/**
 * How many values may be read of some files: a run of one value takes a few bytes however long it is, and rows without columns take none, so
 * a file of a kilobyte can be read for years. A long value counts for several.
 */
public class WorkLimit {
  /** Read in about a minute. A single file may have so many that no bytes stand for, as in model.py; of many files, plan/capacity.py bounds them. */
  public static final long FREE = 1L << 30;
  /** A table of which nearly all columns are NULL has a hundred. As in model.py. */
  private static final long VALUES_PER_BYTE = 1000L;
  private static final long BYTES_PER_VALUE = 64L;

  private final long bytes;
  private long left;

  /** `bytes` are those of the files together. */
  public WorkLimit(long values, long bytes) {
    this.bytes = bytes;
    left = values;
  }

  /** Beyond this a single file is not read, whatever others have. */
  static WorkLimit ofFile(long bytes) {
    return new WorkLimit(FREE + VALUES_PER_BYTE * bytes, bytes);
  }

  public void takeValues(long count) {
    if (count > left) throw new Exceeded(bytes);
    left -= Math.max(0L, count);
  }

  /** The bytes of values that have been counted already. */
  public void takeBytes(long count) {
    takeValues(count / BYTES_PER_VALUE);
  }

  public long left() {
    return left;
  }

  /** Files have more values than they may have. */
  public static class Exceeded extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    Exceeded(long bytes) {
      super("it has more values than " + bytes + " bytes can be expected to hold");
    }

    /** Whether this is the reason of a failure, which libraries may have wrapped. */
    public static boolean causes(Throwable error) {
      for (Throwable each = error; each != null; each = each.getCause()) {
        if (each instanceof Exceeded) return true;
      }
      return false;
    }
  }
}
