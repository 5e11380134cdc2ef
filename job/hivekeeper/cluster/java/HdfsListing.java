package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/**
 * Directories of HDFS, in the parts in which a NameNode tells them, with which of their files are open.
 *
 * A listing tells that only with all blocks of the files, and anybody may make a file of a million blocks. So this has a client of its own,
 * which refuses a long answer at once. The client then closes its connection, on which the answers to other threads come, too; so each of
 * them asks again by the client that all others use: without blocks, and for each file alone whether it is closed.
 */
class HdfsListing {
  /** More than a part needs whose last file has 10,000 blocks (dfs.namenode.fs-limits.max-blocks-per-file), of which 16 threads may wait. */
  private static final int LONGEST_ANSWER = 8 * 1024 * 1024;
  private static final String ANSWER_LIMIT = "ipc.maximum.response.length";
  /** What the client says of one that is longer (ipc.Client.IpcStreams). */
  private static final String TOO_LONG = "exceeds maximum data length";
  private static final String IDLE_TIME = "ipc.client.connection.maxidletime";
  private static final String PROVIDER = "dfs.client.failover.proxy.provider.";
  private static final String READS_BY_ROUTERS = "dfs.client.rbf.observer.read.enable";
  /** Of which it is known that no observer answers. */
  private static final List<String> OF_ACTIVE =
      Arrays.asList("ConfiguredFailoverProxyProvider", "RequestHedgingProxyProvider", "IPFailoverProxyProvider");

  private final Configuration conf;
  private final Map<URI, DistributedFileSystem> own = new ConcurrentHashMap<URI, DistributedFileSystem>();

  HdfsListing(Configuration conf) {
    this.conf = conf;
  }

  /** Which names of a directory are wanted. */
  interface Names {
    boolean isWanted(String name);
  }

  /** What one answer tells. */
  static class Part {
    final List<FileEntry> entries = new ArrayList<FileEntry>();
    final boolean hasMore;
    final byte[] last;

    Part(DirectoryListing told) {
      this.hasMore = told.hasMore();
      this.last = told.getLastName();
    }
  }

  /** What follows a name. `byId`: whether the server finds files by their ids. */
  Part read(Place place, byte[] after, Names names, boolean byId) throws IOException {
    DirectoryListing told;
    Part withoutBlocks = null;
    try {
      told = list(ownClient(place), place, after, true);
    } catch (IOException refused) {
      // Whatever else it was, the client of all others meets it too, also that there is no such directory. After a failover it may be the
      // answer of a server that is on standby, or was the active one before.
      withoutBlocks = readWithoutBlocks(place, after, names, byId);
      if (isTooLong(refused)) return withoutBlocks;
      told = listAgain(place, after);
    }
    if (told == null) return withoutBlocks;
    Part part = new Part(told);
    for (HdfsFileStatus status : told.getPartialListing()) {
      if (names.isWanted(status.getLocalName())) part.entries.add(entry(status, place));
    }
    return part;
  }

  private static boolean isTooLong(IOException refused) {
    return String.valueOf(refused.getMessage()).contains(TOO_LONG);
  }

  /** With blocks, without which nobody knows that some are lost: what failed may be over since the other client has had its answer. Or null. */
  private DirectoryListing listAgain(Place place, byte[] after) {
    try {
      return list(ownClient(place), place, after, true);
    } catch (IOException refusedAgain) {
      return null;
    }
  }

  /** Its directories alone, for which no blocks are read. */
  static Part readDirectories(Place place, byte[] after, Names names) throws IOException {
    DirectoryListing told = list(place.hdfs().getClient(), place, after, false);
    Part part = new Part(told);
    for (HdfsFileStatus status : told.getPartialListing()) {
      if (status.isDirectory() && names.isWanted(status.getLocalName())) part.entries.add(entry(status, place));
    }
    return part;
  }

