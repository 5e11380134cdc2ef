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
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/**
 * Where files and directories of HDFS are now, by their ids. A NameNode does not tell the path of an id, but its parent (`/.reserved/.inodes/ID/..`,
 * made for NFS, HDFS-5104) and what a directory lists.
 */
public class Whereabouts {
  // What HDFS allows a path (HdfsServerConstants.MAX_PATH_DEPTH): more levels than that show a way that changed while it was walked.
  private static final int MOST_LEVELS = 1000;
  private static final int MOST_TRIES = 5;
  private static final List<Long> CHANGED = Collections.emptyList();

  private final Configuration conf;

  public Whereabouts(Configuration conf) {
    this.conf = conf;
  }

  /**
   * {id: path} of those that exist, on the file system of a path, below which a path is spelled like that. `former`: {id: the path that it had}.
   * Those are left out to whose places this user may not go, or may not list a directory above them. Fails if one keeps being moved meanwhile.
   */
  public String find(String near, String former) throws Exception {
    Place place = Place.of(conf, near);
    if (place.real != null && !place.isHdfs()) throw new UnsupportedOperationException(near + ": it is not on HDFS");
    Map<Long, String> found = new LinkedHashMap<Long, String>();
    if (place.real == null) return Json.write(found);
    place.requireIds();
    Map<Long, String[]> left = new LinkedHashMap<Long, String[]>();
    for (Map.Entry<String, Object> one : Json.readMap(former).entrySet()) {
      left.put(Long.valueOf((String) one.getKey()), ((String) one.getValue()).split("/"));
    }
    Search search = new Search(place);
    for (int tries = 0; tries < MOST_TRIES && !left.isEmpty(); tries++) search.findSome(left, found);
    if (!left.isEmpty()) throw new IOException(near + ": what has the id " + left.keySet().iterator().next() + " keeps being moved");
    return Json.write(found);
  }

  /** On one file system. */
  private static class Search {
    private final Place near;
    private final DFSClient client;
    private final long nearId;
    private final long rootId;

    Search(Place near) throws IOException {
      this.near = near;
      this.client = near.hdfs().getClient();
      this.rootId = idAt("/");
      this.nearId = idAt(near.real.toUri().getPath());
    }

    /** Moves those that it finds from `left` to `found`, and takes away from `left` those that do not exist or are not shown. */
    void findSome(final Map<Long, String[]> left, Map<Long, String> found) throws Exception {
      List<Long> ids = new ArrayList<Long>(left.keySet());
      final Map<Long, String> names = new ConcurrentHashMap<Long, String>();
      final Map<Long, Long> parents = new ConcurrentHashMap<Long, Long>();
      List<Object> ways = WorkerPool.map(ids, new WorkerPool.Task() {
        public Object of(Object id) throws Exception {
          return shownWayOf(((Long) id).longValue(), (String[]) left.get(id), names, parents);
        }
      });
      Set<Long> closed = list(ways, names);
      for (int i = 0; i < ids.size(); i++) {
        Long id = (Long) ids.get(i);
        List<Long> way = (List<Long>) ways.get(i);
        boolean isShown = way != null && Collections.disjoint(way, closed);
        String path = isShown && !way.isEmpty() ? relative(way, names) : null;
        if (path != null && idAt(base(way, false) + path) == id.longValue()) found.put(id, base(way, true) + path);
        if (!isShown || found.containsKey(id)) left.remove(id);
      }
    }

    /** Like wayOf, but null if this user may not see it. */
    private List<Long> shownWayOf(long id, String[] former, Map<Long, String> names, Map<Long, Long> parents) throws IOException {
      try {
        List<Long> way = wayOf(id, parents);
        if (way != null) findUnchanged(way, former, names);
        return way;
      } catch (IOException failed) {
        if (!Denials.isDenial(failed)) throw failed;
        return null;
      }
    }

    /**
     * The ids from this one up to `near` or the root; null if it does not exist, CHANGED if what is above it was moved meanwhile. `parents`: what
     * other ways have shown; that it is true no more shows at the end of a way.
     */
    private List<Long> wayOf(long id, Map<Long, Long> parents) throws IOException {
      if (id == 0 || idAt(Place.BY_ID + id) != id) return null;
      List<Long> way = new ArrayList<Long>();
      for (long at = id; at != 0 && way.size() < MOST_LEVELS; at = parentOf(at, parents)) {
        way.add(at);
        if (at == nearId || at == rootId) return way;
      }
      return CHANGED;
    }

