package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.key.KeyProvider;
import org.apache.hadoop.crypto.key.KeyProviderCryptoExtension;
import org.apache.hadoop.fs.FileEncryptionInfo;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.authorize.AuthorizationException;

/** What ties a directory to its place, so that it cannot or must not be renamed: rights, encryption zones and keys, snapshots, quotas. */
public class Placement {
  private final Configuration conf;

  public Placement(Configuration conf) {
    this.conf = conf;
  }

  /**
   * {directory: {denied, zone, locked, snapshots, quota}}; missing directories are left out. Only HDFS has more than `denied`. `around`: the one
   * of them whose quota is not asked for, nor the key of its zone, for which its entries are listed until one is a file: those of a database.
   */
  public String ties(String directories, final String around) throws Exception {
    // Units share their parents, so each parent is checked once.
    final Map<Path, ParentRights> parents = Collections.synchronizedMap(new HashMap<Path, ParentRights>());
    final Map<String, String> keys = Collections.synchronizedMap(new HashMap<String, String>());
    return Json.write(WorkerPool.mapFound(Json.readStrings(directories), new WorkerPool.Task() {
      public Object of(Object directory) throws Exception {
        Place place = Place.of(conf, (String) directory);
        try {
          return place.real == null ? null : tiesOf(place, parents, keys, !directory.equals(around));
        } catch (FileNotFoundException absent) {
          return null;
        }
      }
    }));
  }

  /** `keys`: why this user may not use the key of a zone, by the zone's root; each is tried once. `isUnit`: it is not the one around all. */
  private Map<String, Object> tiesOf(Place place, Map<Path, ParentRights> parents, Map<String, String> keys, boolean isUnit)
      throws IOException {
    Path parent = place.path.getParent();
    if (!parents.containsKey(parent)) parents.put(parent, rightsIn(parent));
    FileStatus status = place.fs.getFileStatus(place.real);
    Map<String, Object> known = new LinkedHashMap<String, Object>();
    known.put("denied", whyDenied((ParentRights) parents.get(parent), parent, status));
    if (!place.isHdfs()) return known;
    known.put("snapshots", status.isSnapshotEnabled());
    String zone = status.isEncrypted() ? place.hdfs().getEZForPath(place.real).getPath() : "";
    if (isUnit && !zone.isEmpty() && !keys.containsKey(zone)) tryKey(place, zone, keys);
    known.put("zone", zone);
    known.put("locked", keys.containsKey(zone) ? keys.get(zone) : "");
    known.put("quota", isUnit && hasQuota(place));
    return known;
  }

  /**
   * Has the key of a file of the directory decrypted, as if it was opened: but the file itself need not be sound, nor open to this user. An
   * empty directory tells nothing.
   */
  private static void tryKey(Place place, String zone, Map<String, String> keys) throws IOException {
    try {
      RemoteIterator<?> statuses = place.fs.listStatusIterator(place.real);
      while (statuses.hasNext()) {
        Object status = statuses.next();
        FileEncryptionInfo key = status instanceof HdfsFileStatus ? ((HdfsFileStatus) status).getFileEncryptionInfo() : null;
        if (((FileStatus) status).isDirectory() || key == null) continue;
        decrypt(place, key);
        keys.put(zone, "");
        return;
      }
    } catch (AuthorizationException refused) {
      keys.put(zone, Messages.firstLine(refused));
    }
  }

  private static void decrypt(Place place, FileEncryptionInfo key) throws IOException {
    KeyProvider provider = place.hdfs().getClient().getKeyProvider();
    if (provider == null) throw new IOException("no provider of keys is configured, and " + place.path + " is encrypted");
    try {
      KeyProviderCryptoExtension.createKeyProviderCryptoExtension(provider).decryptEncryptedKey(
          KeyProviderCryptoExtension.EncryptedKeyVersion.createForDecryption(
              key.getKeyName(), key.getEzKeyVersionName(), key.getIV(), key.getEncryptedDataEncryptionKey()));
    } catch (GeneralSecurityException failed) {
      throw new IOException(failed);
    }
  }

  private static boolean hasQuota(Place place) throws IOException {
    try {
      QuotaUsage usage = Quotas.of(place.fs, place.real);
      return usage.getQuota() >= 0 || usage.getSpaceQuota() >= 0 || usage.isTypeQuotaSet();
    } catch (IOException failed) {
      if (!Quotas.isUncounted(failed)) throw failed;
      return false;
    }
  }

  /** This user's limits in a directory: `denied` is why they may rename nothing there; `stickyOwner` is null if no sticky bit applies. */
  private static class ParentRights {
    final String denied;
    final String stickyOwner;

    ParentRights(String denied, String stickyOwner) {
      this.denied = denied;
      this.stickyOwner = stickyOwner;
    }
  }

  /** "" if this user may rename the directory. */
  private static String whyDenied(ParentRights rights, Path parent, FileStatus status) throws IOException {
    // Reading a local file's owner starts a process, so it is read only below a sticky bit.
    if (rights.stickyOwner == null || status.getOwner().equals(currentUser())) return rights.denied;
    return parent + " has the sticky bit and belongs to " + rights.stickyOwner + ", the directory to " + status.getOwner();
  }

  private ParentRights rightsIn(Path parent) throws IOException {
    if (parent == null) return new ParentRights("a root is never renamed", null);
    Place place = Place.of(conf, parent.toString());
    if (place.real == null) return new ParentRights("", null);
    if (place.isLocal()) return new ParentRights(LocalFiles.isWritable(place.real) ? "" : parent + " is not writable", null);
    try {
      place.fs.access(place.real, FsAction.WRITE_EXECUTE);
    } catch (IOException failed) {
      if (!Denials.isDenial(failed)) throw failed;
      return new ParentRights(Messages.firstLine(failed), null);
    }
    FileStatus status = place.fs.getFileStatus(place.real);
    boolean binding = status.getPermission().getStickyBit() && !status.getOwner().equals(currentUser()) && !isSuperuser(place);
    return new ParentRights("", binding ? status.getOwner() : null);
  }

  private static String currentUser() throws IOException {
    return UserGroupInformation.getCurrentUser().getShortUserName();
  }

  /** Only a superuser may list encryption zones; the list itself does not matter. */
  private static boolean isSuperuser(Place place) {
    if (!place.isHdfs()) return false;
    try {
      place.hdfs().listEncryptionZones().hasNext();
      return true;
    } catch (IOException denied) {
      return false;
    }
  }
}
