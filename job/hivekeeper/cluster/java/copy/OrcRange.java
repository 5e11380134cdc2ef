package hivekeeper.copy;

import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.orc.OrcProto;

/** How many values a column has in a stripe, and the lowest and highest of them, compared with the statistics by which readers skip. */
class OrcRange {
  private final WriterZone zone;
  private long count;
  private boolean hasNumber;
  private long lowNumber;
  private long highNumber;
  private double lowDouble;
  private double highDouble;
  private byte[] lowBytes;
  private byte[] highBytes;
  private HiveDecimalWritable lowDecimal;
  private HiveDecimalWritable highDecimal;

  /** `zone` is null for columns that are not timestamps of the writer's zone. */
  OrcRange(WriterZone zone) {
    this.zone = zone;
    clear();
  }

  void clear() {
    count = 0;
    hasNumber = false;
    lowDouble = Double.POSITIVE_INFINITY;
    highDouble = Double.NEGATIVE_INFINITY;
    lowBytes = null;
    highBytes = null;
    lowDecimal = null;
    highDecimal = null;
  }

  void addCount(int more) {
    count += more;
  }

  void add(long value) {
    lowNumber = hasNumber ? Math.min(lowNumber, value) : value;
    highNumber = hasNumber ? Math.max(highNumber, value) : value;
    hasNumber = true;
  }

  /** Bounds say nothing about NaN. */
  void add(double value) {
    if (value < lowDouble) lowDouble = value;
    if (value > highDouble) highDouble = value;
  }

  void add(byte[] bytes, int offset, int length) {
    if (lowBytes == null || compare(bytes, offset, length, lowBytes) < 0) lowBytes = Arrays.copyOfRange(bytes, offset, offset + length);
    if (highBytes == null || compare(bytes, offset, length, highBytes) > 0) highBytes = Arrays.copyOfRange(bytes, offset, offset + length);
  }

  void add(HiveDecimalWritable value) {
    if (lowDecimal == null || value.compareTo(lowDecimal) < 0) lowDecimal = new HiveDecimalWritable(value);
    if (highDecimal == null || value.compareTo(highDecimal) > 0) highDecimal = new HiveDecimalWritable(value);
  }

  /** Milliseconds only. */
  void addTime(long read, int nanos) {
    add(zone == null ? read : zone.wall(read, nanos));
  }

  void requireInside(OrcProto.ColumnStatistics said, String where) throws IOException {
    if (said.hasIntStatistics() && hasNumber) {
      OrcProto.IntegerStatistics bounds = said.getIntStatistics();
      require(!bounds.hasMinimum() || bounds.getMinimum() <= lowNumber, where);
      require(!bounds.hasMaximum() || bounds.getMaximum() >= highNumber, where);
    }
    if (said.hasDateStatistics() && hasNumber) {
      OrcProto.DateStatistics bounds = said.getDateStatistics();
      require(!bounds.hasMinimum() || bounds.getMinimum() <= lowNumber, where);
      require(!bounds.hasMaximum() || bounds.getMaximum() >= highNumber, where);
    }
    if (said.hasTimestampStatistics() && hasNumber) {
      OrcProto.TimestampStatistics bounds = said.getTimestampStatistics();
      require(!bounds.hasMinimumUtc() || bounds.getMinimumUtc() <= lowNumber, where);
      require(!bounds.hasMaximumUtc() || bounds.getMaximumUtc() >= highNumber, where);
    }
    if (said.hasDoubleStatistics()) {
      OrcProto.DoubleStatistics bounds = said.getDoubleStatistics();
      require(!bounds.hasMinimum() || !(bounds.getMinimum() > lowDouble), where);
      require(!bounds.hasMaximum() || !(bounds.getMaximum() < highDouble), where);
    }
    requireBytesInside(said, where);
    requireDecimalsInside(said, where);
  }

  private void requireBytesInside(OrcProto.ColumnStatistics said, String where) throws IOException {
    if (!said.hasStringStatistics() || lowBytes == null) return;
    OrcProto.StringStatistics bounds = said.getStringStatistics();
    String low = bounds.hasMinimum() ? bounds.getMinimum() : bounds.hasLowerBound() ? bounds.getLowerBound() : null;
    String high = bounds.hasMaximum() ? bounds.getMaximum() : bounds.hasUpperBound() ? bounds.getUpperBound() : null;
    require(low == null || compare(lowBytes, 0, lowBytes.length, low.getBytes("UTF-8")) >= 0, where);
    require(high == null || compare(highBytes, 0, highBytes.length, high.getBytes("UTF-8")) <= 0, where);
  }

  private void requireDecimalsInside(OrcProto.ColumnStatistics said, String where) throws IOException {
    if (!said.hasDecimalStatistics() || lowDecimal == null) return;
    OrcProto.DecimalStatistics bounds = said.getDecimalStatistics();
    require(!bounds.hasMinimum() || lowDecimal.compareTo(HiveDecimal.create(bounds.getMinimum())) >= 0, where);
    require(!bounds.hasMaximum() || highDecimal.compareTo(HiveDecimal.create(bounds.getMaximum())) <= 0, where);
  }

  void requireCount(OrcProto.ColumnStatistics said, String where) throws IOException {
    if (said.hasNumberOfValues() && said.getNumberOfValues() != count) {
      throw new IOException(where + " has " + count + " values, its statistics say " + said.getNumberOfValues());
    }
  }

  private static void require(boolean holds, String where) throws IOException {
    if (!holds) throw new IOException("a value of " + where + " lies outside the bounds in its statistics");
  }

  /** By unsigned bytes, as ORC orders strings. */
  private static int compare(byte[] one, int offset, int length, byte[] other) {
    int common = Math.min(length, other.length);
    for (int i = 0; i < common; i++) {
      int difference = (one[offset + i] & 255) - (other[i] & 255);
      if (difference != 0) return difference;
    }
    return length - other.length;
  }
}
