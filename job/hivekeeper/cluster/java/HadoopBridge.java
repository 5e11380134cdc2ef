package hivekeeper;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.CopyOption;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.nio.file.attribute.UserPrincipalNotFoundException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.Trash;
import org.apache.hadoop.fs.XAttrCodec;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclStatus;
import org.apache.hadoop.fs.permission.AclUtil;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.viewfs.ViewFileSystem;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Does to Hadoop file systems what Python asks, for any number of paths in one call: JSON in, JSON out. Decides nothing.
 *
 * Janino compiles this at run time: Java 7 without generics, diamonds or enhanced for over collections, and no private
 * members, because it makes no access methods for anonymous classes.
 */
public class HadoopBridge {
  static final int THREADS = 16;
  static final long IDLE_SECONDS = 5L;
  static final byte[] LAST_BEFORE_UNDERSCORE = new byte[] {(byte) 0x5e, (byte) 0x7f};

  Configuration conf;
  final ObjectMapper json = new ObjectMapper();
  final Map contexts = new HashMap();
  final Map locks = new HashMap();
  final Set withoutQuota = Collections.synchronizedSet(new HashSet());
  int lastLock = 0;
  final ThreadPoolExecutor pool =
      new ThreadPoolExecutor(THREADS, THREADS, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue(), new ThreadFactory() {
        public Thread newThread(Runnable work) {
          Thread thread = new Thread(work, "hivekeeper-files");
          thread.setDaemon(true);
          return thread;
        }
      });

  /** A process that makes many bridges, one after the other, must not keep the threads of all. */
  public void configure(Configuration conf) {
    this.conf = conf;
    pool.allowCoreThreadTimeOut(true);
  }

  public String defaultScheme() {
    return FileSystem.getDefaultUri(conf).getScheme();
  }

  /** The one spelling: where the default file system is meant, under another name or port too, its own. */
  public String qualify(String text) throws IOException {
    Path path = new Path(text);
    try {
      FileSystem home = FileSystem.get(conf);
      Path absolute = home.makeQualified(path);
      return new Path(home.getUri().getScheme(), home.getUri().getAuthority(), absolute.toUri().getPath()).toString();
    } catch (IllegalArgumentException anotherFileSystem) {
      return path.getFileSystem(conf).makeQualified(path).toString();
    }
  }

  // ---- looking

  /** [[directory as asked for, path, uri, fileId, mtime, [entry…]]…]; only the first field where no directory is there. */
  public String look(String directories) throws Exception {
    return json.writeValueAsString(inParallel(read(directories), new Task() {
      Object of(Object item) throws Exception {
        return snapshot((String) item);
      }
    }));
  }

  /** As look(), of the entries only those with a hidden name. */
  public String lookHidden(String directories) throws Exception {
    return json.writeValueAsString(inParallel(read(directories), new Task() {
      Object of(Object item) throws Exception {
        return snapshot((String) item, true);
      }
    }));
  }

  /** As look(), for all directories from top downwards, parents first. */
  public String tree(String top) throws Exception {
    List found = new ArrayList();
    List level = Collections.singletonList(top);
    while (!level.isEmpty()) {
      List snapshots = inParallel(level, new Task() {
        Object of(Object item) throws Exception {
          return snapshot((String) item);
        }
      });
      level = new ArrayList();
      for (Iterator each = snapshots.iterator(); each.hasNext();) {
        Object[] snapshot = (Object[]) each.next();
        if (snapshot.length == 1) continue;
        found.add(snapshot);
        for (Iterator entries = ((List) snapshot[5]).iterator(); entries.hasNext();) {
          Object[] entry = (Object[]) entries.next();
          if (((Boolean) entry[4]).booleanValue()) level.add(snapshot[1] + "/" + entry[0]);
        }
      }
    }
    return json.writeValueAsString(found);
  }

  /** [path, uri, entry], "null" where nothing is there. */
  public String stat(String text) throws Exception {
    Place place = place(text);
    if (place.real == null) return "null";
    Object[] entry = ownEntry(place);
    if (entry == null) return "null";
    if (place.fs instanceof DistributedFileSystem && !((Boolean) entry[4]).booleanValue()) {
      entry[11] = Boolean.valueOf(!((DistributedFileSystem) place.fs).isFileClosed(place.real));
    }
    return json.writeValueAsString(new Object[] {place.path.toString(), place.uri(), entry});
  }

  /** The directory's own id and time are read before its listing: what comes in between is in the listing or changes the time. */
  Object[] snapshot(String text) throws Exception {
    return snapshot(text, false);
  }

  Object[] snapshot(String text, boolean hiddenOnly) throws Exception {
    Object[] absent = new Object[] {text};
    Place place = place(text);
    if (place.real == null) return absent;
    Object[] own = ownEntry(place);
    if (own == null || !((Boolean) own[4]).booleanValue()) return absent;
    try {
      List entries = hiddenOnly ? hiddenEntries(place) : allEntries(place);
      return new Object[] {text, place.path.toString(), place.uri(), own[5], own[3], entries};
    } catch (FileNotFoundException removedMeanwhile) {
      return absent;
    } catch (NoSuchFileException removedMeanwhile) {
      return absent;
    }
  }

