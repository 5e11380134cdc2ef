package hivekeeper.copy;

/**
 * What one task may hold of its executor's heap: a quarter of the heap is shared by the tasks that run at a time.
 *
 * Besides, a task holds the row group that it reads from a streamed file, compressed, as the file's writer made it.
 */
class TaskMemory {
  /** Files up to this size are read whole, and those that are held at a time are not more than this together. */
  final long windowBytes;
  /** The most that one page may take when it is decompressed. */
  final long pageBytes;
  private final long share;

  TaskMemory(int cores, long mostWindowBytes) {
    int running = cores > 0 ? cores : Runtime.getRuntime().availableProcessors();
    share = Runtime.getRuntime().maxMemory() / (4L * running);
    windowBytes = Math.min(share, mostWindowBytes);
    pageBytes = Math.min(share, (long) Integer.MAX_VALUE);
  }

  /** The size of the row groups of an output: what was requested, if that fits. */
  long rowGroupBytes(long requested) {
    return Math.max(1L << 20, Math.min(requested, share));
  }
}
