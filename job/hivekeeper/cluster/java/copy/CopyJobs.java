package hivekeeper.copy;

import hivekeeper.Json;
import hivekeeper.Messages;
import hivekeeper.Renames;
import hivekeeper.WorkLimit;
import hivekeeper.WorkerPool;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;

/** The driver's side of a copy: runs the tasks on executors, then puts in place what they answered. The classes must be in a jar there. */
public class CopyJobs {
  /** Of all calls of a command. A core reads thirty to a hundred million in a second. */
  private static final long MORE_VALUES = 1L << 35;
  /** For one task of each call in any case, so that a table does not take all from the others. */
  private static final long MORE_FOR_ONE = 1L << 26;
  /** What asking a task once more costs. */
  private static final long OF_ASKING = 1L << 22;
  private static final Pattern LOCAL = Pattern.compile("local\\[(\\d+).*");

  private final JavaSparkContext context;
  private final Configuration conf;
  private long windowBytes = 64L << 20;
  private long moreValues = MORE_VALUES;

  public CopyJobs(JavaSparkContext context) {
    this.context = context;
    conf = context.hadoopConfiguration();
  }

  /** Stream files that are longer than this, and hold at most as much of other files in a task. */
  public void setWindow(long bytes) {
    windowBytes = bytes;
  }

  /** How many values may still be read that no bytes stand for. */
  public void setMoreValues(long values) {
    moreValues = values;
  }

  /** Asks each task, in JSON as `CopyTask` takes it, and gives the answers in the same order. */
  public String digest(String tasks) throws Exception {
    return Json.write(run(Json.readList(tasks)));
  }

  /**
   * The same for copies; each task also has its target. The outputs are written into `attempts`, which is made, and then renamed to their
   * targets, never over a file. At the end `attempts` is deleted, so that what failed attempts left is gone and those that still run can
   * write nothing more. It goes with all that is in it, so nothing is written or deleted if there is something in it already.
   */
  public String copy(String attempts, String tasks) throws Exception {
    Path top = new Path(attempts);
    FileSystem fs = top.getFileSystem(conf);
    fs.mkdirs(top, new FsPermission((short) 0700));
    if (fs.listStatusIterator(top).hasNext()) throw new IOException(attempts + " has something in it already");
    List<Object> asked = Json.readList(tasks);
    for (int i = 0; i < asked.size(); i++) ((Map) asked.get(i)).put("attempt", new Path(top, String.valueOf(i)).toString());
    try {
      return Json.write(commit(asked, run(asked)));
    } finally {
      fs.delete(top, true);
    }
  }

  private List<Object> run(List<Object> tasks) throws Exception {
    Broadcast<?> shared = context.broadcast(new SerializableConfiguration(conf));
    CopyTask task = new CopyTask(shared, cores(context.getConf()), windowBytes);
    // With the share of all that run at a time: another file that was read at the same time may have taken the memory.
    CopyTask alone = new CopyTask(shared, 1, windowBytes);
    List<Object> answers = ask(task, tasks, tasks.size());
    askAgain(alone, tasks, answers, which(answers, "starved"), 1);
    readMore(task, alone, tasks, answers);
    return answers;
  }

  private static List<Integer> which(List<Object> answers, String say) {
    List<Integer> places = new ArrayList<Integer>();
    for (int i = 0; i < answers.size(); i++) {
      if (Boolean.TRUE.equals(((Map) answers.get(i)).get(say))) places.add(i);
    }
    return places;
  }

  private void askAgain(CopyTask task, List<Object> tasks, List<Object> answers, List<Integer> places, int partitions) throws Exception {
    List<Object> some = new ArrayList<Object>();
    for (Integer place : places) some.add(tasks.get(((Integer) place).intValue()));
    List<Object> again = ask(task, some, partitions);
    for (int i = 0; i < again.size(); i++) answers.set(((Integer) places.get(i)).intValue(), again.get(i));
  }

