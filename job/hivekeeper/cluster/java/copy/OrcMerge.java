package hivekeeper.copy;

import hivekeeper.OrcClaims;
import hivekeeper.OrcInput;
import hivekeeper.OrcMeaning;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcConf;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;
import org.apache.orc.RecordReader;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.orc.impl.MemoryManagerImpl;

/** The merge of ORC files. Those of an output must have equal types, user metadata, calendar and time zone. */
class OrcMerge extends FileMerge {
  private static final int LEAST_STRIDE = 1000;
  private static final int LEAST_OF_BATCH = 64;
  /** What it takes to begin a column in a stripe, in values: footers of stripes that are compressed have thousands in some bytes. */
  private static final long VALUES_OF_COLUMN = 128L;
  private static final long MOST_STRIDE_OF_BLOOMS = 1L << 20;
  /** Most of them have one false positive of a hundred. */
  private static final long BLOOM_BYTES_OF_ROW = 2L;

  private final Configuration conf;
  private final TaskMemory memory;
  private final AttemptFile file;
  private final CopyOptions options;
  private final boolean checksClaims;
  private OrcMeaning first;
  private String firstPath;
  private String identity;
  private boolean sameMeaning;
  private OrcColumn root;
  private List<OrcColumn> columns;
  private OrcOutput output;
  private Writer writer;

  /** `file` and `options` are null if only the digest is wanted. */
  OrcMerge(Configuration conf, TaskMemory memory, AttemptFile file, CopyOptions options, boolean checksClaims) {
    this.conf = new Configuration(conf);
    this.memory = memory;
    this.file = file;
    this.options = options;
    this.checksClaims = checksClaims;
  }

  void add(String path, FileSystem fs, long begin, long length, byte[] content) throws Exception {
    OrcSource source = OrcSource.open(conf, memory, path, fs, begin, length, content);
    try {
      source.requireRoom(memory);
      source.requireOneReading(work);
      begin(source);
      long before = digest.rows;
      copyStripes(source);
      long found = digest.rows - before;
      if (source.reader.getNumberOfRows() != found) {
        throw new IOException("its footer says " + source.reader.getNumberOfRows() + " rows, " + found + " were found");
      }
    } finally {
      source.close();
    }
  }

  private void begin(OrcSource source) throws Exception {
    String own = source.meaning.identity();
    if (own.equals(identity)) return;
    if (identity != null && file != null) {
      throw new IOException("its types, user metadata, calendar or time zone differ from those of " + firstPath);
    }
    sameMeaning = identity == null;
    identity = own;
    first = source.meaning;
    firstPath = source.path;
    root = new OrcColumn(source.schema, first.footer.getTypesList(), "", work);
    columns = root.all();
    WriterZone zone = new WriterZone(first.zone());
    for (OrcColumn column : columns) {
      OrcProto.Type.Kind kind = first.footer.getTypes(((OrcColumn) column).id).getKind();
      if (checksClaims) ((OrcColumn) column).range = new OrcRange(kind == OrcProto.Type.Kind.TIMESTAMP ? zone : null);
    }
    if (file != null) open(source);
  }

  private void open(OrcSource source) throws IOException {
    // How many rows a stripe may get before its size is looked at.
    conf.setLong(OrcConf.ROWS_BETWEEN_CHECKS.getAttribute(), source.newBatch().getMaxSize());
    // Without an index the library counts nothing, and writes statistics of no values: readers may skip such stripes.
    conf.setBoolean("orc.create.index", true);
    Set<String> blooms = bloomColumns(source);
    OrcFile.WriterOptions how = OrcFile.writerOptions(conf).setSchema(source.schema).version(OrcFile.Version.V_0_12);
    how.compress(CompressionKind.valueOf(options.codec.toUpperCase(Locale.ROOT))).stripeSize(options.rowGroupBytes);
    how.rowIndexStride(stride(source.reader.getRowIndexStride(), blooms.size()));
    how.bloomFilterColumns(blooms.isEmpty() ? null : String.join(",", blooms)).directEncodingColumns(null);
    how.useUTCTimestamp(true).setProlepticGregorian(source.reader.writerUsedProlepticGregorian());
    // The executor's memory is shared out already.
    how.memory(new MemoryManagerImpl(Long.MAX_VALUE)).fileSystem(file.fs);
    how.blockSize(file.create(how.getBlockSize()));
    output = new OrcOutput(new FSDataOutputStream(file, (FileSystem.Statistics) null), how, first, columns);
    writer = OrcFile.createWriter(file.path, how.physicalWriter(output));
  }

