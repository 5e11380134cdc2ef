package hivekeeper;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.parquet.hadoop.metadata.Canonicalizer;
import org.apache.parquet.hadoop.metadata.ColumnChunkProperties;
import org.apache.parquet.hadoop.metadata.ColumnPath;

/** Bounds what the names of a Parquet file's columns cost: their library keeps all that it ever read, as keys of maps. */
public class ColumnNames {
  /** Nobody's columns have as many equal hashes by chance. */
  private static final int MOST_OF_ONE_HASH = 100;
  private static final int MOST_KEPT = 10000;
  /** Of the names in all paths; a name may have millions. */
  private static final long MOST_CHARACTERS = 1L << 20;
  /** Of the files that were read since the names were forgotten, and of the one that this thread is reading. */
  private static final AtomicLong CHARACTERS = new AtomicLong();
  private static final ThreadLocal<Long> BEING_READ = new ThreadLocal<Long>();
  private static final List<Object> KEPT = new ArrayList<Object>();

  static {
    addKept(ColumnPath.class, "paths");
    addKept(ColumnChunkProperties.class, "properties");
  }

  private ColumnNames() {}

  private static void addKept(Class<?> owner, String field) {
    try {
      KEPT.add(valueOf(Canonicalizer.class, "canonicals", valueOf(owner, field, null)));
    } catch (ReflectiveOperationException absent) {
      // A version of the library that keeps them elsewhere, or not at all.
    }
  }

  private static Object valueOf(Class<?> owner, String name, Object of) throws ReflectiveOperationException {
    Field field = owner.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  /**
   * For the paths of a file that is about to be read. Fails if so many have one hash that somebody must have chosen them: they are keys of
   * maps, here and in the library, and cannot be ordered, so each would be compared with all others.
   */
  static void take(List<List<String>> paths) {
    int[] hashes = new int[paths.size()];
    long characters = 0;
    for (int i = 0; i < hashes.length; i++) {
      List<String> path = (List) paths.get(i);
      hashes[i] = path.hashCode();
      for (String part : path) characters += ((String) part).length();
    }
    BEING_READ.set(characters);
    Arrays.sort(hashes);
    for (int i = MOST_OF_ONE_HASH; i < hashes.length; i++) {
      if (hashes[i] == hashes[i - MOST_OF_ONE_HASH]) {
        throw new IllegalStateException("more than " + MOST_OF_ONE_HASH + " of its columns have names of one hash");
      }
    }
  }

  /**
   * After a file was read: empties the library's memory of names if it holds much. It keeps them as long as the JVM lives, and whoever
   * writes files may make each of them name others, until those of other tables cannot be read any more. It only makes equal names one
   * object.
   */
  public static void forgetMany() {
    Long characters = (Long) BEING_READ.get();
    BEING_READ.remove();
    boolean isMuch = characters != null && CHARACTERS.addAndGet(characters.longValue()) > MOST_CHARACTERS;
    for (Object each : KEPT) isMuch = isMuch || ((Map) each).size() > MOST_KEPT;
    if (!isMuch) return;
    CHARACTERS.set(0L);
    for (Object each : KEPT) ((Map) each).clear();
  }
}