  Object[] ownEntry(Place place) throws IOException {
    if (place.local()) return localEntry(place, place.localPath());
    try {
      return entry(place.fs.getFileStatus(place.real));
    } catch (FileNotFoundException absent) {
      return null;
    }
  }

  List allEntries(Place place) throws IOException {
    return place.local() ? localEntries(place) : entries(place);
  }

  /**
   * A NameNode lists names in the order of their bytes, so many at a time: what lies between those that begin with a dot and those
   * that begin with an underscore is passed over, and so is what comes after. A root of ten thousand partitions costs two calls.
   */
  List hiddenEntries(Place place) throws IOException {
    List found = new ArrayList();
    if (place.local() || !(place.fs instanceof DistributedFileSystem)) {
      for (Iterator each = allEntries(place).iterator(); each.hasNext();) {
        Object[] entry = (Object[]) each.next();
        if (isHidden((String) entry[0])) found.add(entry);
      }
      return found;
    }
    DFSClient client = ((DistributedFileSystem) place.fs).getClient();
    byte[] after = HdfsFileStatus.EMPTY_NAME;
    while (true) {
      DirectoryListing part = client.listPaths(place.real.toUri().getPath(), after, false);
      if (part == null) throw new FileNotFoundException(place.path.toString());
      HdfsFileStatus[] statuses = part.getPartialListing();
      for (int i = 0; i < statuses.length; i++) {
        if (isHidden(statuses[i].getLocalName())) found.add(entry(statuses[i].makeQualified(place.fs.getUri(), place.real)));
      }
      if (!part.hasMore() || part.getLastName()[0] > '_') return found;
      boolean between = part.getLastName()[0] > '.' && part.getLastName()[0] < LAST_BEFORE_UNDERSCORE[0];
      after = between ? LAST_BEFORE_UNDERSCORE : part.getLastName();
    }
  }

  boolean isHidden(String name) {
    return name.startsWith(".") || name.startsWith("_");
  }

  List entries(Place place) throws IOException {
    List entries = new ArrayList();
    for (RemoteIterator each = place.fs.listLocatedStatus(place.real); each.hasNext();) {
      entries.add(entry((FileStatus) each.next()));
    }
    return entries;
  }

  /**
   * [name, URI-encoded name or null if the same, length, mtime, is it a directory, id, block size, replication, owner, group,
   * mode, is it open]
   */
  Object[] entry(FileStatus status) {
    String name = status.getPath().getName();
    long id = status instanceof HdfsFileStatus ? ((HdfsFileStatus) status).getFileId() : 0L;
    boolean open = false;
    if (status instanceof HdfsLocatedFileStatus && ((HdfsLocatedFileStatus) status).getLocatedBlocks() != null) {
      open = ((HdfsLocatedFileStatus) status).getLocatedBlocks().isUnderConstruction();
    }
    return new Object[] {
      name, encodedName(status.getPath(), name), Long.valueOf(status.getLen()), Long.valueOf(status.getModificationTime()),
      Boolean.valueOf(status.isDirectory()), Long.valueOf(id), Long.valueOf(status.getBlockSize()),
      Integer.valueOf(status.getReplication()),
      status.getOwner(), status.getGroup(), Integer.valueOf(status.getPermission().toShort()), Boolean.valueOf(open)
    };
  }

  String encodedName(Path path, String name) {
    String encoded = path.toUri().getRawPath();
    encoded = encoded.substring(encoded.lastIndexOf('/') + 1);
    return encoded.equals(name) ? null : encoded;
  }

  List localEntries(Place place) throws IOException {
    Map sorted = new TreeMap();
    DirectoryStream children = Files.newDirectoryStream(place.localPath());
    try {
      for (Iterator each = children.iterator(); each.hasNext();) {
        java.nio.file.Path child = (java.nio.file.Path) each.next();
        String name = child.getFileName().toString();
        boolean sideFile = place.fs instanceof ChecksumFileSystem && name.startsWith(".") && name.endsWith(".crc");
        Object[] entry = sideFile ? null : localEntry(place, child);
        if (entry != null) sorted.put(name, entry);
      }
    } finally {
      children.close();
    }
    return new ArrayList(sorted.values());
  }

  /** Hadoop's own status of a local file starts a process for its owner and has no inode. */
  Object[] localEntry(Place place, java.nio.file.Path file) throws IOException {
    Map known;
    try {
      known = Files.readAttributes(file, "unix:ino,mode,owner,group,size,lastModifiedTime,isDirectory", new LinkOption[0]);
    } catch (NoSuchFileException absent) {
      return null;
    }
    boolean directory = ((Boolean) known.get("isDirectory")).booleanValue();
    String name = String.valueOf(file.getFileName());
    return new Object[] {
      name, encodedName(new Path(null, null, "/" + name), name), directory ? Long.valueOf(0) : (Long) known.get("size"),
      Long.valueOf(((FileTime) known.get("lastModifiedTime")).toMillis()), Boolean.valueOf(directory), known.get("ino"),
      Long.valueOf(directory ? 0 : place.fs.getDefaultBlockSize(place.real)), Integer.valueOf(directory ? 0 : 1),
      known.get("owner").toString(), known.get("group").toString(),
      Integer.valueOf(((Integer) known.get("mode")).intValue() & 07777), Boolean.FALSE
    };
  }

