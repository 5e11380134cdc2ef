package hivekeeper.copy;

import java.util.Arrays;
import java.util.List;
import java.util.TimeZone;
import org.apache.orc.OrcProto;

/**
 * The time zone of an ORC file's writer. Stored timestamps are seconds from the start of 2015 there; statistics hold its wall clock, as
 * milliseconds of UTC (ORC-135). A copy has the stored values as they are, and here the statistics that belong to them.
 *
 * "Read in UTC" below means: as if the stored values were those of a writer in UTC, which is how they are copied.
 */
class WriterZone {
  private static final long START_OF_2015 = 1420070400000L;
  private static final long DAY = 86400000L;
  private static final int NANOS = 1000000;
  private static final List<String> UTC = Arrays.asList("UTC", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Zulu", "Universal");

  final String id;
  /** False for a file without zone or with one that Java does not know: readers may then disagree on the wall clock. */
  final boolean isKnown;
  final boolean isUtc;
  private final TimeZone zone;
  private final long shift;

  WriterZone(String id) {
    this.id = id;
    zone = TimeZone.getTimeZone(id);
    isUtc = UTC.contains(id);
    isKnown = isUtc || zone.getID().equals(id);
    shift = -zone.getOffset(START_OF_2015 - zone.getOffset(START_OF_2015));
  }

  /** The wall clock of a value read in UTC, in milliseconds; the fraction of a second is in `nanos`, too. */
  long wall(long read, int nanos) {
    if (isUtc) return read;
    long instant = read / 1000 * 1000 + shift + nanos / NANOS;
    if (instant < 0 && nanos >= NANOS) instant -= 1000;
    return instant + zone.getOffset(instant);
  }

  /** From statistics of values read in UTC make those of the wall clock, which lies within two days if the zone is not known. */
  void correct(OrcProto.ColumnStatistics.Builder statistics) {
    if (isUtc || !statistics.hasTimestampStatistics()) return;
    OrcProto.TimestampStatistics.Builder bounds = statistics.getTimestampStatisticsBuilder();
    if (!isKnown) {
      bounds.setMinimumUtc(bounds.getMinimumUtc() - 2 * DAY).setMaximumUtc(bounds.getMaximumUtc() + 2 * DAY);
      return;
    }
    bounds.setMinimumUtc(lowest(bounds.getMinimumUtc())).setMaximumUtc(highest(bounds.getMaximumUtc()));
  }

  /** No later value has an earlier wall clock: clocks are set back by less than a day. */
  private long lowest(long read) {
    long instant = read + shift - roundedDown(read);
    return instant + Math.min(zone.getOffset(instant), zone.getOffset(instant + DAY));
  }

  private long highest(long read) {
    long instant = read + shift + roundedDown(read);
    return instant + Math.max(zone.getOffset(instant), zone.getOffset(instant - DAY));
  }

  /** Near 1970 a value may have another sign in its own zone than in UTC, and then the fraction counts from another second. */
  private static long roundedDown(long read) {
    return Math.abs(read) < DAY ? 1000L : 0L;
  }
}
