package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** How much can still be written: the file system's free space and what quotas leave. */
public class Room {
  private final Configuration conf;
  private final Set<String> withoutQuota = Collections.synchronizedSet(new HashSet<String>());

  public Room(Configuration conf) {
    this.conf = conf;
  }

  /** {free_bytes, copies, block_bytes, quotas: [{path, names_left, disk_left}…]}; directories without a quota are left out. */
  public String at(String text, String quotasAt) throws Exception {
    Place place = Place.nearest(conf, text);
    double copies = copiesAt(place);
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("free_bytes", (long) (place.fs.getStatus(place.real).getRemaining() / copies));
    found.put("copies", copies);
    found.put("block_bytes", place.fs.getDefaultBlockSize(place.real));
    List<Object> quotas = new ArrayList<Object>();
    for (String directory : Json.readStrings(quotasAt)) {
      Map<String, Object> quota = quotaOf(directory);
      if (quota != null) quotas.add(quota);
    }
    found.put("quotas", quotas);
    return Json.write(found);
  }

  /** How many bytes of disk a new byte takes here. */
  private static double copiesAt(Place place) throws IOException {
    FileStatus status = place.fs.getFileStatus(place.real);
    ErasureCodingPolicy coding = status instanceof HdfsFileStatus ? ((HdfsFileStatus) status).getErasureCodingPolicy() : null;
    if (coding == null || coding.getName().equals("replication")) return Math.max(1, place.fs.getDefaultReplication(place.real));
    return 1.0 + (double) coding.getNumParityUnits() / coding.getNumDataUnits();
  }

  /**
   * Null if there is no quota, or none that this user may read: the write itself would hit it. For a directory without a quota the
   * NameNode counts everything below it, so it is queried only once: the tables of a database share theirs.
   */
  private Map<String, Object> quotaOf(String text) throws IOException {
    if (withoutQuota.contains(text)) return null;
    Place place = Place.of(conf, text);
    if (place.real == null || !place.isHdfs()) return null;
    QuotaUsage usage;
    try {
      usage = Quotas.of(place.fs, place.real);
    } catch (FileNotFoundException absent) {
      return null;
    } catch (IOException failed) {
      if (!Quotas.isUncounted(failed)) throw failed;
      withoutQuota.add(text);
      return null;
    }
    boolean names = usage.getQuota() >= 0;
    boolean disk = usage.getSpaceQuota() >= 0;
    if (!names && !disk) {
      withoutQuota.add(text);
      return null;
    }
    Map<String, Object> quota = new LinkedHashMap<String, Object>();
    quota.put("path", text);
    quota.put("names_left", names ? (Object) Math.max(0L, usage.getQuota() - usage.getFileAndDirectoryCount()) : null);
    quota.put("disk_left", disk ? (Object) Math.max(0L, usage.getSpaceQuota() - usage.getSpaceConsumed()) : null);
    return quota;
  }
}
