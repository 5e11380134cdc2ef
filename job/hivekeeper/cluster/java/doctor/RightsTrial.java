package hivekeeper.doctor;

import hivekeeper.Directories;
import hivekeeper.Json;
import hivekeeper.Messages;
import hivekeeper.Rights;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.GlobFilter;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.util.ShutdownHookManager;

/** Tries what a run will do below a table's root, in a scratch directory that it removes again. Decides nothing. */
public class RightsTrial {
  // A user name for a trial ACL; the user need not exist.
  private static final String SOMEBODY = "hivekeeper-somebody";
  private static final String[] TRIALS = {"control", "write", "rename", "owner", "group", "set-acl", "set-xattr", "policy"};
  private static final String FILE = "file";
  private static final String RENAMED = "renamed";
  private static final long OLD_MS = 3600000L;
  // A table may have a million partitions. HDFS lists by name, and few names come before those of scratch directories.
  private static final int MOST_LOOKED_AT = 10000;
  // Each takes a dozen calls. A doctor that is killed leaves one.
  private static final int MOST_REMOVED = 100;

  // What a scratch directory has: directories.
  private static final Set<String> MADE = new HashSet<String>(Arrays.asList(TRIALS));

  static {
    MADE.add(RENAMED);
  }

  private final Configuration conf;
  // A database's unpartitioned tables lie beside each other.
  private final Set<Path> tidied = new HashSet<Path>();

  public RightsTrial(Configuration conf) {
    this.conf = conf;
  }

  /**
   * {owner, group, trials, left}. Each trial: "" if allowed, a reason, or null if the file system does not support it.
   *
   * `name`: of the scratch directory; `old`: a glob that names those of all doctors.
   */
  public String run(String root, String control, String name, String old) throws IOException {
    Path table = new Path(root);
    FileSystem fs = table.getFileSystem(conf);
    FileStatus wanted = fs.getFileStatus(table);
    Scratch scratch = new Scratch(fs, new Path(place(control, name)));
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("owner", wanted.getOwner());
    found.put("group", wanted.getGroup());
    removeOld(fs, new Path(control), old);
    removeOld(fs, new Path(control).getParent(), old);
    Runnable removal = removalAtExit(scratch);
    // For a JVM that is terminated half-way; one that is killed leaves a directory that no run looks at.
    ShutdownHookManager.get().addShutdownHook(removal, FileSystem.SHUTDOWN_HOOK_PRIORITY + 1);
    try {
      found.put("trials", tryAll(fs, wanted, scratch));
    } finally {
      found.put("left", scratch.remove());
      ShutdownHookManager.get().removeShutdownHook(removal);
    }
    return Json.write(found);
  }

  /**
   * The scratch directory: inside the control directory if there is one, else beside its place. A control directory that a
   * doctor of another user has left would end every later run.
   */
  public String place(String control, String name) throws IOException {
    Path top = new Path(control);
    return new Path(top.getFileSystem(conf).exists(top) ? top : top.getParent(), name).toString();
  }

  /** Makes a directory for this user alone, not where the directory around it is gone: that may be a table's, whose loader has moved it. */
  public void make(String directory) throws IOException {
    new Directories(conf).makeInside(directory);
  }

  /**
   * The scratch directory, from when it is made by its id: whoever may write to the directory around it could put another table's in its
   * place, to have that given to the owner of this one, or its ACL.
   */
  private class Scratch {
    private final FileSystem fs;
    private final Path named;
    private Path path;

    Scratch(FileSystem fs, Path named) {
      this.fs = fs;
      this.named = named;
    }

    Path make() throws IOException {
      if (path != null) return path;
      RightsTrial.this.make(named.toString());
      Path made = new Path(Rights.exactly(conf, named.toString()));
      if (!Rights.isClosedDirectoryOfOurs(conf, made.toString()) || fs.listStatusIterator(made).hasNext()) {
        throw new IOException(named + " is somebody else's, or has something in it");
      }
      path = made;
      return path;
    }

    String remove() {
      return path == null ? "" : removeScratch(fs, path, true).replace(path.toString(), named.toString());
    }
  }

  private Runnable removalAtExit(final Scratch scratch) {
    return new Runnable() {
      public void run() {
        scratch.remove();
      }
    };
  }

  /**
   * Removes scratch directories of doctors that were killed more than an hour ago, where this user may. Whoever may write there can make
   * thousands with such names; of those that the listing shows to be somebody else's, none is asked for again.
   */
  private void removeOld(FileSystem fs, Path beside, String old) {
    if (!tidied.add(beside)) return;
    try {
      GlobFilter filter = new GlobFilter(old);
      RemoteIterator<?> statuses = fs.listStatusIterator(beside);
      int removed = 0;
      for (int looked = 0; looked < MOST_LOOKED_AT && removed < MOST_REMOVED && statuses.hasNext(); looked++) {
        FileStatus found = (FileStatus) statuses.next();
        boolean isOld = found.getModificationTime() < System.currentTimeMillis() - OLD_MS;
        if (!filter.accept(found.getPath()) || !isOld || !Rights.mayBeClosedDirectoryOfOurs(fs, found)) continue;
        removeScratch(fs, found.getPath(), false);
        removed++;
      }
    } catch (IOException absentOrDenied) {
      // They do no harm, and the trial tells what is denied.
      return;
    }
  }