  // ---- changing

  public void makeDirectory(String text) throws IOException {
    Path path = new Path(text);
    if (!path.getFileSystem(conf).mkdirs(path)) throw new IOException(text + ": the directory could not be made");
  }

  /** Never OVERWRITE. Not by FileSystem.rename either, which moves the source into a directory that exists. */
  public void rename(String source, String target) throws IOException {
    Path from = new Path(source);
    FileSystem fs = from.getFileSystem(conf);
    if ("file".equals(fs.getUri().getScheme())) {
      renameLocal(fs, localPath(from), localPath(new Path(target)));
      return;
    }
    try {
      context(from).rename(from, new Path(target), new Options.Rename[] {Options.Rename.NONE});
    } catch (IOException refused) {
      // A file onto a directory, or the reverse: Hadoop has no class of its own for that.
      if (String.valueOf(refused.getMessage()).indexOf("must both be") < 0) throw refused;
      throw new FileAlreadyExistsException(refused.getMessage());
    }
  }

  /** "null" where incoming is at live's place now. Else as stat() of aside, where the former live is. */
  public String exchange(String live, String aside, String incoming, long fileId, long mtime) throws Exception {
    rename(live, aside);
    Place place = place(aside);
    Object[] left = place.real == null ? null : ownEntry(place);
    if (left == null) throw new FileNotFoundException(aside + ": no such directory");
    if (((Long) left[5]).longValue() == fileId && ((Long) left[3]).longValue() == mtime) {
      try {
        rename(incoming, live);
        return "null";
      } catch (FileAlreadyExistsException standing) {
        // Somebody has made live anew: the caller finds the old directory as it was, and decides.
      }
    }
    return json.writeValueAsString(new Object[] {place.path.toString(), place.uri(), left});
  }

  /** Hadoop's own rename of local files starts a process for every status that it asks for: tens of milliseconds. */
  void renameLocal(FileSystem fs, java.nio.file.Path from, java.nio.file.Path to) throws IOException {
    LinkOption[] asItIs = new LinkOption[] {LinkOption.NOFOLLOW_LINKS};
    if (!Files.isDirectory(to.getParent(), new LinkOption[0])) throw new FileNotFoundException(to.getParent() + ": no such directory");
    if (Files.exists(to, asItIs)) throw new FileAlreadyExistsException(to + ": exists");
    boolean directory = Files.isDirectory(from, asItIs);
    try {
      if (directory) {
        Files.move(from, to, new CopyOption[] {StandardCopyOption.ATOMIC_MOVE});
      } else {
        // A kernel's rename of a file takes the place of one that came since the question above; its link does not.
        Files.createLink(to, from);
        Files.delete(from);
      }
    } catch (NoSuchFileException absent) {
      throw new FileNotFoundException(absent.getMessage() + ": no such file or directory");
    } catch (java.nio.file.FileAlreadyExistsException lost) {
      throw new FileAlreadyExistsException(to + ": exists");
    }
    java.nio.file.Path sums = from.resolveSibling("." + from.getFileName() + ".crc");
    if (!directory && fs instanceof ChecksumFileSystem && Files.exists(sums, asItIs)) {
      Files.move(sums, to.resolveSibling("." + to.getFileName() + ".crc"), new CopyOption[] {StandardCopyOption.REPLACE_EXISTING});
    }
  }

  /** A FileContext makes a client of its own, so one is kept per file system. */
  synchronized FileContext context(Path path) throws IOException {
    URI uri = path.getFileSystem(conf).getUri();
    if (!contexts.containsKey(uri)) contexts.put(uri, FileContext.getFileContext(uri, conf));
    return (FileContext) contexts.get(uri);
  }

  public boolean removeEmpty(String text) throws IOException {
    Path path = new Path(text);
    FileSystem fs = path.getFileSystem(conf);
    try {
      // A plain delete would take a file too.
      if (!fs.getFileStatus(path).isDirectory() || fs.listStatusIterator(path).hasNext()) return false;
      return fs.delete(path, false);
    } catch (FileNotFoundException absent) {
      return false;
    } catch (IOException refused) {
      if (fs.listStatusIterator(path).hasNext()) return false;
      throw refused;
    }
  }

  public void deleteTree(String text) throws IOException {
    Path path = new Path(text);
    if (path.isRoot()) throw new AccessControlException(text + ": a root is never deleted");
    FileSystem fs = path.getFileSystem(conf);
    if (!fs.delete(path, true) && fs.exists(path)) throw new IOException(text + ": could not be deleted");
  }

