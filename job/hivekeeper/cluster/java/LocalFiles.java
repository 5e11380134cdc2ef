package hivekeeper;

import com.sun.security.auth.module.UnixSystem;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.CopyOption;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.nio.file.attribute.UserPrincipalNotFoundException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.AccessControlException;

/**
 * Local files, through Java's own file API: Hadoop's statuses of local files have no inode and start a process each.
 *
 * Path means Hadoop's; Java's own is written out in full.
 */
class LocalFiles {
  private static final LinkOption[] FOLLOW = {};
  private static final LinkOption[] AS_IT_IS = {LinkOption.NOFOLLOW_LINKS};
  private static final int MODE_BITS = 07777;

  private LocalFiles() {}

  static boolean holds(FileSystem fs) {
    return "file".equals(fs.getUri().getScheme());
  }

  static java.nio.file.Path path(Path path) {
    return new java.io.File(path.toUri().getPath()).toPath();
  }

  /** Ordered by name; without the checksum files that Hadoop keeps beside local files. */
  static List<FileEntry> entries(Place place) throws IOException {
    Map<String, FileEntry> sorted = new TreeMap<String, FileEntry>();
    DirectoryStream<java.nio.file.Path> children = Files.newDirectoryStream(path(place.real));
    try {
      for (java.nio.file.Path child : children) {
        String name = child.getFileName().toString();
        boolean isChecksum = place.fs instanceof ChecksumFileSystem && name.startsWith(".") && name.endsWith(".crc");
        FileEntry entry = isChecksum ? null : entry(place, child);
        if (entry != null) sorted.put(name, entry);
      }
    } finally {
      children.close();
    }
    return new ArrayList<FileEntry>(sorted.values());
  }

  /** Null if nothing exists there. */
  static FileEntry entry(Place place, java.nio.file.Path file) throws IOException {
    Map<String, Object> known;
    try {
      known = Files.readAttributes(file, "unix:ino,mode,owner,group,size,lastModifiedTime,isDirectory", FOLLOW);
    } catch (NoSuchFileException absent) {
      return null;
    }
    FileEntry entry = new FileEntry();
    entry.name = String.valueOf(file.getFileName());
    entry.isDir = (Boolean) known.get("isDirectory");
    entry.length = entry.isDir ? 0L : (Long) known.get("size");
    entry.mtimeMs = ((FileTime) known.get("lastModifiedTime")).toMillis();
    entry.fileId = (Long) known.get("ino");
    entry.blockSize = entry.isDir ? 0L : place.fs.getDefaultBlockSize(place.real);
    entry.replication = entry.isDir ? 0 : 1;
    entry.owner = known.get("owner").toString();
    entry.group = known.get("group").toString();
    entry.mode = (Integer) known.get("mode") & MODE_BITS;
    return entry;
  }

  /** Never over an existing target, except an empty directory created between the check and the rename. */
  static void rename(FileSystem fs, java.nio.file.Path from, java.nio.file.Path to) throws IOException {
    if (!Files.isDirectory(to.getParent(), FOLLOW)) throw new FileNotFoundException(to.getParent() + ": no such directory");
    if (Files.exists(to, AS_IT_IS)) throw new FileAlreadyExistsException(to + ": exists");
    boolean directory = Files.isDirectory(from, AS_IT_IS);
    try {
      if (directory) {
        Files.move(from, to, new CopyOption[] {StandardCopyOption.ATOMIC_MOVE});
      } else {
        // A kernel's rename would replace a file created since the check above; a link does not.
        Files.createLink(to, from);
        Files.delete(from);
      }
    } catch (NoSuchFileException absent) {
      throw new FileNotFoundException(absent.getMessage() + ": no such file or directory");
    } catch (java.nio.file.FileAlreadyExistsException lost) {
      throw new FileAlreadyExistsException(to + ": exists");
    }
    if (!directory && fs instanceof ChecksumFileSystem) renameChecksums(from, to);
  }

