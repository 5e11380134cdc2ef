package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** Renames that never go over or into an existing target, and the exchange of two directories built from them. */
public class Renames {
  private final Configuration conf;
  private final Map<URI, FileContext> contexts = new HashMap<URI, FileContext>();

  public Renames(Configuration conf) {
    this.conf = conf;
  }

  /**
   * Never with OVERWRITE, and not with FileSystem.rename, which moves the source into an existing directory.
   *
   * On HDFS by the client that reads: where a site lets observers answer (ObserverReadProxyProvider), each client waits only until they
   * have seen its own changes. Another one's renames could look as if they had not happened.
   */
  public void rename(String source, String target) throws IOException {
    Path from = new Path(source);
    FileSystem fs = from.getFileSystem(conf);
    if (LocalFiles.holds(fs)) {
      LocalFiles.rename(fs, LocalFiles.path(from), LocalFiles.path(new Path(target)));
      return;
    }
    try {
      Path to = new Path(target);
      Options.Rename[] never = {Options.Rename.NONE};
      if (fs instanceof DistributedFileSystem) ((DistributedFileSystem) fs).rename(from, to, never);
      else context(from).rename(from, to, never);
    } catch (IOException refused) {
      // A file onto a directory, or the reverse: Hadoop has no class of its own for that.
      if (!String.valueOf(refused.getMessage()).contains("must both be")) throw refused;
      throw new FileAlreadyExistsException(refused.getMessage());
    }
  }

  /**
   * The same between two directories that are found by their ids, one or both of which (`fromAny`, `toAny`) others may delete. While a
   * snapshot has such a one, HDFS finds another one by its id, which may have come to its path just now: then nothing is moved, or it is
   * taken back. Three requests more than a rename, two if only `toAny`.
   */
  public void renameBelowIds(String source, String target, boolean fromAny, boolean toAny) throws IOException {
    Place from = Place.of(conf, source);
    Place to = Place.of(conf, target);
    long moved = from.idAt(from.belowIds());
    if (moved == 0 || (fromAny && !from.isBelowId(moved))) throw new FileNotFoundException(source + ": no such file or directory");
    rename(source, target);
    boolean isMoved = toAny ? to.isBelowId(moved) : to.idAt(to.belowIds()) == moved;
    if (!isMoved) takeBack(from, to, moved, fromAny);
  }

  /** Gives back what was moved into another directory, or out of one in the place of what has the id; fails unless others have deleted it. */
  private void takeBack(Place from, Place to, long moved, boolean fromAny) throws IOException {
    long around = from.idAt(moved + "/..");
    // Not in the directory from which another one was taken: by the id of what is in a snapshot alone, it is at no path of the present.
    boolean isStray = around != 0 && from.idAt(around + "/" + to.real.getName()) == moved;
    if (!isStray && (fromAny ? to.idAt(to.belowIds()) : around) == 0) return;
    Path strange = isStray ? new Path(Place.BY_ID + around, to.real.getName()) : to.real;
    String what = to.path + ": another directory came to its place, or to that of " + from.path;
    try {
      if (!isStray && !fromAny) throw new FileNotFoundException("it was moved again");
      rename(from.fs.makeQualified(strange).toString(), from.path.toString());
    } catch (IOException failed) {
      throw new IOException(what + ", and what was moved into or out of it cannot be taken back: " + failed.getMessage());
    }
    throw new FileNotFoundException(what);
  }

  /**
   * live → aside; then incoming → live, if aside has the id and time that live had when it was listed. Returns "null" if incoming
   * is in live's place now; else {path, entry} of aside, where the former live is.
   *
   * One call, because readers find nothing at live in between.
   */
  public String exchange(String live, String aside, String incoming, long fileId, long mtimeMs) throws Exception {
    rename(live, aside);
    Place place = Place.of(conf, aside);
    FileEntry left = place.real == null ? null : FileEntry.at(place);
    if (left == null) throw new FileNotFoundException(aside + ": no such directory");
    if (left.fileId == fileId && left.mtimeMs == mtimeMs) {
      try {
        rename(incoming, live);
        return "null";
      } catch (FileAlreadyExistsException standing) {
        // Somebody has re-created live: the caller finds the old directory unchanged, and decides.
      }
    }
    return Json.write(new Listing.Found(place, left));
  }

  /** A FileContext creates its own client, so one is kept per file system. */
  private synchronized FileContext context(Path path) throws IOException {
    URI uri = path.getFileSystem(conf).getUri();
    if (!contexts.containsKey(uri)) contexts.put(uri, FileContext.getFileContext(uri, conf));
    return (FileContext) contexts.get(uri);
  }
}
