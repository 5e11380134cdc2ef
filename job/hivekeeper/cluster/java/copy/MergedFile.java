package hivekeeper.copy;

import hivekeeper.DecodedFooter;
import hivekeeper.ParquetTail;
import hivekeeper.RawFooter;
import hivekeeper.WorkLimit;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.bytes.HeapByteBufferAllocator;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnWriteStore;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.RowGroup;
import org.apache.parquet.hadoop.CodecFactory;
import org.apache.parquet.hadoop.ColumnChunkPageWriteStore;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.schema.MessageType;

/**
 * An output: its row groups written by the library, its footer with the version, schema, key-value metadata and created_by of a source.
 *
 * Pages are of version 1, in plain or dictionary encoding, which every reader knows. Bounds that are not sound are left out.
 */
class MergedFile {
  private static final int MOST_PADDING = 8 << 20;
  /** Room for the dictionaries of many sources. A row group ends by the size of its values without a dictionary, so it cannot grow much. */
  private static final int DICTIONARY_BYTES = 16 << 20;

  private final HeldTailOutput output;
  private final DecodedFooter source;
  private final MessageType schema;
  private final List<ColumnDescriptor> columns;
  private final ParquetProperties properties;
  private final CodecFactory codecs;
  private final CompressionCodecName codec;
  private final long rowGroupBytes;
  private final long waitingBytes;
  /** Of the filters of a row group, however few rows it gets. */
  private final long bloomBytes;
  private final ParquetFileWriter writer;
  private final Categories categories;
  private ColumnChunkPageWriteStore pages;
  private ColumnWriteStore store;
  private ColumnWriter[] writers;
  private long rows;
  private long endAtBytes;

  /** `rowsPerCheck` is how many rows a page may get before its size is looked at. */
  MergedFile(Configuration conf, HeldTailOutput output, ParquetSource source, CopyOptions options,
      Set<ColumnDescriptor> withOddNaN, int rowsPerCheck) throws IOException {
    this.output = output;
    this.source = source.footer;
    schema = source.reader.getFooter().getFileMetaData().getSchema();
    columns = schema.getColumns();
    codec = options.codec.equals("none") ? CompressionCodecName.UNCOMPRESSED : CompressionCodecName.valueOf(options.codec.toUpperCase(Locale.ROOT));
    rowGroupBytes = options.rowGroupBytes;
    waitingBytes = options.waitingBytes;
    ParquetProperties.Builder builder = ParquetProperties.builder().withAllocator(new HeapByteBufferAllocator());
    builder.withWriterVersion(ParquetProperties.WriterVersion.PARQUET_1_0).withMinRowCountForPageSizeCheck(rowsPerCheck);
    // The library's guess of when a page is full is wrong where it gives up a dictionary of long values.
    builder.estimateRowCountForPageSizeCheck(false).withDictionaryPageSize(DICTIONARY_BYTES);
    categories = new Categories(schema, source.reader.getFooter().getFileMetaData().getKeyValueMetaData());
    builder.withValuesWriterFactory(new CopyWriters(withOddNaN, categories));
    bloomBytes = CopyBlooms.enable(builder, schema, options.blooms, options.waitingBytes);
    properties = builder.build();
    codecs = new CodecFactory(conf, properties.getPageSizeThreshold());
    writer = new ParquetFileWriter(output, schema, ParquetFileWriter.Mode.CREATE, rowGroupBytes, MOST_PADDING,
        properties.getColumnIndexTruncateLength(), properties.getStatisticsTruncateLength(), properties.getPageWriteChecksumEnabled());
    writer.start();
    openGroup();
  }

  /** The next rows come from these pages, of which the columns' readers are open. */
  void beginWith(SourcePages pages, WorkLimit work) throws IOException {
    if (!categories.fit(pages)) {
      // A source of a kilobyte can end a row group after each row.
      work.takeBytes(bloomBytes);
      closeGroup();
      categories.forget();
      openGroup();
    }
    categories.beginWith(pages);
  }

  /** The writer of a column, valid until the next `endRows`. */
  ColumnWriter column(int index) {
    return writers[index];
  }