    private long parentOf(long id, Map<Long, Long> parents) throws IOException {
      Long known = (Long) parents.get(id);
      if (known != null) return known.longValue();
      long parent = idAt(Place.BY_ID + id + "/..");
      parents.put(id, parent);
      return parent;
    }

    /** Gives the names of those on a way that are called as they were, so that a directory of a million files need not be listed. */
    private void findUnchanged(List<Long> way, String[] former, Map<Long, String> names) throws IOException {
      for (int i = 0; i + 1 < way.size() && i < former.length; i++) {
        Long id = (Long) way.get(i);
        String name = former[former.length - 1 - i];
        boolean isSame = !name.isEmpty() && !names.containsKey(id) && idAt(Place.BY_ID + way.get(i + 1) + "/" + name) == id.longValue();
        if (isSame) names.put(id, name);
      }
    }

    /** Gives the other names of all on these ways, each directory being listed once; returns the ids of those that this user may not list. */
    private Set<Long> list(List<Object> ways, final Map<Long, String> names) throws Exception {
      final Map<Long, Set<Long>> wanted = new LinkedHashMap<Long, Set<Long>>();
      for (Object each : ways) {
        List<Long> way = each == null ? CHANGED : (List<Long>) each;
        for (int i = 1; i < way.size(); i++) {
          Long directory = (Long) way.get(i);
          if (names.containsKey(way.get(i - 1))) continue;
          if (!wanted.containsKey(directory)) wanted.put(directory, new HashSet<Long>());
          ((Set<Long>) wanted.get(directory)).add((Long) way.get(i - 1));
        }
      }
      final Set<Long> closed = Collections.newSetFromMap(new ConcurrentHashMap<Long, Boolean>());
      WorkerPool.map(new ArrayList<Long>(wanted.keySet()), new WorkerPool.Task() {
        public Object of(Object directory) throws Exception {
          try {
            listOne(((Long) directory).longValue(), (Set<Long>) wanted.get(directory), names);
          } catch (IOException failed) {
            if (!Denials.isDenial(failed)) throw failed;
            closed.add((Long) directory);
          }
          return null;
        }
      });
      return closed;
    }

    private void listOne(long directory, Set<Long> wanted, Map<Long, String> names) throws IOException {
      int missing = wanted.size();
      byte[] after = HdfsFileStatus.EMPTY_NAME;
      while (missing > 0) {
        DirectoryListing part = listing(Place.BY_ID + directory, after);
        if (part == null) return;
        for (HdfsFileStatus status : part.getPartialListing()) {
          if (!wanted.contains(status.getFileId())) continue;
          names.put(status.getFileId(), status.getLocalName());
          missing--;
        }
        if (!part.hasMore()) return;
        after = part.getLastName();
      }
    }

    private DirectoryListing listing(String path, byte[] after) throws IOException {
      try {
        return client.listPaths(path, after, false);
      } catch (FileNotFoundException gone) {
        return null;
      }
    }

    /** Null if one of the names is not known, because it was moved since. */
    private static String relative(List<Long> way, Map<Long, String> names) {
      StringBuilder path = new StringBuilder();
      for (int i = way.size() - 2; i >= 0; i--) {
        String name = (String) names.get(way.get(i));
        if (name == null) return null;
        path.append('/').append(name);
      }
      return path.toString();
    }

    private String base(List<Long> way, boolean isQualified) {
      boolean isNear = ((Long) way.get(way.size() - 1)).longValue() == nearId;
      if (isNear) return isQualified ? near.path.toString() : near.real.toUri().getPath();
      return isQualified ? near.fs.getUri().toString() : "";
    }

    /** 0 if nothing is there. Like each call that gets a text, not by a Path, which would resolve two dots itself. */
    private long idAt(String path) throws IOException {
      try {
        HdfsFileStatus found = client.getFileInfo(path.isEmpty() ? "/" : path);
        return found == null ? 0 : found.getFileId();
      } catch (FileNotFoundException gone) {
        return 0;
      }
    }
  }
}