  /** False where the trash is switched off. Trash itself says false also where its directory cannot be made. */
  public boolean moveToTrash(String text) throws IOException {
    Place place = place(text);
    if (place.real == null) throw new FileNotFoundException(place.path + ": no such directory");
    place.fs.getFileStatus(place.real);
    if (!new Trash(place.fs, trashConf(place)).isEnabled()) return false;
    if (!Trash.moveToAppropriateTrash(place.fs, place.real, conf)) throw new IOException(text + ": could not be moved to the trash");
    return true;
  }

  /** As Trash.moveToAppropriateTrash has it: the server's interval, the client's only where the server has none. */
  Configuration trashConf(Place place) throws IOException {
    Configuration asked = new Configuration(conf);
    long interval = place.fs.getServerDefaults(place.real).getTrashInterval();
    if (interval != 0) asked.setLong("fs.trash.interval", interval);
    return asked;
  }

  /** {path: text}; a missing file is left out. */
  public String readTexts(String paths) throws Exception {
    final List asked = read(paths);
    List texts = inParallel(asked, new Task() {
      Object of(Object item) throws Exception {
        try {
          return readText((String) item);
        } catch (FileNotFoundException absent) {
          return null;
        }
      }
    });
    Map found = new LinkedHashMap();
    for (int i = 0; i < texts.size(); i++) {
      if (texts.get(i) != null) found.put(asked.get(i), texts.get(i));
    }
    return json.writeValueAsString(found);
  }

  public String readText(String text) throws IOException {
    Path path = new Path(text);
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    IOUtils.copyBytes(in, bytes, 65536, true);
    return bytes.toString("UTF-8");
  }

  public void writeNew(String text, String content) throws IOException {
    Path path = new Path(text);
    Place parent = place(path.getParent().toString());
    if (parent.real == null) throw new FileNotFoundException(parent.path + ": no such directory");
    FSDataOutputStream out = create(parent.fs, new Path(parent.real, path.getName()));
    boolean written = false;
    try {
      out.write(content.getBytes("UTF-8"));
      out.hsync();
      written = true;
    } finally {
      if (written) out.close();
      else IOUtils.closeStream(out);
    }
  }

  /**
   * Never over a file, never with parents: a run whose directory was taken from it must not make it anew. Replicated even
   * where the directory is erasure coded: a coded file can neither be synced nor appended to.
   */
  FSDataOutputStream create(FileSystem fs, Path path) throws IOException {
    FsPermission permission = FsPermission.getFileDefault();
    short replication = fs.getDefaultReplication(path);
    long blockSize = fs.getDefaultBlockSize(path);
    if (!(fs instanceof DistributedFileSystem)) {
      return fs.createNonRecursive(path, permission, false, 4096, replication, blockSize, null);
    }
    EnumSet flags = EnumSet.of(CreateFlag.CREATE, CreateFlag.SHOULD_REPLICATE);
    return ((DistributedFileSystem) fs).createNonRecursive(path, permission, flags, 4096, replication, blockSize, null);
  }

  // ---- the lock

  /** "hdfs", "file", or what else lies behind the path or, where it is not there yet, behind its nearest parent. */
  public String schemeBehind(String text) throws IOException {
    FileSystem fs = nearest(text).fs;
    return fs instanceof DistributedFileSystem ? "hdfs" : fs.getUri().getScheme();
  }

  /** The lock's number. The stream stays open: HDFS refuses every other create or append while this client renews its lease. */
  public int hold(String directory, String name, String holder) throws IOException {
    Place place = place(directory);
    Path path = new Path(place.real, name);
    FSDataOutputStream out = openForAppend((DistributedFileSystem) place.fs, path);
    try {
      out.write((holder + "\n").getBytes("UTF-8"));
      out.hsync();
    } catch (IOException failed) {
      IOUtils.closeStream(out);
      throw failed;
    }
    HdfsFileStatus status = (HdfsFileStatus) place.fs.getFileStatus(path);
    synchronized (locks) {
      lastLock++;
      locks.put(Integer.valueOf(lastLock), new Object[] {out, place.fs, path, Long.valueOf(status.getFileId())});
      return lastLock;
    }
  }

  /** Never with overwrite: that takes the file from a living holder, who does not notice. */
  FSDataOutputStream openForAppend(DistributedFileSystem fs, Path path) throws IOException {
    try {
      return fs.append(path);
    } catch (FileNotFoundException absent) {
      return create(fs, path);
    }
  }

  /** Only a flush that updates the length asks the NameNode, and it finds the file by its id: so the path is asked for too. */
  public boolean isHeld(int number) throws IOException {
    Object[] lock = lock(number);
    if (lock[0] == null) return false;
    try {
      ((HdfsDataOutputStream) lock[0]).hsync(EnumSet.of(HdfsDataOutputStream.SyncFlag.UPDATE_LENGTH));
      FileStatus status = ((FileSystem) lock[1]).getFileStatus((Path) lock[2]);
      if (((HdfsFileStatus) status).getFileId() == ((Long) lock[3]).longValue()) return true;
    } catch (IOException failed) {
      if (!saysLost(failed)) throw failed;
      // The failure has closed the stream: asked again, it would only say so.
      lock[0] = null;
    }
    return false;
  }

