package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
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
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.security.AccessControlException;

/** Reads owner, mode, ACL, extended attributes and policies of directories, and gives them to others. */
public class Attributes {
  private static final String REPLICATED = "replication";
  /** Characters of the extended attributes of one directory. HDFS allows half a megabyte of them, and thousands of directories are read at once. */
  private static final int MOST_XATTRS = 4096;
  /** Characters of one ACL. HDFS bounds how many entries it has (AclTransformation.MAX_ENTRIES), not how long the names in them are. */
  private static final int MOST_ACL = 8192;

  private final Configuration conf;

  public Attributes(Configuration conf) {
    this.conf = conf;
  }

  // ---- reading

  /**
   * `asked`: {directory: the same, or the path that is its id}. Gives {directory: attributes}; a missing one is left out. `byId`: whether the
   * server finds directories by their ids: then its rights are those of one directory, though another one came to the path meanwhile.
   */
  public String read(String asked, final boolean byId) throws Exception {
    final KnownPolicies known = new KnownPolicies();
    final Map<String, Object> places = Json.readMap(asked);
    return Json.write(WorkerPool.mapFound(new ArrayList<String>(places.keySet()), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        Place place = Place.of(conf, (String) places.get(directory));
        FileEntry own = place.real == null ? null : FileEntry.at(place);
        // The parent of a path that is an id is not the directory's.
        Path named = place.isHdfs() && place.real.toUri().getPath().startsWith(Place.BY_ID) ? new Path((String) directory) : place.real;
        if (own == null) return null;
        try {
          return readOne(byId ? place.byId(own.fileId) : place, own, named, known);
        } catch (FileNotFoundException gone) {
          // Removed, or renamed, while it was asked for: its policies are those of its path. Or only a file in it is gone.
          if (FileEntry.at(place) != null && FileEntry.at(place.beside(named)) != null) throw gone;
          return null;
        }
      }
    }));
  }

  private DirectoryAttributes readOne(Place place, FileEntry own, Path named, KnownPolicies known) throws IOException {
    DirectoryAttributes found = new DirectoryAttributes();
    found.directoryId = own.fileId;
    found.owner = own.owner;
    found.group = own.group;
    found.mode = own.mode;
    if (place.isHdfs() && own.status.hasAcl()) found.acl = aclAt(place.fs, place.real);
    readDataFile(place, found);
    found.xattrs = xattrsOf(place.fs, place.real);
    found.hasMoreXattrs = sizeOf(found.xattrs) > MOST_XATTRS;
    if (found.hasMoreXattrs) found.xattrs = Collections.emptyMap();
    if (place.isHdfs()) readPolicies(place.hdfs(), named, own, found, known);
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
    found.fileAcl = aclOf(place.fs, sample);
  }

  /** `asked` as for `read`. Gives {directory: the rights that occur among its data files, with the files' ids}, up to one more than `most`. */
  public String fileRights(String asked, final int most) throws Exception {
    final Map<String, Object> places = Json.readMap(asked);
    return Json.write(WorkerPool.mapFound(new ArrayList<String>(places.keySet()), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        Place place = Place.of(conf, (String) places.get(directory));
        if (place.real == null || FileEntry.at(place) == null) return null;
        try {
          return rightsIn(place, most);
        } catch (FileNotFoundException gone) {
          // Dropped while its files were asked for: a thousand of them take seconds.
          return null;
        }
      }
    }));
  }

  private static List<Object> rightsIn(Place place, int most) throws IOException {
    Map<List<Object>, Rights> found = new LinkedHashMap<List<Object>, Rights>();
    if (place.isLocal()) {
      for (FileEntry file : LocalFiles.entries(place)) {
        if (isData(file) && found.size() <= most) note(file, Collections.<String>emptyList(), found);
      }
      return new ArrayList<Object>(found.values());
    }
    for (RemoteIterator<?> statuses = place.fs.listStatusIterator(place.real); statuses.hasNext() && found.size() <= most;) {
      FileStatus status = (FileStatus) statuses.next();
      FileEntry file = FileEntry.of(status);
      if (!isData(file)) continue;
      try {
        note(file, aclOfListed(place, file, status), found);
      } catch (FileNotFoundException gone) {
        // Removed since the listing: then the unit is not swapped.
        continue;
      }
    }
    return new ArrayList<Object>(found.values());
  }

  private static boolean isData(FileEntry file) {
    return !file.isDir && file.length > 0 && !file.name.startsWith(".") && !file.name.startsWith("_");
  }

  /** Rights, and the ids of the files that have them. */
  public static class Rights {
    public String owner;
    public String group;
    public int mode;
    public List<String> acl;
    public List<Long> ids = new ArrayList<Long>();
  }

  private static void note(FileEntry file, List<String> acl, Map<List<Object>, Rights> found) {
    List<Object> key = Arrays.<Object>asList(file.owner, file.group, file.mode, acl);
    Rights rights = (Rights) found.get(key);
    if (rights == null) {
      rights = new Rights();
      rights.owner = file.owner;
      rights.group = file.group;
      rights.mode = file.mode;
      rights.acl = acl;
      found.put(key, rights);
    }
    rights.ids.add(file.fileId);
  }

  /** Where the directory is known by its id, the file is, too: names in it can be exchanged as well. */
  private static List<String> aclOfListed(Place place, FileEntry file, FileStatus status) throws IOException {
    if (!status.hasAcl() || !place.isHdfs()) return Collections.emptyList();
    return place.real.toUri().getPath().startsWith(Place.BY_ID) ? aclAt(place.fs, new Path(place.real.getParent(), String.valueOf(file.fileId))) : aclAt(place.fs, status.getPath());
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
  static List<String> aclOf(FileSystem fs, FileStatus status) throws IOException {
    return fs instanceof DistributedFileSystem && status.hasAcl() ? aclAt(fs, status.getPath()) : Collections.<String>emptyList();
  }

  /**
   * Raises AccessControlException for one that is too long to be kept for each of many, and where a name says another entry in what is read
   * of it later (AclEntry.parseAclSpec), as HDFS takes any name: nobody can say then who may do what.
   */
  private static List<String> aclAt(FileSystem fs, Path path) throws IOException {
    AclStatus found = fs.getAclStatus(path);
    List<String> printed = new ArrayList<String>();
    int left = MOST_ACL;
    for (AclEntry entry : AclUtil.getAclFromPermAndEntries(found.getPermission(), found.getEntries())) {
      if (entry.getName() != null && (entry.getName().contains(",") || entry.getName().contains(":"))) {
        throw new AccessControlException(path + ": its ACL has an entry that names no user or group");
      }
      printed.add(entry.toString());
      left -= entry.toString().length();
    }
    if (left < 0) throw new AccessControlException(path + ": its ACL has more than " + MOST_ACL + " characters, and is not read");
    Collections.sort(printed);
    return printed;
  }

  private static long sizeOf(Map<String, String> xattrs) {
    long size = 0;
    for (Map.Entry<String, String> entry : xattrs.entrySet()) size += ((String) entry.getKey()).length() + ((String) entry.getValue()).length();
    return size;
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

    Policies(String storage, String coding) {
      this.storage = storage;
      this.coding = coding;
    }
  }

  /** Policies from what a status tells, by number: one call for each storage policy that occurs, and two for each parent of units. */
  private static class KnownPolicies {
    private final Map<Byte, String> names = new HashMap<Byte, String>();
    private final Map<Path, Policies> parents = new HashMap<Path, Policies>();

    /** A file system above others (ViewDistributedFileSystem) wraps the status. */
    synchronized Policies of(DistributedFileSystem hdfs, Path path, FileStatus status) throws IOException {
      if (!(status instanceof HdfsFileStatus)) return ask(hdfs, path);
      HdfsFileStatus told = (HdfsFileStatus) status;
      Byte number = Byte.valueOf(told.getStoragePolicy());
      if (!names.containsKey(number)) names.put(number, hdfs.getStoragePolicy(path).getName());
      ErasureCodingPolicy coding = told.getErasureCodingPolicy();
      return new Policies((String) names.get(number), coding == null || coding.isReplicationPolicy() ? null : coding.getName());
    }

    synchronized Policies above(DistributedFileSystem hdfs, Path path) throws IOException {
      Path parent = path.isRoot() ? path : path.getParent();
      if (!parents.containsKey(parent)) parents.put(parent, ask(hdfs, parent));
      return (Policies) parents.get(parent);
    }

    /** Fails on a NameNode before Hadoop 3, which tells only superusers the number of a policy. */
    private static Policies ask(DistributedFileSystem hdfs, Path path) throws IOException {
      ErasureCodingPolicy coding = hdfs.getErasureCodingPolicy(path);
      return new Policies(hdfs.getStoragePolicy(path).getName(), coding == null ? null : coding.getName());
    }
  }

  private static void readPolicies(DistributedFileSystem hdfs, Path named, FileEntry entry, DirectoryAttributes found, KnownPolicies known)
      throws IOException {
    Policies above = known.above(hdfs, named);
    Policies own = known.of(hdfs, named, entry.status);
    found.storagePolicy = own.storage;
    found.ecPolicy = own.coding;
    found.ownStoragePolicy = !own.storage.equals(above.storage);
    found.ownEcPolicy = !String.valueOf(own.coding).equals(String.valueOf(above.coding));
  }

  // ---- giving

  /** {directory: attributes}: sets them on the directory and the files in it. Does not change what is already set. */
  public void give(String wanted) throws Exception {
    final Map<String, Object> all = Json.readMapOf(DirectoryAttributes.class, wanted);
    final KnownPolicies known = new KnownPolicies();
    WorkerPool.map(new ArrayList<String>(all.keySet()), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        giveToDirectory(Place.of(conf, (String) directory), (DirectoryAttributes) all.get(directory), known);
        return null;
      }
    });
  }

  private void giveToDirectory(Place place, DirectoryAttributes wanted, KnownPolicies known) throws IOException {
    place.requireReal();
    if (place.isLocal()) {
      LocalFiles.give(place, wanted);
      return;
    }
    FileStatus own = place.fs.getFileStatus(place.real);
    if (place.isHdfs()) givePolicies(place.hdfs(), place.real, known.of(place.hdfs(), place.real, own), wanted);
    giveToOne(place.fs, own, wanted.owner, wanted.group, wanted.mode, wanted.acl);
    for (FileStatus child : place.fs.listStatus(place.real)) {
      if (!child.isDirectory()) giveToOne(place.fs, child, wanted.ownerOfFiles(), wanted.groupOfFiles(), wanted.fileMode, wanted.fileAcl);
    }
  }

  /** Sets the owner last: after giving a file away the former owner may no longer change it. */
  private void giveToOne(FileSystem fs, FileStatus status, String toOwner, String toGroup, int mode, List<String> acl) throws IOException {
    Path path = status.getPath();
    FsPermission permission = new FsPermission((short) mode);
    String act = "set the ACL";
    try {
      if (!aclOf(fs, status).equals(acl)) {
        if (acl.isEmpty()) fs.removeAcl(path);
        else fs.setAcl(path, AclEntry.parseAclSpec(String.join(",", acl), true));
        status = fs.getFileStatus(path);
      }
      act = "set the mode " + permission;
      if (status.getPermission().toShort() != permission.toShort()) fs.setPermission(path, permission);
      act = "give it to " + toOwner + ":" + toGroup;
      String owner = unlessEqual(toOwner, status.getOwner());
      String group = unlessEqual(toGroup, status.getGroup());
      if (owner != null || group != null) fs.setOwner(path, owner, group);
    } catch (IOException failed) {
      throw Denials.explained(failed, path, act);
    }
  }

  private void givePolicies(DistributedFileSystem hdfs, Path path, Policies present, DirectoryAttributes wanted) throws IOException {
    String act = "set the storage policy";
    try {
      // A policy that is only inherited here would be lost when the directory is renamed away from its parent.
      String storage = wanted.storagePolicy;
      if (storage != null && (wanted.ownStoragePolicy || !storage.equals(present.storage))) {
        hdfs.setStoragePolicy(path, storage);
      }
      act = "set the erasure coding policy";
      if (wanted.ownEcPolicy || !String.valueOf(wanted.ecPolicy).equals(String.valueOf(present.coding))) {
        // HDFS's name for a directory that does not inherit its parent's coding.
        hdfs.setErasureCodingPolicy(path, wanted.ecPolicy == null ? REPLICATED : wanted.ecPolicy);
      }
      act = "set the extended attributes";
      giveXattrs(hdfs, path, wanted.xattrs);
    } catch (IOException failed) {
      throw Denials.explained(failed, path, act);
    }
  }

  private static void giveXattrs(DistributedFileSystem hdfs, Path path, Map<String, String> wanted) throws IOException {
    if (wanted.isEmpty()) return;
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