  /**
   * A file is closed that is the same before and after it was found to be: when a file is closed, its time changes. All others count as open,
   * also one that comes meanwhile.
   */
  private static Part readWithoutBlocks(Place place, byte[] after, Names names, boolean byId) throws IOException {
    DFSClient client = place.hdfs().getClient();
    Map<Long, HdfsFileStatus> closed = new HashMap<Long, HdfsFileStatus>();
    for (HdfsFileStatus status : list(client, place, after, false).getPartialListing()) {
      if (status.isDirectory() || !names.isWanted(status.getLocalName())) continue;
      if (isClosed(client, place, status, byId)) closed.put(status.getFileId(), status);
    }
    DirectoryListing told = list(client, place, after, false);
    Part part = new Part(told);
    for (HdfsFileStatus status : told.getPartialListing()) {
      if (!names.isWanted(status.getLocalName())) continue;
      FileEntry entry = entry(status, place);
      entry.isOpen = !entry.isDir && !isSame(status, (HdfsFileStatus) closed.get(status.getFileId()));
      part.entries.add(entry);
    }
    return part;
  }

  private static boolean isClosed(DFSClient client, Place place, HdfsFileStatus status, boolean byId) throws IOException {
    String path = byId ? Place.BY_ID + status.getFileId() : place.real.toUri().getPath() + "/" + status.getLocalName();
    try {
      return client.isFileClosed(path);
    } catch (FileNotFoundException gone) {
      return false;
    }
  }

  private static boolean isSame(HdfsFileStatus status, HdfsFileStatus before) {
    return before != null
        && before.getLocalName().equals(status.getLocalName())
        && before.getLen() == status.getLen()
        && before.getModificationTime() == status.getModificationTime();
  }

  private static FileEntry entry(HdfsFileStatus status, Place place) {
    return FileEntry.of(status.makeQualified(place.fs.getUri(), place.real));
  }

  private static DirectoryListing list(DFSClient client, Place place, byte[] after, boolean withBlocks) throws IOException {
    DirectoryListing told = client.listPaths(place.real.toUri().getPath(), after, withBlocks);
    if (told == null) throw new FileNotFoundException(place.path.toString());
    return told;
  }

  /**
   * Where observers may answer, it is the client of all others: an observer waits only for the changes that the same client has made, and
   * would show another one a directory as it was before.
   */
  private DFSClient ownClient(Place place) throws IOException {
    URI server = place.fs.getUri();
    if (mayBeObserved(server)) return place.hdfs().getClient();
    DistributedFileSystem found = (DistributedFileSystem) own.get(server);
    if (found == null) {
      synchronized (own) {
        found = (DistributedFileSystem) own.get(server);
        if (found == null) {
          found = (DistributedFileSystem) FileSystem.newInstance(server, ownConf());
          own.put(server, found);
        }
      }
    }
    return found.getClient();
  }

  private boolean mayBeObserved(URI server) {
    String provider = conf.getTrimmed(PROVIDER + server.getHost());
    boolean isActive = provider == null || OF_ACTIVE.contains(provider.substring(provider.lastIndexOf('.') + 1));
    return !isActive || conf.getBoolean(READS_BY_ROUTERS, false);
  }

  private Configuration ownConf() {
    Configuration changed = new Configuration(conf);
    int most = conf.getInt(ANSWER_LIMIT, LONGEST_ANSWER);
    // 0 stands for no limit.
    changed.setInt(ANSWER_LIMIT, most > 0 ? Math.min(LONGEST_ANSWER, most) : LONGEST_ANSWER);
    // Clients share a connection whose settings are the same, and the limit is not among those that are compared.
    changed.setInt(IDLE_TIME, conf.getInt(IDLE_TIME, 10000) + 1);
    // A refused answer counts as a server that fails, which is tried again and again.
    changed.setInt("dfs.client.failover.max.attempts", 2);
    changed.setBoolean("dfs.client.retry.policy.enabled", false);
    return changed;
  }
}