  /**
   * The tasks that have more values than they may, once more with others besides, as long as there is room for these: footers tell neither
   * how long values are nor what ORC counts in structs, and for a digest they are not read. What a task does not read is there for the next.
   */
  private void readMore(CopyTask task, CopyTask alone, List<Object> tasks, List<Object> answers) throws Exception {
    List<Integer> places = which(answers, "exceeded");
    int done = 0;
    while (done < places.size()) {
      long more = moreValues >= WorkLimit.FREE ? WorkLimit.FREE : MORE_FOR_ONE;
      long room = Math.max(done == 0 ? 1L : 0L, moreValues / more);
      if (room == 0) break;
      List<Integer> some = places.subList(done, (int) Math.min(places.size(), done + room));
      for (Integer place : some) ((Map) tasks.get(((Integer) place).intValue())).put("more", more);
      askAgain(task, tasks, answers, some, some.size());
      List<Integer> starved = which(answers, "starved");
      starved.retainAll(some);
      askAgain(alone, tasks, answers, starved, 1);
      for (Integer place : some) {
        long unread = ((Number) ((Map) answers.get(((Integer) place).intValue())).get("unread")).longValue();
        moreValues -= Math.max(OF_ASKING, more - unread);
      }
      moreValues = Math.max(0L, moreValues);
      done += some.size();
    }
    for (Integer place : places.subList(done, places.size())) {
      Map<String, Object> answer = (Map) answers.get(((Integer) place).intValue());
      answer.put("failed", answer.get("failed") + ", and this command has read too many such files already");
    }
  }

  private List<Object> ask(CopyTask task, List<Object> tasks, int partitions) throws Exception {
    List<Object> answers = new ArrayList<Object>();
    if (tasks.isEmpty()) return answers;
    List<Object> texts = new ArrayList<Object>();
    for (Object one : tasks) texts.add(Json.write(one));
    for (Object answer : context.parallelize(texts, partitions).map(task).collect()) answers.add(Json.readMap((String) answer));
    return answers;
  }

  /** How many tasks run in one executor at a time; 0 for as many as its machine has processors. */
  private static int cores(SparkConf settings) {
    String master = settings.get("spark.master", "");
    Matcher local = LOCAL.matcher(master);
    if (local.matches()) return Integer.parseInt(local.group(1));
    if (master.equals("local")) return 1;
    boolean oneByDefault = master.startsWith("yarn") || master.startsWith("k8s");
    return master.startsWith("local") ? 0 : settings.getInt("spark.executor.cores", oneByDefault ? 1 : 0);
  }

  private List<Object> commit(List<Object> tasks, List<Object> answers) throws Exception {
    List<Object> results = new ArrayList<Object>(answers);
    List<Integer> written = new ArrayList<Integer>();
    final Map<Integer, Rename> renames = new HashMap<Integer, Rename>();
    for (int i = 0; i < tasks.size(); i++) {
      Map<String, Object> answer = (Map) answers.get(i);
      if (!answer.containsKey("attempt")) continue;
      written.add(i);
      renames.put(i, new Rename((String) answer.get("attempt"), (String) ((Map) tasks.get(i)).get("target"), answer));
    }
    final Renames exact = new Renames(conf);
    List<Object> placed = WorkerPool.map(written, new WorkerPool.Task() {
      public Object of(Object number) {
        return ((Rename) renames.get(number)).answer(exact, conf);
      }
    });
    for (int i = 0; i < placed.size(); i++) results.set(((Integer) written.get(i)).intValue(), placed.get(i));
    return results;
  }

  private static class Rename {
    final String attempt;
    final String target;
    final Map<String, Object> answer;

    Rename(String attempt, String target, Map<String, Object> answer) {
      this.attempt = attempt;
      this.target = target;
      this.answer = answer;
    }

    /** The task's own answer, or why the output could not be put in its place. */
    Map<String, Object> answer(Renames renames, Configuration conf) {
      try {
        Path parent = new Path(target).getParent();
        parent.getFileSystem(conf).mkdirs(parent);
        renames.rename(attempt, target);
        return answer;
      } catch (IOException refused) {
        Map<String, Object> failed = new HashMap<String, Object>();
        failed.put("failed", Messages.shortReason(refused));
        failed.put("path", target);
        return failed;
      }
    }
  }
}
