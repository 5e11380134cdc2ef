package hivekeeper;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclStatus;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Tries on a file system what a run will do there, in a scratch directory that it removes again. Reports, decides nothing.
 *
 * Compiled at run time by Janino, so: no generics, lambdas or diamonds.
 */
public class CheckupBridge {
  // A user whom no directory names: for an ACL that is only tried.
  static final String SOMEBODY = "hivekeeper-somebody";

  final ObjectMapper json = new ObjectMapper();
  Configuration conf;

  public void configure(Configuration conf) {
    this.conf = conf;
  }

  public String login() throws Exception {
    UserGroupInformation user = UserGroupInformation.getCurrentUser();
    UserGroupInformation real = user.getRealUser() == null ? user : user.getRealUser();
    Map found = new LinkedHashMap();
    found.put("user", user.getUserName());
    found.put("proof", String.valueOf(user.getAuthenticationMethod()));
    found.put("secured", Boolean.valueOf(UserGroupInformation.isSecurityEnabled()));
    // In a YARN container there are tokens instead of a ticket.
    found.put("proved", Boolean.valueOf(real.hasKerberosCredentials() || user.getTokens().size() > 0));
    return json.writeValueAsString(found);
  }

  public String fileSystem() throws Exception {
    FileSystem fs = FileSystem.get(conf);
    Path root = new Path("/");
    Map found = new LinkedHashMap();
    found.put("uri", fs.getUri().toString());
    found.put("is_hdfs", Boolean.valueOf(fs instanceof DistributedFileSystem));
    fs.getFileStatus(root);
    found.put("remaining_bytes", Long.valueOf(fs.getStatus().getRemaining()));
    if (fs instanceof DistributedFileSystem) {
      DistributedFileSystem hdfs = (DistributedFileSystem) fs;
      String provider = hdfs.getServerDefaults(root).getKeyProviderUri();
      found.put("safe_mode", Boolean.valueOf(hdfs.isInSafeMode()));
      found.put("key_provider", provider == null ? "" : provider);
      found.put("acls", whyNotAcls(fs, root));
      found.put("xattrs", whyNotXattrs(fs, root));
    }
    return json.writeValueAsString(found);
  }

  /** The server's own settings are not to be had; but it refuses even a question where it is switched off. */
  String whyNotAcls(FileSystem fs, Path path) {
    try {
      fs.getAclStatus(path);
      return "";
    } catch (Exception refused) {
      return firstLine(refused);
    }
  }

  String whyNotXattrs(FileSystem fs, Path path) {
    try {
      fs.getXAttrs(path);
      return "";
    } catch (Exception refused) {
      return firstLine(refused);
    }
  }

  /** Makes a directory and removes it; its time tells the server's clock. `directory` null: the user's home. */
  public String staging(String directory, String name) throws Exception {
    Path parent = directory == null ? FileSystem.get(conf).getHomeDirectory() : new Path(directory);
    FileSystem fs = parent.getFileSystem(conf);
    parent = fs.makeQualified(parent);
    boolean made = !fs.exists(parent);
    Path scratch = new Path(parent, name);
    fs.deleteOnExit(scratch);
    try {
      long before = System.currentTimeMillis();
      if (!fs.mkdirs(scratch)) throw new java.io.IOException("cannot make " + scratch);
      long after = System.currentTimeMillis();
      Map found = new LinkedHashMap();
      found.put("path", parent.toString());
      found.put("difference_ms", Long.valueOf(fs.getFileStatus(scratch).getModificationTime() - (before + after) / 2));
      return json.writeValueAsString(found);
    } finally {
      removeQuietly(fs, scratch, true);
      fs.cancelDeleteOnExit(scratch);
      if (made) removeQuietly(fs, parent, false);
    }
  }

  /** Those of the paths that are not there. */
  public String missing(String paths) throws Exception {
    List found = new ArrayList();
    for (Iterator each = read(paths).iterator(); each.hasNext();) {
      String text = (String) each.next();
      Path path = new Path(text);
      if (!path.getFileSystem(conf).exists(path)) found.add(text);
    }
    return json.writeValueAsString(found);
  }

  /** Everything that a run does below a table's root, tried on directories of our own. */
  public String tryRights(String root, String control, String name) throws Exception {
    Path table = new Path(root);
    Path top = new Path(control);
    FileSystem fs = table.getFileSystem(conf);
    FileStatus wanted = fs.getFileStatus(table);
    Trials trials = new Trials(fs, conf, wanted, new Path(top, name));
    boolean made = !fs.exists(top);
    // For a JVM that is told to end half-way; one that is killed leaves an empty directory to the next check-up.
    fs.deleteOnExit(trials.scratch);
    String left = "";
    try {
      if (!made) removeOld(fs, top, name);
      trials.runAll();
    } finally {
      left = removeQuietly(fs, trials.scratch, true);
      fs.cancelDeleteOnExit(trials.scratch);
      // Not recursive: what a run has put there meanwhile stays.
      if (made) removeQuietly(fs, top, false);
    }
    Map found = new LinkedHashMap();
    found.put("owner", wanted.getOwner());
    found.put("group", wanted.getGroup());
    found.put("trials", trials.results);
    found.put("left", left);
    return json.writeValueAsString(found);
  }