  public void release(int number) throws IOException {
    Object[] lock = lock(number);
    synchronized (locks) {
      locks.remove(Integer.valueOf(number));
    }
    if (lock[0] == null) return;
    try {
      ((FSDataOutputStream) lock[0]).close();
    } catch (IOException failed) {
      // Taken over meanwhile: there is nothing left to give back.
      if (!saysLost(failed)) throw failed;
    }
  }

  /** The file is gone, or the lease is somebody else's. These calls bring the server's exception unopened. */
  boolean saysLost(IOException failed) {
    String name = failed instanceof RemoteException ? ((RemoteException) failed).getClassName() : failed.getClass().getName();
    return name.endsWith(".FileNotFoundException") || name.endsWith(".LeaseExpiredException");
  }

  Object[] lock(int number) {
    synchronized (locks) {
      return (Object[]) locks.get(Integer.valueOf(number));
    }
  }

  // ---- attributes

  /** {directory as asked for: attributes}; a missing one is left out. */
  public String attributes(String directories) throws Exception {
    final List asked = read(directories);
    final Map parents = Collections.synchronizedMap(new HashMap());
    return json.writeValueAsString(found(asked, inParallel(asked, new Task() {
      Object of(Object item) throws Exception {
        Place place = place((String) item);
        Object[] own = place.real == null ? null : ownEntry(place);
        return own == null ? null : attributesOf(place, own, parents);
      }
    })));
  }

  /** What was asked for → what was found; without those of which nothing was. */
  Map found(List asked, List answers) {
    Map found = new LinkedHashMap();
    for (int i = 0; i < answers.size(); i++) {
      if (answers.get(i) != null) found.put(asked.get(i), answers.get(i));
    }
    return found;
  }

  Map attributesOf(Place place, Object[] own, Map parents) throws IOException {
    Map known = new HashMap();
    known.put("owner", own[8]);
    known.put("group", own[9]);
    known.put("mode", own[10]);
    known.put("acl", acl(place.fs, place.real));
    FileStatus sample = firstDataFile(place);
    if (sample == null) {
      known.put("file_mode", Integer.valueOf(((Integer) own[10]).intValue() & 0666));
      known.put("file_acl", Collections.EMPTY_LIST);
    } else {
      Object[] file = place.local() ? localEntry(place, localPath(sample.getPath())) : entry(sample);
      known.put("file_mode", file == null ? Integer.valueOf(((Integer) own[10]).intValue() & 0666) : file[10]);
      known.put("file_acl", acl(place.fs, sample.getPath()));
    }
    known.put("xattrs", xattrs(place.fs, place.real));
    if (place.fs instanceof DistributedFileSystem) {
      DistributedFileSystem hdfs = (DistributedFileSystem) place.fs;
      Path parent = place.real.isRoot() ? place.real : place.real.getParent();
      if (!parents.containsKey(parent)) parents.put(parent, policiesOf(hdfs, parent));
      String[] above = (String[]) parents.get(parent), policies = policiesOf(hdfs, place.real);
      known.put("storage_policy", policies[0]);
      known.put("ec_policy", policies[1]);
      known.put("own_storage_policy", Boolean.valueOf(!policies[0].equals(above[0])));
      known.put("own_ec_policy", Boolean.valueOf(!String.valueOf(policies[1]).equals(String.valueOf(above[1]))));
    }
    return known;
  }

  /** Names of the storage policy and the erasure coding policy in effect. */
  String[] policiesOf(DistributedFileSystem hdfs, Path path) throws IOException {
    return new String[] {hdfs.getStoragePolicy(path).getName(), codingOf(hdfs, path)};
  }

  /** Null for replication. */
  String codingOf(DistributedFileSystem hdfs, Path path) throws IOException {
    ErasureCodingPolicy coding = hdfs.getErasureCodingPolicy(path);
    return coding == null ? null : coding.getName();
  }

  FileStatus firstDataFile(Place place) throws IOException {
    for (RemoteIterator each = place.fs.listStatusIterator(place.real); each.hasNext();) {
      FileStatus status = (FileStatus) each.next();
      String name = status.getPath().getName();
      if (!status.isDirectory() && !name.startsWith(".") && !name.startsWith("_")) return status;
    }
    return null;
  }

  /** All entries, those that repeat the mode included; [] without an extended ACL. */
  List acl(FileSystem fs, Path path) throws IOException {
    if (!(fs instanceof DistributedFileSystem) || !fs.getFileStatus(path).hasAcl()) return Collections.EMPTY_LIST;
    AclStatus status = fs.getAclStatus(path);
    List printed = new ArrayList();
    for (Iterator each = AclUtil.getAclFromPermAndEntries(status.getPermission(), status.getEntries()).iterator(); each.hasNext();) {
      printed.add(each.next().toString());
    }
    Collections.sort(printed);
    return printed;
  }