  /** Fails if the values of a batch take too much: a few bytes of a source can stand for many long values. */
  void requireRoom() {
    long waiting = store.getAllocatedSize();
    if (waiting > waitingBytes) throw new ShareExceeded("a batch of rows", waiting, waitingBytes);
  }

  /** Every column got the entries of this many more rows. */
  void endRows(int count) throws IOException {
    rows += count;
    for (int i = 0; i < count; i++) store.endRecord();
    if (store.getBufferedSize() < endAtBytes) return;
    closeGroup();
    openGroup();
  }

  /** Complete the file. */
  void finish() throws IOException {
    closeGroup();
    output.hold();
    writer.end(new HashMap<String, String>());
    codecs.release();
    output.finish(ending(output.held()));
  }

  /** Remove the file. */
  void abandon() {
    store.close();
    codecs.release();
    output.file.abandon();
  }

  private void openGroup() throws IOException {
    pages = new ColumnChunkPageWriteStore(BoundedCodecs.compressor(codecs, codec), schema, properties.getAllocator(),
        properties.getColumnIndexTruncateLength(), properties.getPageWriteChecksumEnabled());
    store = properties.newColumnWriteStore(schema, pages, new CopyBlooms(pages));
    writers = new ColumnWriter[columns.size()];
    for (int i = 0; i < writers.length; i++) writers[i] = store.getColumnWriter((ColumnDescriptor) columns.get(i));
    rows = 0;
    endAtBytes = Math.min(writer.getNextRowGroupSize(), rowGroupBytes);
  }

  private void closeGroup() throws IOException {
    if (rows > 0) {
      writer.startBlock(rows);
      store.flush();
      pages.flushToFileWriter(writer);
      writer.endBlock();
    }
    store.close();
  }

  /** Offsets in the library's tail stay valid, because only the footer itself, which comes last, changes its length. */
  private byte[] ending(byte[] tail) throws IOException {
    int size = ParquetTail.footerBytes(tail, output.length());
    int start = tail.length - ParquetTail.ENDING - size;
    byte[] own = withSoundBounds(Arrays.copyOfRange(tail, start, start + size));
    byte[] footer = new RawFooter(own).withMeaningOf(source.raw);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(tail, 0, start);
    out.write(footer, 0, footer.length);
    out.write(ParquetTail.ending(footer.length), 0, ParquetTail.ENDING);
    return out.toByteArray();
  }

  /**
   * Nobody here knows how values of an unknown annotation are ordered, and readers do not agree on columns with two orders: both are among
   * the source's unordered ones. A bound that is NaN says nothing.
   */
  private byte[] withSoundBounds(byte[] footer) throws IOException {
    FileMetaData metadata = new DecodedFooter(footer).metadata;
    DecodedFooter.dropBounds(metadata, source.unordered);
    for (RowGroup group : metadata.getRow_groups()) {
      for (int i = 0; i < columns.size(); i++) {
        ColumnChunk chunk = (ColumnChunk) ((RowGroup) group).getColumns().get(i);
        if (hasNaN(chunk) || isHalf((ColumnDescriptor) columns.get(i))) DecodedFooter.dropBounds(chunk);
      }
    }
    return DecodedFooter.bytes(metadata);
  }

  /** The library (parquet-mr from 1.14 on) writes NaN into its bounds, and one zero instead of both. */
  private static boolean isHalf(ColumnDescriptor column) {
    return "FLOAT16".equals(String.valueOf(column.getPrimitiveType().getLogicalTypeAnnotation()));
  }

  private static boolean hasNaN(ColumnChunk chunk) {
    String type = chunk.getMeta_data().getType().name();
    if (!type.equals("DOUBLE") && !type.equals("FLOAT") || !chunk.getMeta_data().isSetStatistics()) return false;
    return isNaN(chunk.getMeta_data().getStatistics().getMin_value()) || isNaN(chunk.getMeta_data().getStatistics().getMax_value());
  }

  private static boolean isNaN(byte[] bound) {
    if (bound == null) return false;
    ByteBuffer bits = ByteBuffer.wrap(bound).order(ByteOrder.LITTLE_ENDIAN);
    return bound.length == 8 ? Double.isNaN(bits.getDouble()) : Float.isNaN(bits.getFloat());
  }
}