  private static void renameChecksums(java.nio.file.Path from, java.nio.file.Path to) throws IOException {
    java.nio.file.Path sums = from.resolveSibling("." + from.getFileName() + ".crc");
    if (Files.exists(sums, AS_IT_IS)) {
      Files.move(sums, to.resolveSibling("." + to.getFileName() + ".crc"), new CopyOption[] {StandardCopyOption.REPLACE_EXISTING});
    }
  }

  static boolean isWritable(Path path) {
    return Files.isWritable(path(path));
  }

  /** Sets owner, group and mode of a directory and the files in it. */
  static void give(Place place, DirectoryAttributes wanted) throws IOException {
    java.nio.file.Path directory = path(place.real);
    giveToOne(place, directory, wanted.owner, wanted.group, wanted.mode);
    for (FileEntry entry : entries(place)) {
      if (!entry.isDir) giveToOne(place, directory.resolve(entry.name), wanted.ownerOfFiles(), wanted.groupOfFiles(), wanted.fileMode);
    }
  }

  /** The same for group and mode only; also for a file. */
  static void give(Place place, Rights.Guard wanted) throws IOException {
    java.nio.file.Path path = path(place.real);
    if (!Files.exists(path, FOLLOW)) throw new FileNotFoundException(path + ": no such file or directory");
    giveToOne(place, path, null, wanted.group, wanted.mode);
    if (wanted.fileMode == null || !Files.isDirectory(path, FOLLOW)) return;
    for (FileEntry entry : entries(place)) {
      if (!entry.isDir) giveToOne(place, path.resolve(entry.name), null, wanted.group, wanted.fileMode);
    }
  }

  /** Compares user ids, because a container's user may have no name. */
  static boolean isOurs(Path path) throws IOException {
    try {
      return ((Number) Files.getAttribute(path(path), "unix:uid", FOLLOW)).longValue() == new UnixSystem().getUid();
    } catch (NoSuchFileException absent) {
      return true;
    }
  }

  /** For this user alone from the moment it exists; missing parents too, or only in one that exists. */
  static void makeDirectory(java.nio.file.Path path, boolean parentsToo) throws IOException {
    FileAttribute[] ownerOnly = {PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))};
    try {
      if (parentsToo) Files.createDirectories(path, ownerOnly);
      else Files.createDirectory(path, ownerOnly);
    } catch (java.nio.file.FileAlreadyExistsException present) {
      if (Files.isDirectory(path, FOLLOW)) return;
      throw new FileAlreadyExistsException(path + ": exists and is not a directory");
    } catch (AccessDeniedException denied) {
      throw new AccessControlException(path + ": permission denied");
    } catch (FileSystemException refused) {
      if (!String.valueOf(refused.getReason()).contains("Not a directory")) throw refused;
      throw new ParentNotDirectoryException(path + ": " + refused.getReason());
    }
  }

  /** An empty one that is new, for this user alone. */
  static void makeFile(java.nio.file.Path path) throws IOException {
    Files.createFile(path, new FileAttribute[] {PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))});
  }

  private static void giveToOne(Place place, java.nio.file.Path file, String toOwner, String toGroup, int mode) throws IOException {
    FileEntry now = entry(place, file);
    if (now == null) return;
    UserPrincipalLookupService names = file.getFileSystem().getUserPrincipalLookupService();
    try {
      boolean owner = toOwner != null && !toOwner.equals(now.owner);
      boolean group = toGroup != null && !toGroup.equals(now.group);
      if (owner) Files.setAttribute(file, "unix:owner", names.lookupPrincipalByName(toOwner), FOLLOW);
      if (group) Files.setAttribute(file, "unix:group", names.lookupPrincipalByGroupName(toGroup), FOLLOW);
      // After the owner: a change of owner clears the set-id bits.
      if (owner || group || now.mode != mode) Files.setAttribute(file, "unix:mode", mode, FOLLOW);
    } catch (UserPrincipalNotFoundException unknown) {
      throw new AccessControlException(file + ": there is no user or group " + unknown.getName());
    } catch (FileSystemException denied) {
      throw new AccessControlException(file + ": may not give it owner, group and mode: " + denied.getReason());
    }
  }
}