  Map xattrs(FileSystem fs, Path path) throws IOException {
    Map printed = new TreeMap();
    if (!(fs instanceof DistributedFileSystem)) return printed;
    try {
      for (Iterator each = fs.getXAttrs(path).entrySet().iterator(); each.hasNext();) {
        Map.Entry entry = (Map.Entry) each.next();
        if (((String) entry.getKey()).startsWith("user.")) {
          printed.put(entry.getKey(), XAttrCodec.encodeValue((byte[]) entry.getValue(), XAttrCodec.BASE64));
        }
      }
    } catch (IOException failed) {
      // dfs.namenode.xattrs.enabled=false: there are none then.
      if (String.valueOf(failed.getMessage()).indexOf("XAttrs has been disabled") < 0) throw failed;
    }
    return printed;
  }

  /** {directory: attributes}: gives them to the directory and to the files in it. Changes nothing that is so already. */
  public void dress(String wanted) throws Exception {
    final Map all = (Map) json.readValue(wanted, Map.class);
    inParallel(new ArrayList(all.keySet()), new Task() {
      Object of(Object item) throws Exception {
        dressDirectory(place((String) item), (Map) all.get(item));
        return null;
      }
    });
  }

  void dressDirectory(Place place, Map wanted) throws IOException {
    if (place.real == null) throw new FileNotFoundException(place.path + ": no such directory");
    if (place.local()) {
      dressLocal(place, wanted);
      return;
    }
    if (place.fs instanceof DistributedFileSystem) dressPolicies((DistributedFileSystem) place.fs, place.real, wanted);
    dressOne(place.fs, place.fs.getFileStatus(place.real), wanted, "mode", "acl");
    FileStatus[] children = place.fs.listStatus(place.real);
    for (int i = 0; i < children.length; i++) {
      if (!children[i].isDirectory()) dressOne(place.fs, children[i], wanted, "file_mode", "file_acl");
    }
  }

  /** Owner last: whoever gives a file away may not change it any more. */
  void dressOne(FileSystem fs, FileStatus status, Map wanted, String mode, String acl) throws IOException {
    Path path = status.getPath();
    List entries = (List) wanted.get(acl);
    FsPermission permission = new FsPermission((short) ((Integer) wanted.get(mode)).intValue());
    String act = "set the ACL";
    try {
      if (!acl(fs, path).equals(entries)) {
        if (entries.isEmpty()) fs.removeAcl(path);
        else fs.setAcl(path, parseAcl(entries));
        status = fs.getFileStatus(path);
      }
      act = "set the mode " + permission;
      if (status.getPermission().toShort() != permission.toShort()) fs.setPermission(path, permission);
      String owner = different(status.getOwner(), (String) wanted.get("owner"));
      String group = different(status.getGroup(), (String) wanted.get("group"));
      act = "give it to " + wanted.get("owner") + ":" + wanted.get("group");
      if (owner != null || group != null) fs.setOwner(path, owner, group);
    } catch (AccessControlException denied) {
      throw new AccessControlException(path + ": may not " + act + ": " + firstLine(denied));
    }
  }

  void dressPolicies(DistributedFileSystem hdfs, Path path, Map wanted) throws IOException {
    String act = "set the storage policy";
    try {
      // What is only inherited here would be lost when the directory is renamed away from its parent.
      String storage = (String) wanted.get("storage_policy");
      boolean own = Boolean.TRUE.equals(wanted.get("own_storage_policy"));
      if (storage != null && (own || !storage.equals(hdfs.getStoragePolicy(path).getName()))) hdfs.setStoragePolicy(path, storage);
      act = "set the erasure coding policy";
      String coding = (String) wanted.get("ec_policy"), now = codingOf(hdfs, path);
      own = Boolean.TRUE.equals(wanted.get("own_ec_policy"));
      // "replication" is HDFS's name for a directory that does not inherit its parent's coding.
      if (own || !String.valueOf(coding).equals(String.valueOf(now))) {
        hdfs.setErasureCodingPolicy(path, coding == null ? "replication" : coding);
      }
      act = "set the extended attributes";
      Map present = xattrs(hdfs, path);
      for (Iterator each = ((Map) wanted.get("xattrs")).entrySet().iterator(); each.hasNext();) {
        Map.Entry entry = (Map.Entry) each.next();
        if (entry.getValue().equals(present.get(entry.getKey()))) continue;
        hdfs.setXAttr(path, (String) entry.getKey(), XAttrCodec.decodeValue((String) entry.getValue()));
      }
    } catch (AccessControlException denied) {
      throw new AccessControlException(path + ": may not " + act + ": " + firstLine(denied));
    }
  }

  void dressLocal(Place place, Map wanted) throws IOException {
    dressLocalFile(place, place.localPath(), wanted, "mode");
    for (Iterator each = localEntries(place).iterator(); each.hasNext();) {
      Object[] entry = (Object[]) each.next();
      java.nio.file.Path file = place.localPath().resolve((String) entry[0]);
      if (!((Boolean) entry[4]).booleanValue()) dressLocalFile(place, file, wanted, "file_mode");
    }
  }

