package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.ipc.RemoteException;

/** Files of HDFS as their blocks: which they have, joined and cut between them. Elsewhere an UnsupportedOperationException. */
public class Blocks {
  private final Configuration conf;

  public Blocks(Configuration conf) {
    this.conf = conf;
  }

  /**
   * By name, for each file of a directory with fewer bytes, or for one file: its id, and [id, generation stamp, length] of its blocks in their
   * order. "null" for nothing. `wanted`: a list of ids, if only these are told, or "null". Fails where several files have more than `most`
   * blocks together.
   */
  public String of(String text, long below, String wanted, int most) throws Exception {
    Place place = onHdfs(text);
    if (place.real == null) return "null";
    String path = place.real.toUri().getPath();
    Set<Long> ids = idsIn(wanted);
    Map<String, Object> found = new TreeMap<String, Object>();
    long told = 0;
    byte[] after = HdfsFileStatus.EMPTY_NAME;
    while (true) {
      DirectoryListing part = place.hdfs().getClient().listPaths(path, after, true);
      if (part == null) return "null";
      for (HdfsFileStatus status : part.getPartialListing()) {
        // In a listing of itself, a file's name is empty.
        String name = status.isEmptyLocalName() ? place.real.getName() : status.getLocalName();
        if (!(status instanceof HdfsLocatedFileStatus) || status.getLen() >= below) continue;
        if (ids != null && !ids.contains(status.getFileId())) continue;
        List<Object> ofFile = blocks(((HdfsLocatedFileStatus) status).getLocatedBlocks());
        found.put(name, Arrays.<Object>asList(status.getFileId(), ofFile));
        told += ofFile.size();
        if (told > most && found.size() > 1) {
          throw new UnsupportedOperationException(text + ": these files have more than " + most + " blocks together");
        }
      }
      if (!part.hasMore()) return Json.write(found);
      after = part.getLastName();
    }
  }

  private static Set<Long> idsIn(String wanted) throws IOException {
    List<Object> listed = Json.readList(wanted);
    if (listed == null) return null;
    Set<Long> ids = new HashSet<Long>();
    for (Object id : listed) ids.add(((Number) id).longValue());
    return ids;
  }

  private static List<Object> blocks(LocatedBlocks all) {
    List<Object> found = new ArrayList<Object>();
    for (LocatedBlock located : all.getLocatedBlocks()) {
      LocatedBlock block = (LocatedBlock) located;
      found.add(new long[] {block.getBlock().getBlockId(), block.getBlock().getGenerationStamp(), block.getBlockSize()});
    }
    return found;
  }

  /** Whether an inode exists, whatever its path is; true if its real path is closed to this user. */
  public boolean isAnywhere(String near, long fileId) throws IOException {
    Place place = onHdfs(near);
    if (place.real == null) return false;
    place.requireIds();
    try {
      // Of what was deleted, and is in a snapshot, the id leads to what is at its path.
      return FileEntry.of(place.fs.getFileStatus(new Path(Place.BY_ID + fileId))).fileId == fileId;
    } catch (FileNotFoundException gone) {
      return false;
    } catch (IOException failed) {
      if (!Denials.isDenial(failed)) throw failed;
      return true;
    }
  }

  /** FSDirConcatOp checks everything before it changes anything. */
  public void concat(String target, String sources) throws IOException {
    Place to = onHdfs(target);
    to.requireReal();
    List<String> from = Json.readStrings(sources);
    String[] paths = new String[from.size()];
    for (int i = 0; i < paths.length; i++) {
      Place one = onHdfs((String) from.get(i));
      one.requireReal();
      if (!one.fs.getUri().equals(to.fs.getUri())) throw new UnsupportedOperationException(one.path + ": on another file system");
      paths[i] = one.real.toUri().getPath();
    }
    try {
      to.hdfs().getClient().concat(to.real.toUri().getPath(), paths);
    } catch (RemoteException refused) {
      throw explained(refused);
    }
  }

  /**
   * By the file's id, so that no other file is cut that comes to its path, and only while it has these blocks, as `of` gives them. Behind a
   * router that may be another nameservice's file, and the numbers of its blocks the same.
   */
  public void cut(String text, long fileId, long length, String expected) throws IOException {
    Place place = onHdfs(text);
    place.requireReal();
    DFSClient client = place.hdfs().getClient();
    HdfsFileStatus status = client.getFileInfo(place.real.toUri().getPath());
    if (status == null) throw new FileNotFoundException(text + ": no such file");
    if (status.getFileId() != fileId) throw new InvalidPathHandleException(text + ": another file is there");
    String pool = Place.poolOf(client.getLocatedBlocks(place.real.toUri().getPath(), 0, 1));
    String exact = Place.BY_ID + fileId;
    LocatedBlocks all = client.getLocatedBlocks(exact, 0, Long.MAX_VALUE);
    if (!pool.equals(Place.poolOf(all))) throw new UnsupportedOperationException(text + ": it is not found by its id: is there a router?");
    if (all.isUnderConstruction()) throw new UnsupportedOperationException(text + ": it is open");
    if (!isSame(blocks(all), Json.readList(expected))) throw new UnsupportedOperationException(text + ": somebody has written to it");
    requireEdge(all, text, length);
    try {
      if (!client.truncate(exact, length)) throw new IOException(text + ": it is being cut inside a block");
    } catch (RemoteException refused) {
      throw explained(refused);
    }
  }

  private static boolean isSame(List<Object> blocks, List<Object> expected) {
    boolean isSame = blocks.size() == expected.size();
    for (int i = 0; isSame && i < blocks.size(); i++) {
      long[] block = (long[]) blocks.get(i);
      List other = (List) expected.get(i);
      isSame = other.size() == block.length;
      for (int k = 0; isSame && k < block.length; k++) isSame = ((Number) other.get(k)).longValue() == block[k];
    }
    return isSame;
  }

  /** Only between blocks it is one step, after which the file is closed. */
  private static void requireEdge(LocatedBlocks all, String text, long length) {
    for (LocatedBlock block : all.getLocatedBlocks()) {
      if (((LocatedBlock) block).getStartOffset() == length) return;
    }
    if (all.getFileLength() != length) throw new UnsupportedOperationException(text + ": no block ends at " + length);
  }

  private Place onHdfs(String text) throws IOException {
    Place place = Place.of(conf, text);
    if (place.real != null && !place.isHdfs()) throw new UnsupportedOperationException(text + ": it is not on HDFS");
    return place;
  }

  /** Files that are open or empty, in a snapshot, in an encryption zone, of other block sizes, or not in one directory. */
  private static RuntimeException explained(RemoteException refused) throws IOException {
    String name = refused.getClassName();
    boolean isRefusal = name.endsWith("HadoopIllegalArgumentException") || name.endsWith("SnapshotException");
    if (!isRefusal) throw refused;
    return new UnsupportedOperationException(refused.getMessage());
  }
}