  /** How many rows an entry of the index has: as the source, but a Bloom filter is made for all of them before it has any. */
  private int stride(int said, int blooms) {
    int stride = said > 0 ? said : (Integer) OrcConf.ROW_INDEX_STRIDE.getDefaultValue();
    long most = options.waitingBytes / 8 / BLOOM_BYTES_OF_ROW / Math.max(1, blooms);
    if (blooms > 0) stride = (int) Math.min((long) stride, Math.min(most, MOST_STRIDE_OF_BLOOMS));
    return Math.max(stride, LEAST_STRIDE);
  }

  /** The columns that had bloom filters in the first stripe, by their names in the stored schema. */
  private static Set<String> bloomColumns(OrcSource source) {
    Set<String> found = new TreeSet<String>();
    if (source.meaning.stripes.isEmpty()) return found;
    WriterZone zone = new WriterZone(source.meaning.zone());
    OrcProto.StripeFooter stripe = (OrcProto.StripeFooter) source.meaning.stripes.get(0);
    for (int i = 0; i < stripe.getStreamsCount(); i++) {
      OrcProto.Stream stream = stripe.getStreams(i);
      // Those of timestamps hold the wall clock, which the library does not see here.
      boolean shifted = source.meaning.footer.getTypes(stream.getColumn()).getKind() == OrcProto.Type.Kind.TIMESTAMP && !zone.isUtc;
      if (stream.getKind().name().startsWith("BLOOM_FILTER") && !shifted) found.add(storedName(source.schema, stream.getColumn()));
    }
    return found;
  }

  private static String storedName(TypeDescription schema, int column) {
    return schema.findSubtype(column).getFullFieldName();
  }

  private void copyStripes(OrcSource source) throws IOException {
    OrcStripes stripes = source.stripes();
    RecordReader rows = null;
    try {
      rows = source.rows(stripes);
      copyStripes(source, rows);
    } catch (IOException failed) {
      // The library says only where it failed, and its cause why.
      if (failed.getCause() instanceof IOException) throw (IOException) failed.getCause();
      throw failed;
    } finally {
      try {
        if (rows != null) rows.close();
      } finally {
        // Where memory runs out before there are rows, the library does not close them.
        stripes.close();
      }
    }
  }

  private void copyStripes(OrcSource source, RecordReader rows) throws IOException {
    VectorizedRowBatch batch = source.newBatch();
    long[] hashes = new long[batch.getMaxSize()];
    int number = 0;
    for (Object stripe : source.reader.getStripes()) {
      work.takeValues(VALUES_OF_COLUMN * columns.size());
      for (OrcColumn column : columns) {
        if (checksClaims) ((OrcColumn) column).range.clear();
      }
      long left = ((StripeInformation) stripe).getNumberOfRows();
      while (left > 0 && rows.nextBatch(batch)) {
        copyBatch(batch, hashes);
        left -= batch.size;
      }
      if (left != 0) throw new IOException("a stripe has other rows than its footer says");
      if (checksClaims) checkClaims(source, number++);
    }
    if (rows.nextBatch(batch)) throw new IOException("it has more rows than its stripes");
  }

  private void copyBatch(VectorizedRowBatch batch, long[] hashes) throws IOException {
    requireNotKilled();
    // By what the file says of its texts a batch may have a single row; one costs as much as some values.
    work.takeValues(Math.max(batch.size, LEAST_OF_BATCH));
    Arrays.fill(hashes, 0, batch.size, RowDigest.START);
    root.foldRows(batch.cols, batch.size, hashes);
    digest.add(hashes, batch.size);
    if (writer == null) return;
    for (OrcColumn column : columns) ((OrcColumn) column).requireWritable();
    writer.addRowBatch(batch);
  }

  /** The statistics of a stripe, and the bounds of the whole file. */
  private void checkClaims(OrcSource source, int stripe) throws IOException {
    List<OrcProto.ColumnStatistics> ofFile = source.reader.getOrcProtoFileStatistics();
    for (OrcColumn each : columns) {
      OrcColumn column = (OrcColumn) each;
      String where = "column " + column.id + " in stripe " + stripe;
      OrcProto.ColumnStatistics said = ((OrcProto.StripeStatistics) source.claims.get(stripe)).getColStats(column.id);
      column.range.requireCount(said, where);
      column.range.requireInside(said, where);
      column.range.requireInside((OrcProto.ColumnStatistics) ofFile.get(column.id), where);
    }
  }

  void finish() throws Exception {
    if (writer != null) writer.close();
  }

  void abandon() {
    try {
      // Not the writer, which would complete the file.
      if (output != null) output.close();
    } catch (Exception left) {
      // The file is removed anyway.
    }
    if (file != null) file.abandon();
  }

  String identity() {
    return sameMeaning ? identity : "";
  }

  String writtenIdentity() throws Exception {
    long length = file.fs.getFileStatus(file.path).getLen();
    OrcInput written = OrcClaims.open(conf, file.fs, file.path, 0L, length, false);
    try {
      return new OrcMeaning(written, true).identity();
    } finally {
      written.close();
    }
  }
}