  void dressLocalFile(Place place, java.nio.file.Path file, Map wanted, String mode) throws IOException {
    Object[] now = localEntry(place, file);
    if (now == null) return;
    UserPrincipalLookupService names = file.getFileSystem().getUserPrincipalLookupService();
    try {
      String owner = different((String) now[8], (String) wanted.get("owner"));
      String group = different((String) now[9], (String) wanted.get("group"));
      LinkOption[] follow = new LinkOption[0];
      if (owner != null) Files.setAttribute(file, "unix:owner", names.lookupPrincipalByName(owner), follow);
      if (group != null) Files.setAttribute(file, "unix:group", names.lookupPrincipalByGroupName(group), follow);
      // After the owner: a change of owner clears the set-id bits.
      Integer bits = (Integer) wanted.get(mode);
      if (owner != null || group != null || !now[10].equals(bits)) Files.setAttribute(file, "unix:mode", bits, follow);
    } catch (UserPrincipalNotFoundException unknown) {
      throw new AccessControlException(file + ": there is no user or group " + unknown.getName());
    } catch (FileSystemException denied) {
      throw new AccessControlException(file + ": may not give it owner, group and mode: " + denied.getReason());
    }
  }

  List parseAcl(List entries) {
    StringBuilder text = new StringBuilder();
    for (Iterator each = entries.iterator(); each.hasNext();) {
      text.append(text.length() == 0 ? "" : ",").append(each.next());
    }
    return AclEntry.parseAclSpec(text.toString(), true);
  }

  String different(String present, String wanted) {
    return wanted == null || wanted.equals(present) ? null : wanted;
  }

  String firstLine(Exception error) {
    return String.valueOf(error.getMessage()).split("\n")[0];
  }

  // ---- what ties a directory to its place

  /** {directory: {zone, snapshots, quota, denied}}; missing directories are left out. Other file systems than HDFS tie nothing. */
  public String ties(String directories) throws Exception {
    final List asked = read(directories);
    final Map parents = Collections.synchronizedMap(new HashMap());
    return json.writeValueAsString(found(asked, inParallel(asked, new Task() {
      Object of(Object item) throws Exception {
        Place place = place((String) item);
        try {
          return place.real == null ? null : tiesOf(place, parents);
        } catch (FileNotFoundException absent) {
          return null;
        }
      }
    })));
  }

  Map tiesOf(Place place, Map parents) throws IOException {
    Map known = new HashMap();
    Path parent = place.path.getParent();
    // Units share their parents, so each is asked about once.
    if (!parents.containsKey(parent)) parents.put(parent, rightsIn(parent));
    String[] rights = (String[]) parents.get(parent);
    FileStatus status = place.fs.getFileStatus(place.real);
    boolean foreign = rights[1] != null && !status.getOwner().equals(UserGroupInformation.getCurrentUser().getShortUserName());
    // Not asked of local files, where Hadoop starts a process to tell an owner.
    String sticky = foreign ? parent + " has the sticky bit and belongs to " + rights[1] + ", the directory to " + status.getOwner() : "";
    known.put("denied", foreign ? sticky : rights[0]);
    if (!(place.fs instanceof DistributedFileSystem)) return known;
    DistributedFileSystem hdfs = (DistributedFileSystem) place.fs;
    known.put("snapshots", Boolean.valueOf(status.isSnapshotEnabled()));
    known.put("zone", status.isEncrypted() ? hdfs.getEZForPath(place.real).getPath() : "");
    try {
      QuotaUsage usage = hdfs.getQuotaUsage(place.real);
      known.put("quota", Boolean.valueOf(usage.getQuota() >= 0 || usage.getSpaceQuota() >= 0 || usage.isTypeQuotaSet()));
    } catch (AccessControlException notReadable) {
      // Without a quota of its own HDFS adds up what lies below, which needs the right to read all of it.
      known.put("quota", Boolean.FALSE);
    }
    return known;
  }

  /** [why nothing in a parent may be renamed by us or "", its owner where a sticky bit forbids us what others own, or null]. */
  String[] rightsIn(Path parent) throws IOException {
    if (parent == null) return new String[] {"a root is never renamed", null};
    Place place = place(parent.toString());
    if (place.real == null) return new String[] {"", null};
    if (place.local()) return new String[] {Files.isWritable(place.localPath()) ? "" : parent + " is not writable", null};
    try {
      place.fs.access(place.real, FsAction.WRITE_EXECUTE);
    } catch (AccessControlException denied) {
      return new String[] {firstLine(denied), null};
    }
    FileStatus status = place.fs.getFileStatus(place.real);
    boolean ours = status.getOwner().equals(UserGroupInformation.getCurrentUser().getShortUserName());
    boolean binding = status.getPermission().getStickyBit() && !ours && !isSuperuser(place);
    return new String[] {"", binding ? status.getOwner() : null};
  }

  /** Only a superuser may list encryption zones; the answer itself does not matter. */
  boolean isSuperuser(Place place) {
    if (!(place.fs instanceof DistributedFileSystem)) return false;
    try {
      ((DistributedFileSystem) place.fs).listEncryptionZones().hasNext();
      return true;
    } catch (IOException denied) {
      return false;
    }
  }

  // ---- space