  /**
   * "" if it is gone, else what is left. Whoever may write to the directory around it can give another directory its name, which keeps its
   * time, also between two calls. So all is done in the one that was looked at, by its id, where nobody else may write, and nothing goes if
   * anything else is in there than a trial makes.
   */
  private String removeScratch(FileSystem fs, Path scratch, boolean isOwn) {
    try {
      if (!fs.exists(scratch)) return "";
      Path exact = new Path(Rights.exactly(conf, scratch.toString()));
      if (!Rights.isClosedDirectoryOfOurs(conf, exact.toString())) return scratch + " (it is not a directory of this user alone)";
      List<Path> made = new ArrayList<Path>();
      for (RemoteIterator<?> found = fs.listStatusIterator(exact); found.hasNext();) {
        FileStatus one = (FileStatus) found.next();
        String name = one.getPath().getName();
        if (!one.isDirectory() || !MADE.contains(name)) return scratch + " (" + name + " is in it)";
        made.add(new Path(exact, name));
      }
      Path file = new Path(new Path(exact, "write"), FILE);
      if (made.contains(file.getParent()) && isOfTrial(fs, file, isOwn)) fs.delete(file, false);
      for (Path one : made) fs.delete((Path) one, false);
      fs.delete(exact, false);
      return "";
    } catch (Exception notRemoved) {
      return scratch + " (" + Messages.firstLine(notRemoved) + ")";
    }
  }

  /** Whether it has no more than a trial writes. Of what others have left, a file that is being written may become longer. */
  private static boolean isOfTrial(FileSystem fs, Path file, boolean isOwn) throws IOException {
    try {
      if (!isOwn && fs instanceof DistributedFileSystem && !((DistributedFileSystem) fs).isFileClosed(file)) return false;
      FileStatus found = fs.getFileStatus(file);
      return found.isFile() && found.getLen() <= 1;
    } catch (FileNotFoundException absent) {
      return false;
    }
  }

  /** Removes the directory if it is empty: the one that is there now, by its id. */
  static void removeEmpty(Configuration conf, FileSystem fs, Path directory) {
    try {
      Path exact = new Path(Rights.exactly(conf, directory.toString()));
      if (fs.getFileStatus(exact).isDirectory()) fs.delete(exact, false);
    } catch (Exception notRemoved) {
      // It does no harm.
      return;
    }
  }

  private Map<String, String> tryAll(FileSystem fs, FileStatus wanted, Scratch scratch) {
    Map<String, String> results = new LinkedHashMap<String, String>();
    for (String name : TRIALS) {
      boolean possible = results.isEmpty() || "".equals(results.get(TRIALS[0]));
      results.put(name, possible ? tryOne(name, fs, wanted, scratch) : null);
    }
    return results;
  }

  private String tryOne(String name, FileSystem fs, FileStatus wanted, Scratch scratch) {
    try {
      Path own = new Path(scratch.make(), name);
      make(own.toString());
      act(name, fs, wanted, own);
      return "";
    } catch (UnsupportedOperationException unknown) {
      return null;
    } catch (Exception refused) {
      return Messages.firstLine(refused);
    }
  }

  private void act(String name, FileSystem fs, FileStatus wanted, Path own) throws Exception {
    switch (name) {
      case "write":
        write(fs, new Path(own, FILE));
        break;
      case "rename":
        FileContext.getFileContext(fs.getUri(), conf).rename(own, new Path(own.getParent(), RENAMED), new Options.Rename[0]);
        break;
      case "owner":
        fs.setOwner(own, wanted.getOwner(), null);
        break;
      case "group":
        fs.setOwner(own, null, wanted.getGroup());
        break;
      case "set-acl":
        List<AclEntry> entries = new ArrayList<AclEntry>(fs.getAclStatus(wanted.getPath()).getEntries());
        fs.modifyAclEntries(own, entries.isEmpty() ? AclEntry.parseAclSpec("user:" + SOMEBODY + ":r-x", true) : entries);
        break;
      case "set-xattr":
        fs.setXAttr(own, "user.hivekeeper.doctor", new byte[] {1});
        break;
      case "policy":
        if (fs instanceof DistributedFileSystem) fs.setStoragePolicy(own, fs.getStoragePolicy(wanted.getPath()).getName());
        break;
      default:
        // "control": the directory itself was the trial.
    }
  }

  private static void write(FileSystem fs, Path file) throws IOException {
    FSDataOutputStream out = fs.create(file, false);
    out.write(1);
    out.hflush();
    out.close();
  }
}
