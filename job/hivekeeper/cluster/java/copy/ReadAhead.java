package hivekeeper.copy;

import hivekeeper.ListedFile;
import hivekeeper.ParquetTail;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;

/**
 * The contents of files in order, read by several threads, one open and one read each.
 *
 * The contents that were read ahead, with the one that was taken last, are never more than the window, except that after a failure
 * reads that have begun may still end.
 */
class ReadAhead {
  private static final int THREADS = 4;
  private static final int MOST_FILES = 16;

  private final Configuration conf;
  private final List<?> files;
  private final long windowBytes;
  private final ExecutorService pool;
  private final ArrayDeque<Future<?>> pending = new ArrayDeque<Future<?>>();
  private int next;
  private long heldBytes;
  private long takenBytes;

  /** `files` are `ListedFile`. */
  ReadAhead(Configuration conf, List<?> files, long windowBytes) {
    this.conf = conf;
    this.files = files;
    this.windowBytes = windowBytes;
    pool = Executors.newFixedThreadPool(THREADS, new ThreadFactory() {
      public Thread newThread(Runnable work) {
        Thread thread = new Thread(work, "hivekeeper-read-ahead");
        thread.setDaemon(true);
        return thread;
      }
    });
  }

  /** The content of the next file, null if the file is longer than the window. The one taken before must no longer be used. */
  byte[] take() throws Exception {
    heldBytes -= takenBytes;
    takenBytes = 0;
    fill();
    Future<?> first = (Future) pending.poll();
    if (first == null) throw new IllegalStateException("all files have been taken");
    try {
      byte[] content = (byte[]) first.get();
      takenBytes = content == null ? 0 : content.length;
      return content;
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof Error) throw (Error) failed.getCause();
      throw (Exception) failed.getCause();
    }
  }

  void close() {
    pool.shutdownNow();
  }

  private void fill() {
    while (next < files.size() && pending.size() < MOST_FILES) {
      final ListedFile file = (ListedFile) files.get(next);
      final long length = file.length;
      final boolean streamed = length > windowBytes;
      if (!streamed && heldBytes + length > windowBytes) return;
      if (!streamed) heldBytes += length;
      next++;
      pending.add(pool.submit(new Callable<Object>() {
        public Object call() throws Exception {
          return streamed ? null : read(file, (int) length);
        }
      }));
    }
  }

  private byte[] read(ListedFile file, int length) throws IOException {
    FSDataInputStream in = file.system(conf).open(file.place());
    try {
      byte[] content = new byte[length];
      in.readFully(file.begin, content, 0, length);
      if (file.begin == 0) ParquetTail.requireEnd(in, length);
      return content;
    } finally {
      in.close();
    }
  }
}
