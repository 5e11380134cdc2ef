package hivekeeper.copy;

import hivekeeper.WorkLimit;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.parquet.bytes.ByteBufferInputStream;
import org.apache.parquet.bytes.BytesInput;
import org.apache.parquet.bytes.BytesUtils;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.Dictionary;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.EncodingStats;
import org.apache.parquet.column.ValuesType;
import org.apache.parquet.column.page.DataPage;
import org.apache.parquet.column.page.DataPageV1;
import org.apache.parquet.column.page.DataPageV2;
import org.apache.parquet.column.page.DictionaryPage;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.page.PageReader;
import org.apache.parquet.column.values.ValuesReader;
import org.apache.parquet.column.values.rle.RunLengthBitPackingHybridDecoder;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

/**
 * The pages of a row group. The memory for a page and for what its decoder makes of it is taken before either, and given back when the
 * column's next page is asked for.
 *
 * A page lies in one piece, because the library's streams over several allocate whatever length a value claims.
 */
class SourcePages implements PageReadStore {
  /** What it takes to look for a text in a dictionary, in values that are read. */
  private static final long LOOKS_OF_TEXT = 4L;

  private final PageReadStore pages;
  private final BoundedCodecs codecs;
  private final OpenPages open;
  private final WorkLimit work;
  private final BlockMetaData block;
  private final Map<ColumnDescriptor, DictionaryPage> dictionaries = new HashMap<ColumnDescriptor, DictionaryPage>();

  /** Of this row group. Values that no row has count in `work`. */
  SourcePages(PageReadStore pages, BoundedCodecs codecs, OpenPages open, WorkLimit work, BlockMetaData block) {
    this.pages = pages;
    this.codecs = codecs;
    this.open = open;
    this.work = work;
    this.block = block;
  }

  public long getRowCount() {
    return pages.getRowCount();
  }

  public PageReader getPageReader(ColumnDescriptor column) {
    return new ColumnPages(column, pages.getPageReader(column));
  }

  /** Of a column of texts whose reader is open; null if it has none. */
  Dictionary dictionary(ColumnDescriptor column) {
    DictionaryPage page = (DictionaryPage) dictionaries.get(column);
    // Each is looked for in the copy's dictionary.
    if (page != null) work.takeValues(LOOKS_OF_TEXT * page.getDictionarySize());
    try {
      return page == null ? null : page.getEncoding().initDictionary(column, page);
    } catch (IOException broken) {
      throw new IllegalStateException("a dictionary cannot be read: " + broken.getMessage(), broken);
    }
  }

  /** Whether all values of a column are in its dictionary, and the footer says so. */
  boolean areInDictionary(ColumnDescriptor column) {
    for (ColumnChunkMetaData each : block.getColumns()) {
      ColumnChunkMetaData chunk = (ColumnChunkMetaData) each;
      if (!Arrays.equals(chunk.getPath().toArray(), column.getPath())) continue;
      EncodingStats said = chunk.getEncodingStats();
      return said != null && said.hasDictionaryPages() && !said.hasNonDictionaryEncodedPages();
    }
    throw new IllegalStateException("no column " + String.join(".", column.getPath()));
  }

  private class ColumnPages implements PageReader {
    /** An object with its place in an array, or a number. */
    private static final long OBJECT_BYTES = 48L;
    private static final long NUMBER_BYTES = 8L;

    private final ColumnDescriptor column;
    private final PageReader reader;
    private final String what;
    private long held;
    private long seen;

    ColumnPages(ColumnDescriptor column, PageReader reader) {
      this.column = column;
      this.reader = reader;
      what = "a page of the column " + String.join(".", column.getPath());
    }

    public long getTotalValueCount() {
      return reader.getTotalValueCount();
    }

    public DictionaryPage readDictionaryPage() {
      codecs.room(open.left());
      DictionaryPage page = reader.readDictionaryPage();
      if (page == null) return page;
      int size = page.getDictionarySize();
      int bytes = page.getUncompressedSize();
      if (size < 0 || size > bytes) throw new IllegalStateException("a dictionary of " + bytes + " bytes claims " + size + " values");
      // Also if no row has them: empty texts take four bytes, of which Zstandard packs thirty thousand into one.
      work.takeValues(size);
      PrimitiveTypeName type = column.getPrimitiveType().getPrimitiveTypeName();
      boolean number = type == PrimitiveTypeName.INT32 || type == PrimitiveTypeName.INT64
          || type == PrimitiveTypeName.FLOAT || type == PrimitiveTypeName.DOUBLE;
      open.take(page.getBytes().size() + size * (number ? NUMBER_BYTES : OBJECT_BYTES), what);
      return kept(page);
    }

    private DictionaryPage kept(DictionaryPage page) {
      if (column.getPrimitiveType().getPrimitiveTypeName() != PrimitiveTypeName.BINARY) return page;
      try {
        // Its bytes may be a stream, which is read once.
        ByteBuffer bytes = page.getBytes().toByteBuffer();
        new EncodedCounts(page.getDictionarySize(), bytes.remaining(), open, work, what).walkTexts(asStream(bytes));
        DictionaryPage again = new DictionaryPage(asInput(bytes), page.getUncompressedSize(), page.getDictionarySize(), page.getEncoding());
        dictionaries.put(column, again);
        return again;
      } catch (IOException broken) {
        throw new IllegalStateException("a dictionary cannot be read: " + broken.getMessage(), broken);
      }
    }

