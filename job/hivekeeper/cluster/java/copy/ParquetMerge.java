package hivekeeper.copy;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.TaskContext;

/**
 * One pass over some files: the digest of all rows, and one output with these rows unless `output` is null.
 *
 * The files of an output must have equal raw schema, key-value metadata and created_by.
 */
class ParquetMerge {
  private static final int MOST_ROWS = 4096;
  private static final int ROWS_PER_CHECK = 100;
  private static final long BATCH_BYTES = 1L << 20;

  final RowDigest digest = new RowDigest();
  /** The columns found to need a writer that keeps their NaNs; if it grows in a pass, that pass has no output. */
  final Set<ColumnDescriptor> withOddNaN = new HashSet<ColumnDescriptor>();
  private final Configuration conf;
  private final TaskMemory memory;
  private final HeldTailOutput output;
  private final CopyOptions options;
  private final boolean checksClaims;
  private final long[] hashes = new long[MOST_ROWS];
  private ParquetSource first;
  private boolean sameMeaning;
  private MergedFile merged;
  private MessageType schema;
  private ColumnCopier[] columns;

  /** Only the digest; with `checksClaims`, bounds and null counts in the footers are compared with the values, too. */
  ParquetMerge(Configuration conf, TaskMemory memory, boolean checksClaims) {
    this(conf, memory, null, null, new HashSet<ColumnDescriptor>(), checksClaims);
  }

  /** A copy. */
  ParquetMerge(Configuration conf, TaskMemory memory, HeldTailOutput output, CopyOptions options, Set<ColumnDescriptor> withOddNaN) {
    this(conf, memory, output, options, withOddNaN, false);
  }

  private ParquetMerge(Configuration conf, TaskMemory memory, HeldTailOutput output, CopyOptions options,
      Set<ColumnDescriptor> withOddNaN, boolean checksClaims) {
    this.checksClaims = checksClaims;
    this.conf = conf;
    this.memory = memory;
    this.output = output;
    this.options = options;
    this.withOddNaN.addAll(withOddNaN);
  }

  void add(ParquetSource source) throws Exception {
    begin(source);
    long before = digest.rows;
    long declared = 0;
    String writer = source.reader.getFooter().getFileMetaData().getCreatedBy();
    for (BlockMetaData block : source.reader.getRowGroups()) {
      declared += ((BlockMetaData) block).getRowCount();
      if (((BlockMetaData) block).getRowCount() == 0) {
        skipEmpty(source, (BlockMetaData) block);
        continue;
      }
      source.limitPages((BlockMetaData) block, memory.pageBytes);
      PageReadStore pages = source.reader.readNextRowGroup();
      ColumnReadStoreImpl store = new ColumnReadStoreImpl(new SourcePages(pages), new SchemaWalk(schema), schema, writer);
      Map<ColumnPath, ChunkClaims> claims = claimsOf((BlockMetaData) block);
      for (ColumnCopier column : columns) {
        ((ColumnCopier) column).open(store, (ChunkClaims) claims.get(ColumnPath.get(((ColumnCopier) column).column.getPath())));
      }
      copyGroup(pages.getRowCount(), rowsOf((BlockMetaData) block, MOST_ROWS));
    }
    long found = digest.rows - before;
    long said = source.footer.metadata.getNum_rows();
    if (said != declared || said != found) {
      throw new IOException("its footer says " + said + " rows, its row groups say " + declared + ", " + found + " were found");
    }
  }

  private void begin(ParquetSource source) throws IOException {
    if (first != null && first.footer.raw.meansLike(source.footer.raw)) return;
    if (first != null && output != null) {
      throw new IOException("its schema, key-value metadata or created_by differ from those of " + first.path);
    }
    sameMeaning = first == null;
    first = source;
    schema = source.reader.getFooter().getFileMetaData().getSchema();
    List<ColumnDescriptor> found = schema.getColumns();
    columns = new ColumnCopier[found.size()];
    for (int i = 0; i < columns.length; i++) columns[i] = new ColumnCopier((ColumnDescriptor) found.get(i), schema);
    if (output == null) return;
    int rows = ROWS_PER_CHECK;
    for (BlockMetaData block : source.reader.getRowGroups()) rows = Math.min(rows, rowsOf((BlockMetaData) block, ROWS_PER_CHECK));
    merged = new MergedFile(conf, output, source, options, withOddNaN, rows);
  }

  /** parquet-mr 1.12 refuses to read a row group without rows. */
  private static void skipEmpty(ParquetSource source, BlockMetaData block) throws IOException {
    for (ColumnChunkMetaData chunk : block.getColumns()) {
      if (((ColumnChunkMetaData) chunk).getValueCount() != 0) throw new IOException("a row group without rows has values");
    }
    source.reader.skipNextRowGroup();
  }

  /** How many rows take about as much as one page: the sizes of pages and row groups are looked at between batches only. */
  private static int rowsOf(BlockMetaData block, int most) {
    if (block.getRowCount() == 0) return most;
    long bytes = Math.max(block.getTotalByteSize(), block.getCompressedSize());
    return (int) Math.max(1L, Math.min((long) most, BATCH_BYTES / Math.max(1L, bytes / block.getRowCount())));
  }

  private Map<ColumnPath, ChunkClaims> claimsOf(BlockMetaData block) {
    Map<ColumnPath, ChunkClaims> found = new HashMap<ColumnPath, ChunkClaims>();
    for (ColumnChunkMetaData chunk : block.getColumns()) {
      if (checksClaims) found.put(((ColumnChunkMetaData) chunk).getPath(), new ChunkClaims((ColumnChunkMetaData) chunk));
    }
    return found;
  }

  private void copyGroup(long rows, int mostRows) throws IOException {
    for (long left = rows; left > 0; left -= mostRows) copyBatch((int) Math.min(left, (long) mostRows));
    for (ColumnCopier column : columns) ((ColumnCopier) column).requireEnd();
  }

  private void copyBatch(int rows) throws IOException {
    if (TaskContext.get() != null && TaskContext.get().isInterrupted()) throw new InterruptedIOException("the task was killed");
    Arrays.fill(hashes, 0, rows, RowDigest.START);
    boolean foundOddNaN = false;
    for (int i = 0; i < columns.length; i++) {
      columns[i].copy(rows, merged == null ? null : merged.column(i), hashes);
      if (columns[i].hasOddNaN && output != null) foundOddNaN = withOddNaN.add(columns[i].column) || foundOddNaN;
    }
    digest.add(hashes, rows);
    if (foundOddNaN) abandon();
    if (merged != null) merged.endRows(rows);
  }

  /** Complete the output. */
  void finish() throws Exception {
    if (merged != null) merged.finish();
  }

  /** Remove the output. */
  void abandon() {
    if (merged != null) merged.abandon();
    else if (output != null) output.abandon();
    merged = null;
  }

  /** Of the files, if all have the same; else "". */
  String identity() throws Exception {
    return sameMeaning ? first.footer.raw.identity() : "";
  }
}
