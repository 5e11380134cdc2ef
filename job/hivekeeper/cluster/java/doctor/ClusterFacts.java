package hivekeeper.doctor;

import hivekeeper.Denials;
import hivekeeper.Json;
import hivekeeper.Messages;
import hivekeeper.Quotas;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.security.UserGroupInformation;

/** Facts for doctor about the login and the file system. Undoes every change it makes. */
public class ClusterFacts {
  private final Configuration conf;

  public ClusterFacts(Configuration conf) {
    this.conf = conf;
  }

  public String login() throws IOException {
    UserGroupInformation user = UserGroupInformation.getCurrentUser();
    UserGroupInformation real = user.getRealUser() == null ? user : user.getRealUser();
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("user", user.getUserName());
    found.put("proof", String.valueOf(user.getAuthenticationMethod()));
    found.put("secured", UserGroupInformation.isSecurityEnabled());
    // A YARN container has tokens instead of a ticket.
    found.put("proved", real.hasKerberosCredentials() || user.getTokens().size() > 0);
    return Json.write(found);
  }

  public String fileSystem() throws IOException {
    FileSystem fs = FileSystem.get(conf);
    Path root = new Path("/");
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("uri", fs.getUri().toString());
    found.put("is_hdfs", fs instanceof DistributedFileSystem);
    fs.getFileStatus(root);
    found.put("remaining_bytes", fs.getStatus().getRemaining());
    if (fs instanceof DistributedFileSystem) {
      DistributedFileSystem hdfs = (DistributedFileSystem) fs;
      String provider = hdfs.getServerDefaults(root).getKeyProviderUri();
      found.put("safe_mode", hdfs.isInSafeMode());
      found.put("key_provider", provider == null ? "" : provider);
      found.put("acls", whyNotAcls(fs, root));
      found.put("xattrs", whyNotXattrs(fs, root));
    }
    return Json.write(found);
  }

  /** Server settings cannot be read remotely, but a server with the feature off rejects even a read. */
  private static String whyNotAcls(FileSystem fs, Path path) {
    try {
      fs.getAclStatus(path);
      return "";
    } catch (Exception refused) {
      return Messages.firstLine(refused);
    }
  }

  private static String whyNotXattrs(FileSystem fs, Path path) {
    try {
      fs.getXAttrs(path);
      return "";
    } catch (Exception refused) {
      return Messages.firstLine(refused);
    }
  }

  /** Creates a directory and removes it; its time shows the server's clock. `directory` null: the user's home. */
  public String staging(String directory, String name) throws IOException {
    Path parent = directory == null ? FileSystem.get(conf).getHomeDirectory() : new Path(directory);
    FileSystem fs = parent.getFileSystem(conf);
    parent = fs.makeQualified(parent);
    boolean made = !fs.exists(parent);
    Path scratch = new Path(parent, name);
    try {
      long before = System.currentTimeMillis();
      if (!fs.mkdirs(scratch)) throw new IOException("cannot make " + scratch);
      long after = System.currentTimeMillis();
      Map<String, Object> found = new LinkedHashMap<String, Object>();
      found.put("path", parent.toString());
      found.put("difference_ms", fs.getFileStatus(scratch).getModificationTime() - (before + after) / 2);
      return Json.write(found);
    } finally {
      RightsTrial.removeEmpty(conf, fs, scratch);
      if (made) RightsTrial.removeEmpty(conf, fs, parent);
    }
  }

  /** The paths that do not exist. */
  public String missing(String paths) throws IOException {
    List<String> found = new ArrayList<String>();
    for (String text : Json.readStrings(paths)) {
      Path path = new Path(text);
      if (!path.getFileSystem(conf).exists(path)) found.add(text);
    }
    return Json.write(found);
  }

  /** The space a table takes, and what free space and quotas allow; null if this user may not read it, or HDFS not count it. */
  public String room(String root) throws IOException {
    Path table = new Path(root);
    FileSystem fs = table.getFileSystem(conf);
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("remaining_bytes", fs.getStatus(table).getRemaining());
    try {
      ContentSummary content = fs.getContentSummary(table);
      found.put("size_bytes", content.getLength());
      found.put("disk_bytes", content.getSpaceConsumed());
      found.put("objects", content.getFileCount() + content.getDirectoryCount());
    } catch (IOException failed) {
      if (!Quotas.isUncounted(failed)) throw failed;
      found.put("size_bytes", null);
    }
    if (fs instanceof DistributedFileSystem) addQuota(fs, table, found);
    return Json.write(found);
  }

  /** The quota of the root, else of the directory above; a query higher up would make the NameNode count the whole warehouse. */
  private static void addQuota(FileSystem fs, Path table, Map<String, Object> found) throws IOException {
    Path at = table;
    for (int level = 0; level < 2 && at != null; level++) {
      try {
        QuotaUsage usage = Quotas.of(fs, at);
        boolean space = usage.getSpaceQuota() >= 0;
        boolean names = usage.getQuota() >= 0;
        if ((space || names) && !found.containsKey("quota_at")) {
          found.put("quota_at", at.toUri().getPath());
          if (space) found.put("disk_left", usage.getSpaceQuota() - usage.getSpaceConsumed());
          if (names) found.put("names_left", usage.getQuota() - usage.getFileAndDirectoryCount());
        }
      } catch (IOException failed) {
        // If there is one that this user may not read, the write itself will hit it.
        if (!Quotas.isUncounted(failed)) throw failed;
      }
      at = at.getParent();
    }
  }
}
