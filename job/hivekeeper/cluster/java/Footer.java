package hivekeeper;

import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;

/** The footer of one file, or why it cannot be read. */
public class Footer {
  /** Prefix of Spark's own keys. */
  static final String SPARK = "org.apache.spark.";

  /** Longer footers are not read: a thousand columns take less than one MiB for each row group. */
  static final long MOST_BYTES = 64L << 20;
  /** Deeper columns are not read, because code that handles schemas recurses once for each level. */
  static final int MOST_LEVELS = 100;
  /** Of all full names of columns together; each repeats those of the structs around it, so a million of them can be terabytes. */
  private static final long MOST_NAMES = 64L << 20;
  private static final String STARVED = "its footer makes the reader take more memory than the driver has (spark.driver_memory)";

  final ListedFile file;
  String unreadable;
  long rows;
  /** Rows and values of all columns, as far as they are told. */
  long values;
  /** Statistics by column, nested ones under their dotted names. */
  final Map<String, ColumnFacts> columns = new TreeMap<String, ColumnFacts>();
  /** `model.Form`, by its names. */
  Map<String, Object> form = new LinkedHashMap<String, Object>();
  /** Whether the file has rows, so that it has a codec, a zone and bloom filters of its own. */
  boolean settled = true;
  /** Start, length and rows of each row group (of ORC: stripe) that has rows, as the footer claims them. Null: they are not told. */
  List<Long> rowGroups;
  private long endOfRowGroups;
  private final AtomicInteger roomForRowGroups;
  private long namesLength;

  /** `roomForRowGroups`: how many may still be told, of all files that share it. */
  Footer(ListedFile file, AtomicInteger roomForRowGroups) {
    this.file = file;
    this.roomForRowGroups = roomForRowGroups;
  }

  /** A hash, by its first half. */
  static String hex(MessageDigest digest) {
    StringBuilder out = new StringBuilder();
    byte[] hash = digest.digest();
    for (int i = 0; i < hash.length / 2; i++) out.append(Integer.toHexString(256 + (hash[i] & 255)).substring(1));
    return out.toString();
  }

  public static void requireShort(long footerBytes) {
    if (footerBytes > MOST_BYTES || footerBytes < 0) {
      throw new IllegalStateException("its footer takes " + footerBytes + " bytes; more than " + MOST_BYTES + " are not read");
    }
  }

  /** A count and the next one. Counts that overflow could add up to any number, such as no rows, or as many as elsewhere in the file. */
  static long sum(long counted, long next) {
    if (next < 0 || counted > Long.MAX_VALUE - next) throw new IllegalStateException("it claims " + counted + " and " + next + " rows or values");
    return counted + next;
  }

  static void requireShallow(int levels) {
    if (levels > MOST_LEVELS) throw new IllegalStateException("its columns are nested deeper than " + MOST_LEVELS + " levels");
  }

  /** Whether there is room to tell so many row groups. */
  boolean beginRowGroups(int count) {
    boolean fits = file.begin == 0 && takeRoom(count);
    rowGroups = fits ? new ArrayList<Long>() : null;
    return fits;
  }

  /** In one step: room that is taken first and given back afterwards is missing for a file that is read at the same time, and would fit. */
  private boolean takeRoom(int count) {
    int room = roomForRowGroups.get();
    while (room >= count && !roomForRowGroups.compareAndSet(room, room - count)) room = roomForRowGroups.get();
    return room >= count;
  }

  /**
   * One outside the file, or inside the one before it, is not true or not what writers write, so none of the file is told. Whether the file
   * can be read is judged elsewhere.
   */
  void addRowGroup(long start, long size, long rowsInside) {
    if (start < endOfRowGroups || size < 0 || size > file.length - start) rowGroups = null;
    if (rowGroups == null) return;
    endOfRowGroups = start + size;
    rowGroups.add(start);
    rowGroups.add(size);
    rowGroups.add(rowsInside);
  }

  /** Whoever reads the rows would not come to an end of more values. */
  void requireReadable() {
    WorkLimit limit = WorkLimit.ofFile(file.length);
    limit.takeValues(rows);
    values = rows;
    for (ColumnFacts column : columns.values()) {
      limit.takeValues(((ColumnFacts) column).values);
      values += Math.max(0L, ((ColumnFacts) column).values);
    }
  }

  /** Without reading it. */
  void giveUp() {
    unreadable = STARVED;
  }

  /** The error on one short line; a library's message may quote the file. */
  void refuse(Throwable error) {
    unreadable = Messages.isOfMemory(error) ? STARVED : Messages.shortReason(error);
  }

  boolean isStarved() {
    return STARVED.equals(unreadable);
  }

  /** As `dotted`, but no more of them than can be read. */
  String nameOf(List<String> parts) {
    for (String part : parts) namesLength += ((String) part).length() + 1;
    if (namesLength > MOST_NAMES) throw new IllegalStateException("the full names of its columns have more than " + MOST_NAMES + " characters");
    return dotted(parts);
  }

  /** Parts of a nested column's name, joined by dots; a part that contains a dot or a back-quote is back-quoted. */
  static String dotted(List<String> parts) {
    StringBuilder out = new StringBuilder();
    for (String part : parts) {
      boolean plain = part.indexOf('.') < 0 && part.indexOf('`') < 0;
      if (out.length() > 0) out.append('.');
      out.append(plain ? part : "`" + part.replace("`", "``") + "`");
    }
    return out.toString();
  }

  static String joined(Collection<String> names) {
    return String.join("+", names);
  }
}
