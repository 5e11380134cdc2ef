package hivekeeper;

import org.apache.parquet.VersionParser;

/**
 * The name of a Parquet file's writer (`created_by`). Parquet's library looks for a version in it, for each column of each row group, by a
 * pattern whose time may grow with the sixth power of the name's length, because of blanks. So the pattern is tried here, with an end.
 */
class WriterName implements CharSequence {
  /** At most 0.1 ms. Real names take 300, one of 1,000 characters without blanks as many as this. */
  private static final int MOST_LOOKS = 2000;

  private final String text;
  private int looks;

  private WriterName(String text) {
    this.text = text;
  }

  /** `name` may be null. */
  static void requireQuick(String name) {
    if (name != null) VersionParser.PATTERN.matcher(new WriterName(name)).matches();
  }

  public char charAt(int index) {
    if (++looks > MOST_LOOKS) throw new IllegalStateException("its footer is malformed: the name of its writer takes too long to read");
    return text.charAt(index);
  }

  public int length() {
    return text.length();
  }

  public CharSequence subSequence(int start, int end) {
    return text.subSequence(start, end);
  }
}
