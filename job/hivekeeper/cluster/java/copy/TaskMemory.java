package hivekeeper.copy;

/**
 * What one task may hold of its executor's heap. A share is a quarter of the heap, divided by the tasks that run at a time; a task has one
 * for the files that it reads ahead, one for open pages, and two for the row groups that it reads and writes.
 */
class TaskMemory {
  /** What the reader and the writer of a column hold besides pages. */
  private static final long COLUMN_BYTES = 16L << 10;

  /** Files up to this size are read whole, and those that are held at a time are not more than this together. */
  final long windowBytes;
  /** For the pages that are open at a time, one for each column, decompressed and with what their decoders make of them. */
  final long pageBytes;
  /** For the row group that is being read, as it is stored. */
  final long storedBytes;
  /** For the row group that is being written. */
  final long waitingBytes;
  /** Whether no other task runs at the same time. */
  final boolean isAlone;
  private final long share;

  TaskMemory(int cores, long mostWindowBytes) {
    int running = cores > 0 ? cores : Runtime.getRuntime().availableProcessors();
    share = Runtime.getRuntime().maxMemory() / (4L * running);
    windowBytes = Math.min(share, mostWindowBytes);
    pageBytes = share;
    storedBytes = 2L * share;
    waitingBytes = 2L * share;
    isAlone = running == 1;
  }

  /** For the pages of columns that are open together. Fails if the columns alone take more. */
  OpenPages openPages(int columns) {
    OpenPages open = new OpenPages(pageBytes);
    open.take(COLUMN_BYTES * columns, columns + " columns");
    return open;
  }

  /** The size of the row groups of an output: what was requested, if that fits. */
  long rowGroupBytes(long requested) {
    return Math.max(1L << 20, Math.min(requested, share));
  }
}
