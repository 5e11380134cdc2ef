package hivekeeper.concat;

import hivekeeper.ListedFile;
import hivekeeper.ParquetTail;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;

/** `ConcatEnds` of Parquet. */
public class ParquetEnds extends ConcatEnds {
  private static final byte[] MAGIC = {'P', 'A', 'R', '1'};

  public ParquetEnds(Configuration conf) {
    super(conf);
  }

  byte[] magic() {
    return MAGIC;
  }

  boolean endsWith(byte[] last) {
    return Arrays.equals(Arrays.copyOfRange(last, 1, last.length), MAGIC);
  }

  byte[] end(FSDataInputStream in, long begin, long length) throws IOException {
    return JoinedParquetFooters.end(ParquetTail.footer(in, begin, length));
  }

  Object footer(ListedFile file) throws IOException {
    return ParquetTail.footer(file.system(conf), file.place(), file.begin, file.length);
  }

  JoinedFooters noFooters() {
    return new JoinedParquetFooters();
  }
}