    public DataPage readPage() {
      open.giveBack(held);
      held = 0;
      codecs.room(open.left());
      DataPage page = reader.readPage();
      // The library reads one all the same: a boolean is then false, and the column's last value is lost.
      if (page != null && page.getValueCount() == 0) throw new IllegalStateException(what + " has no values");
      try {
        if (page instanceof DataPageV1) return checked((DataPageV1) page);
        return page == null ? null : checked((DataPageV2) page);
      } catch (IOException broken) {
        throw new IllegalStateException(what + " cannot be read: " + broken.getMessage(), broken);
      }
    }

    private DataPage checked(DataPageV1 page) throws IOException {
      ByteBuffer bytes = inOnePiece(page.getBytes());
      EncodedCounts counts = counts(page);
      ByteBufferInputStream in = asStream(bytes);
      counts.walkLevels(page.getRlEncoding(), column.getMaxRepetitionLevel(), in);
      long start = in.position();
      counts.walkLevels(page.getDlEncoding(), column.getMaxDefinitionLevel(), in);
      walkValues(counts, page.getValueEncoding(), in);
      if (counts.isCut()) counts.requireWhole(present(page, bytes, start));
      held += counts.taken();
      return new DataPageV1(asInput(bytes), page.getValueCount(), page.getUncompressedSize(), page.getStatistics(),
          page.getRlEncoding(), page.getDlEncoding(), page.getValueEncoding());
    }

    private DataPage checked(DataPageV2 page) throws IOException {
      ByteBuffer repetitions = inOnePiece(page.getRepetitionLevels());
      ByteBuffer definitions = inOnePiece(page.getDefinitionLevels());
      ByteBuffer bytes = inOnePiece(page.getData());
      EncodedCounts counts = counts(page);
      counts.walkBareLevels(column.getMaxRepetitionLevel(), asStream(repetitions));
      counts.walkBareLevels(column.getMaxDefinitionLevel(), asStream(definitions));
      walkValues(counts, page.getDataEncoding(), asStream(bytes));
      if (counts.isCut()) counts.requireWhole(present(page.getValueCount(), definitions));
      held += counts.taken();
      return DataPageV2.uncompressed(page.getRowCount(), page.getNullCount(), page.getValueCount(), asInput(repetitions),
          asInput(definitions), page.getDataEncoding(), asInput(bytes), page.getStatistics());
    }

    private void walkValues(EncodedCounts counts, Encoding encoding, ByteBufferInputStream in) throws IOException {
      PrimitiveTypeName type = column.getPrimitiveType().getPrimitiveTypeName();
      if (encoding == Encoding.PLAIN && type == PrimitiveTypeName.BOOLEAN) counts.walkBooleans(in);
      else if (encoding == Encoding.PLAIN && type == PrimitiveTypeName.BINARY) counts.walkTexts(in);
      else counts.walkValues(encoding, in);
    }

    /** How many values are not NULL, by the levels of a page of version 1 that begin at `start`. */
    private long present(DataPageV1 page, ByteBuffer bytes, long start) throws IOException {
      if (column.getMaxDefinitionLevel() == 0) return page.getValueCount();
      ByteBufferInputStream in = asStream(bytes);
      in.skipFully(start);
      ValuesReader levels = page.getDlEncoding().getValuesReader(column, ValuesType.DEFINITION_LEVEL);
      levels.initFromPage(page.getValueCount(), in);
      long count = 0;
      for (int i = 0; i < page.getValueCount(); i++) count += levels.readInteger() == column.getMaxDefinitionLevel() ? 1 : 0;
      return count;
    }

    /** The same of a page of version 2. */
    private long present(int values, ByteBuffer definitions) throws IOException {
      int most = column.getMaxDefinitionLevel();
      if (most == 0) return values;
      RunLengthBitPackingHybridDecoder levels =
          new RunLengthBitPackingHybridDecoder(BytesUtils.getWidthFromMaxInt(most), asStream(definitions));
      long count = 0;
      for (int i = 0; i < values; i++) count += levels.readInt() == most ? 1 : 0;
      return count;
    }

    /** No value takes more bytes than all pages of the column so far: a value may continue one of the page before (PARQUET-246). */
    private EncodedCounts counts(DataPage page) {
      seen += held;
      return new EncodedCounts(page.getValueCount(), seen, open, work, what);
    }

    private ByteBuffer inOnePiece(BytesInput bytes) throws IOException {
      open.take(bytes.size(), what);
      held += bytes.size();
      return bytes.toByteBuffer();
    }

    private ByteBufferInputStream asStream(ByteBuffer bytes) {
      return ByteBufferInputStream.wrap(new ByteBuffer[] {bytes});
    }

    private BytesInput asInput(ByteBuffer bytes) {
      return BytesInput.from(new ByteBuffer[] {bytes});
    }
  }
}
