package hivekeeper.copy;

import hivekeeper.ParquetTail;
import hivekeeper.RawFooter;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.schema.MessageType;

/**
 * One pass over some files: the digest of all rows, and one output with these rows unless `output` is null.
 *
 * The files of an output must have equal raw schema, key-value metadata and created_by.
 */
class ParquetMerge extends FileMerge {
  private static final int FIRST_ROWS = 64;
  private static final int MOST_ROWS = 4096;
  private static final int ROWS_PER_CHECK = 100;
  private static final long BATCH_BYTES = 1L << 20;

  /** The columns found to need a writer that keeps their NaNs; if it grows in a pass, that pass has no output. */
  private final Set<ColumnDescriptor> withOddNaN = new HashSet<ColumnDescriptor>();
  private final Configuration conf;
  private final TaskMemory memory;
  private final HeldTailOutput output;
  private final CopyOptions options;
  private final boolean checksClaims;
  private final long[] hashes = new long[MOST_ROWS];
  private boolean needsAgain;
  private ParquetSource first;
  private boolean sameMeaning;
  private MergedFile merged;
  private MessageType schema;
  private ColumnCopier[] columns;

  /** `file` and `options` are null if only the digest is wanted. With `checksClaims` the footers' bounds and null counts are compared. */
  ParquetMerge(Configuration conf, TaskMemory memory, AttemptFile file, CopyOptions options, boolean checksClaims) throws IOException {
    this.conf = conf;
    this.memory = memory;
    this.output = file == null ? null : new HeldTailOutput(file);
    this.options = options;
    this.checksClaims = checksClaims;
  }

  void add(String path, FileSystem fs, long begin, long length, byte[] content) throws Exception {
    ParquetSource source = ParquetSource.open(conf, path, fs, begin, length, content);
    try {
      add(source);
    } finally {
      source.close();
    }
  }

  /** The second pass writes odd NaNs as the first one found them. */
  FileMerge again(AttemptFile file) throws IOException {
    if (!needsAgain) return null;
    ParquetMerge next = new ParquetMerge(conf, memory, file, options, checksClaims);
    next.withOddNaN.addAll(withOddNaN);
    return next;
  }

  private void add(ParquetSource source) throws Exception {
    begin(source);
    long before = digest.rows;
    long declared = 0;
    String writer = source.reader.getFooter().getFileMetaData().getCreatedBy();
    for (BlockMetaData block : source.reader.getRowGroups()) {
      declared += ((BlockMetaData) block).getRowCount();
      work.takeValues(((BlockMetaData) block).getRowCount());
      if (((BlockMetaData) block).getRowCount() == 0) {
        skipEmpty(source, (BlockMetaData) block);
        continue;
      }
      SourcePages pages = source.nextPages((BlockMetaData) block, memory, work);
      ColumnReadStoreImpl store = new ColumnReadStoreImpl(pages, new SchemaWalk(schema), schema, writer);
      Map<ColumnPath, ChunkClaims> claims = claimsOf((BlockMetaData) block);
      for (ColumnCopier column : columns) {
        ((ColumnCopier) column).open(store, (ChunkClaims) claims.get(ColumnPath.get(((ColumnCopier) column).column.getPath())));
      }
      if (merged != null) merged.beginWith(pages, work);
      copyGroup(pages.getRowCount(), rowsOf((BlockMetaData) block, FIRST_ROWS));
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
    // Before anything is made for each: a file without rows may have a million.
    memory.openPages(found.size());
    columns = new ColumnCopier[found.size()];
    for (int i = 0; i < columns.length; i++) columns[i] = new ColumnCopier((ColumnDescriptor) found.get(i), schema, work);
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

  /** How many bytes a row takes is known only when it was read: a dictionary may hold few values of any length. */
  private void copyGroup(long rows, int firstRows) throws IOException {
    int batch = firstRows;
    for (long left = rows; left > 0; ) {
      int count = (int) Math.min(left, (long) batch);
      left -= count;
      long each = Math.max(1L, copyBatch(count) / count);
      batch = (int) Math.max(1L, Math.min(Math.min(2L * batch, MOST_ROWS), BATCH_BYTES / each));
    }
    for (ColumnCopier column : columns) ((ColumnCopier) column).requireEnd();
  }

  /** Returns the bytes of its values. */
  private long copyBatch(int rows) throws IOException {
    requireNotKilled();
    long bytes = 0;
    Arrays.fill(hashes, 0, rows, RowDigest.START);
    boolean foundOddNaN = false;
    for (int i = 0; i < columns.length; i++) {
      bytes += columns[i].copy(rows, merged == null ? null : merged.column(i), hashes, merged);
      if (columns[i].hasOddNaN && output != null) foundOddNaN = withOddNaN.add(columns[i].column) || foundOddNaN;
    }
    digest.add(hashes, rows);
    if (foundOddNaN) {
      // This output cannot be right any more. The pass goes on without one: the next must know all such columns.
      needsAgain = true;
      abandon();
    }
    if (merged != null) merged.endRows(rows);
    return bytes;
  }

  void finish() throws Exception {
    if (merged != null) merged.finish();
  }

  void abandon() {
    if (merged != null) merged.abandon();
    else if (output != null) output.file.abandon();
    merged = null;
  }

  String identity() throws Exception {
    return sameMeaning ? first.footer.raw.identity() : "";
  }

  String writtenIdentity() throws Exception {
    return new RawFooter(ParquetTail.footer(output.file.fs, output.file.path, output.length())).identity();
  }
}
