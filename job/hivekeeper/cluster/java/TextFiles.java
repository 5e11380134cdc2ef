package hivekeeper;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.io.IOUtils;

/** Reads and writes small text files in UTF-8. */
public class TextFiles {
  private static final int READ_BYTES = 65536;
  private static final int WRITE_BYTES = 4096;

  private final Configuration conf;

  public TextFiles(Configuration conf) {
    this.conf = conf;
  }

  public String read(String text) throws IOException {
    Path path = new Path(text);
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    IOUtils.copyBytes(in, bytes, READ_BYTES, true);
    return bytes.toString("UTF-8");
  }

  /** {path: text}; a missing file is left out. */
  public String readAll(String paths) throws Exception {
    return Json.write(WorkerPool.mapFound(Json.readStrings(paths), new WorkerPool.Task() {
      public Object of(Object path) throws Exception {
        try {
          return read((String) path);
        } catch (FileNotFoundException absent) {
          return null;
        }
      }
    }));
  }

  /** Never over a file; when it returns, the content is on the disks of DataNodes. */
  public void writeNew(String text, String content) throws IOException {
    Path path = new Path(text);
    Place parent = Place.of(conf, path.getParent().toString());
    parent.requireReal();
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
   * Never over a file and never with parents: a run whose directory was taken over must not re-create it. Replicated even if
   * the directory is erasure coded: an erasure coded file can neither be synced nor appended to.
   */
  static FSDataOutputStream create(FileSystem fs, Path path) throws IOException {
    FsPermission permission = FsPermission.getFileDefault();
    short replication = fs.getDefaultReplication(path);
    long blockSize = fs.getDefaultBlockSize(path);
    if (!(fs instanceof DistributedFileSystem)) {
      return fs.createNonRecursive(path, permission, false, WRITE_BYTES, replication, blockSize, null);
    }
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.CREATE, CreateFlag.SHOULD_REPLICATE);
    return ((DistributedFileSystem) fs).createNonRecursive(path, permission, flags, WRITE_BYTES, replication, blockSize, null);
  }
}