  /** {free_bytes, copies, block_bytes, quotas: [{path, names_left, disk_left}…]}; directories without a quota are left out. */
  public String room(String text, String quotasAt) throws Exception {
    Place place = nearest(text);
    double copies = copiesAt(place);
    Map found = new LinkedHashMap();
    found.put("free_bytes", Long.valueOf((long) (place.fs.getStatus(place.real).getRemaining() / copies)));
    found.put("copies", Double.valueOf(copies));
    found.put("block_bytes", Long.valueOf(place.fs.getDefaultBlockSize(place.real)));
    List quotas = new ArrayList();
    for (Iterator each = read(quotasAt).iterator(); each.hasNext();) {
      Map quota = quotaOf((String) each.next());
      if (quota != null) quotas.add(quota);
    }
    found.put("quotas", quotas);
    return json.writeValueAsString(found);
  }

  /** How many bytes of disk a new byte takes here. */
  double copiesAt(Place place) throws IOException {
    FileStatus status = place.fs.getFileStatus(place.real);
    ErasureCodingPolicy coding = status instanceof HdfsFileStatus ? ((HdfsFileStatus) status).getErasureCodingPolicy() : null;
    if (coding == null || coding.getName().equals("replication")) return Math.max(1, place.fs.getDefaultReplication(place.real));
    return 1.0 + (double) coding.getNumParityUnits() / coding.getNumDataUnits();
  }

  /**
   * Null where there is no quota, or none that we may read: it is met, if at all, by the write itself. A directory without one
   * makes the NameNode count all that lies below it, so it is asked only once: the tables of a database share theirs.
   */
  Map quotaOf(String text) throws IOException {
    if (withoutQuota.contains(text)) return null;
    Place place = place(text);
    if (place.real == null || !(place.fs instanceof DistributedFileSystem)) return null;
    try {
      QuotaUsage usage = place.fs.getQuotaUsage(place.real);
      boolean names = usage.getQuota() >= 0;
      boolean disk = usage.getSpaceQuota() >= 0;
      if (!names && !disk) {
        withoutQuota.add(text);
        return null;
      }
      Map quota = new LinkedHashMap();
      quota.put("path", text);
      quota.put("names_left", names ? Long.valueOf(Math.max(0, usage.getQuota() - usage.getFileAndDirectoryCount())) : null);
      quota.put("disk_left", disk ? Long.valueOf(Math.max(0, usage.getSpaceQuota() - usage.getSpaceConsumed())) : null);
      return quota;
    } catch (AccessControlException notOurs) {
      withoutQuota.add(text);
      return null;
    } catch (FileNotFoundException absent) {
      return null;
    }
  }

  // ---- plumbing

  /**
   * Where a path really lies: behind a ViewFs mount there is a file system that knows ids and open files. `real` is null
   * where nothing is there.
   */
  Place place(String text) throws IOException {
    Place place = new Place();
    Path path = new Path(text);
    place.fs = path.getFileSystem(conf);
    place.path = place.fs.makeQualified(path);
    place.real = place.path;
    if (place.fs instanceof ViewFileSystem) {
      try {
        place.real = place.fs.resolvePath(place.path);
        place.fs = place.real.getFileSystem(conf);
      } catch (FileNotFoundException absent) {
        place.real = null;
      }
    }
    return place;
  }

  /** The path, or its nearest parent that exists. */
  Place nearest(String text) throws IOException {
    Path path = new Path(text);
    Place place = place(text);
    while ((place.real == null || !place.fs.exists(place.real)) && path.getParent() != null) {
      path = path.getParent();
      place = place(path.toString());
    }
    return place;
  }

  static java.nio.file.Path localPath(Path path) {
    return new java.io.File(path.toUri().getPath()).toPath();
  }

  List read(String texts) throws IOException {
    return Arrays.asList((Object[]) json.readValue(texts, String[].class));
  }

  List inParallel(List items, final Task task) throws Exception {
    List results = new ArrayList();
    if (items.size() == 1) {
      results.add(task.of(items.get(0)));
      return results;
    }
    List futures = new ArrayList();
    for (Iterator each = items.iterator(); each.hasNext();) {
      final Object item = each.next();
      futures.add(pool.submit(new Callable() {
        public Object call() throws Exception {
          return task.of(item);
        }
      }));
    }
    Exception first = null;
    for (Iterator each = futures.iterator(); each.hasNext();) {
      Future future = (Future) each.next();
      try {
        results.add(future.get());
      } catch (ExecutionException failed) {
        if (first == null) first = failed;
      }
    }
    // Only when all have ended: nothing goes on behind the caller's back.
    if (first != null) throw first;
    return results;
  }

  abstract static class Task {
    abstract Object of(Object item) throws Exception;
  }

  static class Place {
    FileSystem fs;
    Path path;
    Path real;

    boolean local() {
      return "file".equals(fs.getUri().getScheme());
    }

    /** As Spark's input_file_name() spells it: Hadoop's listing of local files says `file:///`, a Path alone `file:/`. */
    String uri() {
      URI uri = path.toUri();
      return uri.getAuthority() != null ? uri.toString() : uri.getScheme() + "://" + uri.getRawPath();
    }

    java.nio.file.Path localPath() {
      return HadoopBridge.localPath(real);
    }
  }
}
