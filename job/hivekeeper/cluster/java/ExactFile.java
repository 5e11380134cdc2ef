package hivekeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.protocol.HdfsPathHandle;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.ipc.RpcNoSuchMethodException;

/**
 * Opens the file that was listed at a path and no other. Whoever may write to a directory can put another file there, also one that they may
 * rename but not read, and the listed one back.
 */
public class ExactFile {
  private static final int READ_BYTES = 65536;
  /** The file systems that do not answer for ids. */
  private static final Set<URI> WITHOUT_IDS = ConcurrentHashMap.newKeySet();

  private ExactFile() {}

  /**
   * Exactly the file with this id, or an InvalidPathHandleException. A NameNode answers for id and blocks at once (HDFS-7878, Hadoop 3.1);
   * one that cannot, and local files, are asked for the id after opening.
   */
  public static FSDataInputStream open(Configuration conf, String text, long fileId) throws IOException {
    Place place = Place.of(conf, text);
    place.requireReal();
    if (place.isHdfs() && !WITHOUT_IDS.contains(place.fs.getUri())) {
      try {
        Optional<Long> id = Optional.of(Long.valueOf(fileId));
        return place.hdfs().open(new HdfsPathHandle(place.real.toUri().getPath(), id, Optional.<Long>empty()), READ_BYTES);
      } catch (InvalidPathHandleException other) {
        if (FileEntry.at(place) == null) throw new FileNotFoundException(text + ": no such file");
        throw another(text);
      } catch (RemoteException error) {
        if (!(error.unwrapRemoteException() instanceof RpcNoSuchMethodException)) throw error;
        WITHOUT_IDS.add(place.fs.getUri());
      }
    }
    FSDataInputStream in = place.fs.open(place.real);
    FileEntry entry = FileEntry.at(place);
    if (entry != null && entry.fileId == fileId) return in;
    IOUtils.closeStream(in);
    throw another(text);
  }

  static void requireAt(Place place, String text, long fileId) throws IOException {
    FileEntry entry = FileEntry.at(place);
    if (entry == null) throw new FileNotFoundException(text + ": no such file");
    if (entry.fileId != fileId) throw another(text);
  }

  private static InvalidPathHandleException another(String text) {
    return new InvalidPathHandleException(text + ": another file is there");
  }

  /** The file system of a path, on which only the file with this id is opened; 0 for whatever file is there. */
  public static FileSystem system(Configuration conf, String text, long fileId) throws IOException {
    FileSystem fs = new Path(text).getFileSystem(conf);
    return fileId == 0 ? fs : new OfOne(fs, conf, fileId);
  }

  private static class OfOne extends FilterFileSystem {
    private final Configuration conf;
    private final long fileId;

    OfOne(FileSystem fs, Configuration conf, long fileId) {
      super(fs);
      this.conf = conf;
      this.fileId = fileId;
    }

    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
      return ExactFile.open(conf, path.toString(), fileId);
    }
  }
}