  /** Scratch directories of check-ups that were killed more than an hour ago; `name` ends with the id of the run. */
  void removeOld(FileSystem fs, Path top, String name) throws Exception {
    String prefix = name.substring(0, name.indexOf('-') + 1);
    FileStatus[] found = fs.listStatus(top);
    for (int i = 0; i < found.length; i++) {
      boolean ours = found[i].isDirectory() && found[i].getPath().getName().startsWith(prefix);
      if (ours && found[i].getModificationTime() < System.currentTimeMillis() - 3600000L) removeQuietly(fs, found[i].getPath(), true);
    }
  }

  /** What a table takes, and what space, quotas and roots allow; null where this user may not know. */
  public String room(String root) throws Exception {
    Path table = new Path(root);
    FileSystem fs = table.getFileSystem(conf);
    Map found = new LinkedHashMap();
    found.put("remaining_bytes", Long.valueOf(fs.getStatus(table).getRemaining()));
    try {
      ContentSummary content = fs.getContentSummary(table);
      found.put("size_bytes", Long.valueOf(content.getLength()));
      found.put("disk_bytes", Long.valueOf(content.getSpaceConsumed()));
      found.put("objects", Long.valueOf(content.getFileCount() + content.getDirectoryCount()));
    } catch (AccessControlException notOurs) {
      found.put("size_bytes", null);
    }
    if (fs instanceof DistributedFileSystem) {
      addQuota(fs, table, found);
    }
    return json.writeValueAsString(found);
  }

  /** The quota of the root, else that of the directory above; to ask higher up would make the NameNode walk the warehouse. */
  void addQuota(FileSystem fs, Path table, Map found) throws Exception {
    Path at = table;
    for (int level = 0; level < 2 && at != null; level++) {
      try {
        QuotaUsage usage = fs.getQuotaUsage(at);
        boolean space = usage.getSpaceQuota() >= 0;
        boolean names = usage.getQuota() >= 0;
        if ((space || names) && !found.containsKey("quota_at")) {
          found.put("quota_at", at.toUri().getPath());
          if (space) found.put("disk_left", Long.valueOf(usage.getSpaceQuota() - usage.getSpaceConsumed()));
          if (names) found.put("names_left", Long.valueOf(usage.getQuota() - usage.getFileAndDirectoryCount()));
        }
      } catch (AccessControlException notOurs) {
        // Met, if at all, by the write itself.
      }
      at = at.getParent();
    }
  }

  /** "" where it is gone, else what is left. */
  static String removeQuietly(FileSystem fs, Path path, boolean recursive) {
    try {
      fs.delete(path, recursive);
      return "";
    } catch (Exception notRemoved) {
      return path + " (" + firstLine(notRemoved) + ")";
    }
  }

  static String firstLine(Throwable error) {
    String message = error.getMessage();
    return message == null || message.trim().isEmpty() ? error.getClass().getSimpleName() : message.trim().split("\n")[0];
  }

  List read(String texts) throws Exception {
    return Arrays.asList((Object[]) json.readValue(texts, String[].class));
  }

  /** The trials of one table. Each result: "" done, a reason, or null where the file system does not know such a thing. */
  static class Trials {
    final FileSystem fs;
    final Configuration conf;
    final FileStatus wanted;
    final Path scratch;
    final Map results = new LinkedHashMap();

    Trials(FileSystem fs, Configuration conf, FileStatus wanted, Path scratch) {
      this.fs = fs;
      this.conf = conf;
      this.wanted = wanted;
      this.scratch = scratch;
    }

    void runAll() {
      String[] names = {"control", "write", "rename", "owner", "group", "set-acl", "set-xattr", "policy"};
      for (int i = 0; i < names.length; i++) {
        boolean possible = i == 0 || "".equals(results.get("control"));
        results.put(names[i], possible ? run(names[i]) : null);
      }
    }

    String run(String name) {
      try {
        Path own = new Path(scratch, name);
        if (!fs.mkdirs(own)) return "cannot make " + own;
        if (name.equals("write")) write(own);
        if (name.equals("rename")) FileContext.getFileContext(fs.getUri(), conf).rename(own, new Path(scratch, "renamed"), new Options.Rename[0]);
        if (name.equals("owner")) fs.setOwner(own, wanted.getOwner(), null);
        if (name.equals("group")) fs.setOwner(own, null, wanted.getGroup());
        if (name.equals("set-acl")) setAcl(own);
        if (name.equals("set-xattr")) fs.setXAttr(own, "user.hivekeeper.checkup", new byte[] {1});
        if (name.equals("policy") && fs instanceof DistributedFileSystem) {
          fs.setStoragePolicy(own, fs.getStoragePolicy(wanted.getPath()).getName());
        }
        return "";
      } catch (UnsupportedOperationException unknown) {
        return null;
      } catch (Exception refused) {
        return CheckupBridge.firstLine(refused);
      }
    }

    void write(Path own) throws Exception {
      FSDataOutputStream out = fs.create(new Path(own, "file"), false);
      out.write(1);
      out.hflush();
      out.close();
    }

    void setAcl(Path own) throws Exception {
      AclStatus of = fs.getAclStatus(wanted.getPath());
      List entries = new ArrayList(of.getEntries());
      if (entries.isEmpty()) entries = AclEntry.parseAclSpec("user:" + CheckupBridge.SOMEBODY + ":r-x", true);
      fs.modifyAclEntries(own, entries);
    }
  }
}
