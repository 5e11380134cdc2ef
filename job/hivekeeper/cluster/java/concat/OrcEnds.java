package hivekeeper.concat;

import hivekeeper.ListedFile;
import hivekeeper.OrcClaims;
import hivekeeper.OrcInput;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;

/** `ConcatEnds` of ORC. */
public class OrcEnds extends ConcatEnds {
  private static final byte[] MAGIC = {'O', 'R', 'C'};

  public OrcEnds(Configuration conf) {
    super(conf);
  }

  byte[] magic() {
    return MAGIC;
  }

  /** The magic is the last field of the postscript, behind which is its length. */
  boolean endsWith(byte[] last) {
    return Arrays.equals(Arrays.copyOf(last, MAGIC.length), MAGIC);
  }

  byte[] end(FSDataInputStream in, long begin, long length) throws IOException {
    return OrcClaims.end(in, begin, length);
  }

  Object footer(ListedFile file) throws Exception {
    OrcInput input = OrcClaims.open(conf, file, true);
    try {
      return new JoinedOrcFooters.Tail(input.reader.getFileTail(), input.reader.getOrcProtoStripeStatistics());
    } finally {
      input.close();
    }
  }

  JoinedFooters noFooters() {
    return new JoinedOrcFooters();
  }
}
