package hivekeeper;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The threads that call a NameNode or read footers for many paths at a time. They end when idle. */
public class WorkerPool {
  public static final int THREADS = 16;
  private static final long IDLE_SECONDS = 5L;
  private static final ThreadPoolExecutor POOL = newPool();

  private WorkerPool() {}

  /** One piece of work. */
  public interface Task {
    Object of(Object item) throws Exception;
  }

  /** The task's result for each item, in the items' order. A single item runs in the caller's own thread. */
  public static List<Object> map(List<?> items, final Task task) throws Exception {
    List<Object> results = new ArrayList<Object>();
    if (items.size() == 1) {
      results.add(task.of(items.get(0)));
      return results;
    }
    List<Future<?>> futures = new ArrayList<Future<?>>();
    for (final Object item : items) {
      futures.add(POOL.submit(new Callable<Object>() {
        public Object call() throws Exception {
          return task.of(item);
        }
      }));
    }
    return results(futures);
  }

  /** Item → the task's result, without items whose result is null. */
  public static Map<String, Object> mapFound(List<String> items, Task task) throws Exception {
    List<Object> results = map(items, task);
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    for (int i = 0; i < results.size(); i++) {
      if (results.get(i) != null) found.put((String) items.get(i), results.get(i));
    }
    return found;
  }

  /** Fails only after all have ended, so that nothing keeps running behind the caller's back. */
  private static List<Object> results(List<Future<?>> futures) throws Exception {
    List<Object> results = new ArrayList<Object>();
    ExecutionException first = null;
    for (Future<?> future : futures) {
      try {
        results.add(future.get());
      } catch (ExecutionException failed) {
        if (first == null) first = failed;
      }
    }
    if (first != null) throw first;
    return results;
  }

  private static ThreadPoolExecutor newPool() {
    ThreadFactory daemons = new ThreadFactory() {
      public Thread newThread(Runnable work) {
        Thread thread = new Thread(work, "hivekeeper-worker");
        thread.setDaemon(true);
        return thread;
      }
    };
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(THREADS, THREADS, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue<Runnable>(), daemons);
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }
}
