package hivekeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.XAttrCodec;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclStatus;
import org.apache.hadoop.fs.permission.AclUtil;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.security.AccessControlException;

/** Reads owner, mode, ACL, extended attributes and policies of directories, and gives them to others. */
public class Attributes {
  private static final String REPLICATED = "replication";

  private final Configuration conf;

  public Attributes(Configuration conf) {
    this.conf = conf;
  }

  // ---- reading

  /** {directory as given: attributes}; a missing one is left out. */
  public String read(String directories) throws Exception {
    // Units share their parents, so each parent's policies are read once.
    final Map<Path, Policies> parents = Collections.synchronizedMap(new HashMap<Path, Policies>());
    return Json.write(WorkerPool.mapFound(Json.readStrings(directories), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        Place place = Place.of(conf, (String) directory);
        FileEntry own = place.real == null ? null : FileEntry.at(place);
        return own == null ? null : readOne(place, own, parents);
      }
    }));
  }

  private DirectoryAttributes readOne(Place place, FileEntry own, Map<Path, Policies> parents) throws IOException {
    DirectoryAttributes found = new DirectoryAttributes();
    found.owner = own.owner;
    found.group = own.group;
    found.mode = own.mode;
    found.acl = aclOf(place.fs, place.real);
    readDataFile(place, found);
    found.xattrs = xattrsOf(place.fs, place.real);
    if (place.isHdfs()) readPolicies(place, found, parents);
    return found;
  }

  /** File attributes from the first data file; without one, files get the directory's own read and write bits. */
  private void readDataFile(Place place, DirectoryAttributes found) throws IOException {
    FileStatus sample = firstDataFile(place);
    found.fileMode = found.mode & 0666;
    if (sample == null) return;
    if (place.isLocal()) {
      FileEntry file = LocalFiles.entry(place, LocalFiles.path(sample.getPath()));
      if (file != null) found.fileMode = file.mode;
    } else {
      found.fileMode = sample.getPermission().toShort();
    }
    found.fileAcl = aclOf(place.fs, sample.getPath());
  }

  private static FileStatus firstDataFile(Place place) throws IOException {
    for (RemoteIterator<?> statuses = place.fs.listStatusIterator(place.real); statuses.hasNext();) {
      FileStatus status = (FileStatus) statuses.next();
      String name = status.getPath().getName();
      if (!status.isDirectory() && !name.startsWith(".") && !name.startsWith("_")) return status;
    }
    return null;
  }

  /** All entries, including those that repeat the mode; [] without an extended ACL. */
  static List<String> aclOf(FileSystem fs, Path path) throws IOException {
    if (!(fs instanceof DistributedFileSystem) || !fs.getFileStatus(path).hasAcl()) return Collections.emptyList();
    AclStatus status = fs.getAclStatus(path);
    List<String> printed = new ArrayList<String>();
    for (AclEntry entry : AclUtil.getAclFromPermAndEntries(status.getPermission(), status.getEntries())) {
      printed.add(entry.toString());
    }
    Collections.sort(printed);
    return printed;
  }

  /** Attributes in the user namespace. */
  private static Map<String, String> xattrsOf(FileSystem fs, Path path) throws IOException {
    Map<String, String> printed = new TreeMap<String, String>();
    if (!(fs instanceof DistributedFileSystem)) return printed;
    try {
      for (Map.Entry<String, byte[]> entry : fs.getXAttrs(path).entrySet()) {
        String name = (String) entry.getKey();
        if (name.startsWith("user.")) printed.put(name, XAttrCodec.encodeValue((byte[]) entry.getValue(), XAttrCodec.BASE64));
      }
    } catch (IOException failed) {
      // With dfs.namenode.xattrs.enabled=false there are none.
      if (!String.valueOf(failed.getMessage()).contains("XAttrs has been disabled")) throw failed;
    }
    return printed;
  }

  /** Names of the storage policy and of the erasure coding policy (null: replication) in effect. */
  private static class Policies {
    final String storage;
    final String coding;

    Policies(DistributedFileSystem hdfs, Path path) throws IOException {
      storage = hdfs.getStoragePolicy(path).getName();
      coding = codingOf(hdfs, path);
    }
  }

  private static String codingOf(DistributedFileSystem hdfs, Path path) throws IOException {
    ErasureCodingPolicy coding = hdfs.getErasureCodingPolicy(path);
    return coding == null ? null : coding.getName();
  }

  private static void readPolicies(Place place, DirectoryAttributes found, Map<Path, Policies> parents) throws IOException {
    Path parent = place.real.isRoot() ? place.real : place.real.getParent();
    if (!parents.containsKey(parent)) parents.put(parent, new Policies(place.hdfs(), parent));
    Policies above = (Policies) parents.get(parent);
    Policies own = new Policies(place.hdfs(), place.real);
    found.storagePolicy = own.storage;
    found.ecPolicy = own.coding;
    found.ownStoragePolicy = !own.storage.equals(above.storage);
    found.ownEcPolicy = !String.valueOf(own.coding).equals(String.valueOf(above.coding));
  }

  // ---- giving

  /** {directory: attributes}: sets them on the directory and the files in it. Does not change what is already set. */
  public void give(String wanted) throws Exception {
    final Map<String, Object> all = Json.readMapOf(DirectoryAttributes.class, wanted);
    WorkerPool.map(new ArrayList<String>(all.keySet()), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        giveToDirectory(Place.of(conf, (String) directory), (DirectoryAttributes) all.get(directory));
        return null;
      }
    });
  }

  private void giveToDirectory(Place place, DirectoryAttributes wanted) throws IOException {
    place.requireReal();
    if (place.isLocal()) {
      LocalFiles.give(place, wanted);
      return;
    }
    if (place.isHdfs()) givePolicies(place.hdfs(), place.real, wanted);
    giveToOne(place.fs, place.fs.getFileStatus(place.real), wanted, wanted.mode, wanted.acl);
    for (FileStatus child : place.fs.listStatus(place.real)) {
      if (!child.isDirectory()) giveToOne(place.fs, child, wanted, wanted.fileMode, wanted.fileAcl);
    }
  }

  /** Sets the owner last: after giving a file away the former owner may no longer change it. */
  private void giveToOne(FileSystem fs, FileStatus status, DirectoryAttributes wanted, int mode, List<String> acl) throws IOException {
    Path path = status.getPath();
    FsPermission permission = new FsPermission((short) mode);
    String act = "set the ACL";
    try {
      if (!aclOf(fs, path).equals(acl)) {
        if (acl.isEmpty()) fs.removeAcl(path);
        else fs.setAcl(path, AclEntry.parseAclSpec(String.join(",", acl), true));
        status = fs.getFileStatus(path);
      }
      act = "set the mode " + permission;
      if (status.getPermission().toShort() != permission.toShort()) fs.setPermission(path, permission);
      act = "give it to " + wanted.owner + ":" + wanted.group;
      String owner = unlessEqual(wanted.owner, status.getOwner());
      String group = unlessEqual(wanted.group, status.getGroup());
      if (owner != null || group != null) fs.setOwner(path, owner, group);
    } catch (AccessControlException denied) {
      throw new AccessControlException(path + ": may not " + act + ": " + Messages.firstLine(denied));
    }
  }

  private void givePolicies(DistributedFileSystem hdfs, Path path, DirectoryAttributes wanted) throws IOException {
    String act = "set the storage policy";
    try {
      // A policy that is only inherited here would be lost when the directory is renamed away from its parent.
      String storage = wanted.storagePolicy;
      if (storage != null && (wanted.ownStoragePolicy || !storage.equals(hdfs.getStoragePolicy(path).getName()))) {
        hdfs.setStoragePolicy(path, storage);
      }
      act = "set the erasure coding policy";
      String present = codingOf(hdfs, path);
      if (wanted.ownEcPolicy || !String.valueOf(wanted.ecPolicy).equals(String.valueOf(present))) {
        // HDFS's name for a directory that does not inherit its parent's coding.
        hdfs.setErasureCodingPolicy(path, wanted.ecPolicy == null ? REPLICATED : wanted.ecPolicy);
      }
      act = "set the extended attributes";
      giveXattrs(hdfs, path, wanted.xattrs);
    } catch (AccessControlException denied) {
      throw new AccessControlException(path + ": may not " + act + ": " + Messages.firstLine(denied));
    }
  }

  private static void giveXattrs(DistributedFileSystem hdfs, Path path, Map<String, String> wanted) throws IOException {
    Map<String, String> present = xattrsOf(hdfs, path);
    for (Map.Entry<String, String> entry : wanted.entrySet()) {
      if (entry.getValue().equals(present.get(entry.getKey()))) continue;
      hdfs.setXAttr(path, (String) entry.getKey(), XAttrCodec.decodeValue((String) entry.getValue()));
    }
  }

  /** The wanted value; null if there is none, or it is already set. */
  private static String unlessEqual(String wanted, String present) {
    return wanted == null || wanted.equals(present) ? null : wanted;
  }
}
