package hivekeeper.copy;

import hivekeeper.OrcClaims;
import hivekeeper.OrcInput;
import hivekeeper.OrcLayout;
import hivekeeper.OrcMeaning;
import hivekeeper.PartFileSystem;
import hivekeeper.WorkLimit;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.BufferChunk;
import org.apache.orc.impl.OrcTail;

/**
 * An ORC file whose values are read as they are stored: the library is told other types for it that are stored in the same way.
 *
 * A string instead of char and varchar, which the library trims, pads and cuts; a timestamp with local time zone instead of a timestamp,
 * which it converts between zones. Names do not matter to values, so columns have plain ones.
 */
class OrcSource {
  private static final int MOST_ROWS = 1024;
  private static final long BATCH_BYTES = 1L << 20;

  final String path;
  final OrcMeaning meaning;
  /** With the stored types. */
  final TypeDescription schema;
  final Reader reader;
  /** What the file says about each stripe, by column. */
  final List<OrcProto.StripeStatistics> claims;
  private final FileSystem fs;

  private OrcSource(FileSystem fs, String path, OrcMeaning meaning, Reader reader, List<OrcProto.StripeStatistics> claims) {
    this.fs = fs;
    this.path = path;
    this.meaning = meaning;
    this.reader = reader;
    this.claims = claims;
    schema = reader.getSchema();
  }

  /** `begin` is 0, or where the file lies in another one. `content` is null for a file that is streamed. Fails for what cannot be decoded. */
  static OrcSource open(Configuration conf, TaskMemory memory, String path, FileSystem whole, long begin, long length, byte[] content)
      throws Exception {
    Path place = new Path(path);
    FileSystem fs = content != null ? new ContentFileSystem(whole, content) : PartFileSystem.of(whole, begin, length);
    requireRoom(OrcClaims.postscript(fs, place, length), memory);
    OrcInput input = OrcClaims.open(conf, fs, place, 0L, length, true);
    try {
      Reader declared = input.reader;
      OrcMeaning meaning = new OrcMeaning(input, true);
      if (!meaning.undecodable().isEmpty()) throw new IOException("it has " + meaning.undecodable().get(0) + ", which cannot be copied");
      OrcTail tail = new OrcTail(asStored(declared.getFileTail()), (BufferChunk) null, -1L);
      OrcFile.ReaderOptions options = OrcFile.readerOptions(conf).filesystem(fs).maxLength(length).orcTail(tail);
      options.useUTCTimestamp(true).convertToProlepticGregorian(declared.writerUsedProlepticGregorian());
      return new OrcSource(fs, path, meaning, OrcFile.createReader(place, options), declared.getOrcProtoStripeStatistics());
    } finally {
      input.close();
    }
  }

  private static OrcProto.FileTail asStored(OrcProto.FileTail tail) {
    OrcProto.Footer.Builder footer = tail.getFooter().toBuilder();
    for (int i = 0; i < footer.getTypesCount(); i++) {
      OrcProto.Type.Builder type = footer.getTypes(i).toBuilder().clearAttributes().clearMaximumLength().clearFieldNames();
      for (int j = 0; j < footer.getTypes(i).getFieldNamesCount(); j++) type.addFieldNames("c" + j);
      String kind = type.getKind().name();
      if (kind.equals("CHAR") || kind.equals("VARCHAR")) type.setKind(OrcProto.Type.Kind.STRING);
      if (kind.equals("TIMESTAMP")) type.setKind(OrcProto.Type.Kind.TIMESTAMP_INSTANT);
      footer.setTypes(i, type.build());
    }
    return tail.toBuilder().setFooter(footer.build()).build();
  }

  void close() throws IOException {
    reader.close();
  }

  /** Its postscript is read by itself before the end is: the footer is decompressed in a buffer of that size, too. */
  private static void requireRoom(OrcProto.PostScript postscript, TaskMemory memory) throws IOException {
    boolean compressed = postscript.getCompression() != OrcProto.CompressionKind.NONE;
    long size = OrcLayout.blockSize(postscript);
    if (compressed && (size < 0 || size > memory.pageBytes)) throw new ShareExceeded("a buffer", size, memory.pageBytes);
  }

  /** Fails if the largest stripe takes more memory than there is: as it is stored, its buffers, one for each stream, and its dictionaries. */
  void requireRoom(TaskMemory memory) {
    List<StripeInformation> stripes = reader.getStripes();
    int columns = schema.getMaximumId() + 1;
    // Also of a file without stripes.
    memory.openPages(columns);
    boolean compressed = reader.getCompressionKind() != CompressionKind.NONE;
    for (int i = 0; i < stripes.size(); i++) {
      OrcProto.StripeFooter footer = (OrcProto.StripeFooter) meaning.stripes.get(i);
      // Not as long as the stripe says its data are: streams of data may lie where it says its index is.
      long stored = 0;
      OpenPages open = memory.openPages(Math.max(columns, footer.getColumnsCount()));
      for (int j = 0; j < footer.getStreamsCount(); j++) {
        OrcProto.Stream stream = footer.getStreams(j);
        boolean ofIndex = stream.getKind().name().startsWith("ROW_INDEX") || stream.getKind().name().startsWith("BLOOM_FILTER");
        if (!ofIndex) stored += stream.getLength();
        if (compressed && !ofIndex && stream.getLength() > 0) open.take(reader.getCompressionSize(), "a buffer for each stream of a stripe");
      }
      if (stored > memory.storedBytes) throw new ShareExceeded("a stripe as it is stored", stored, memory.storedBytes);
      for (int j = 0; j < footer.getColumnsCount(); j++) {
        long values = footer.getColumns(j).getDictionarySize() & 0xffffffffL;
        open.take(Integer.BYTES * values, "a dictionary of " + values + " values");
      }
    }
  }

  /** Fails for numbers that ORC's libraries take differently. */
  void requireOneReading(WorkLimit work) throws IOException {
    OrcStreams streams = new OrcStreams(fs, path, reader, meaning.footer.getTypesList(), work);
    try {
      // Of all stripes before any is read: what is too much costs nothing then.
      for (Object footer : meaning.stripes) streams.takeDictionaries((OrcProto.StripeFooter) footer);
      for (int i = 0; i < meaning.stripes.size(); i++) {
        streams.require((StripeInformation) reader.getStripes().get(i), (OrcProto.StripeFooter) meaning.stripes.get(i));
      }
    } finally {
      streams.close();
    }
  }

  OrcStripes stripes() {
    return new OrcStripes(fs, path, reader, meaning.stripes);
  }

  RecordReader rows(OrcStripes stripes) throws IOException {
    return reader.rows(reader.options().skipCorruptRecords(false).useZeroCopy(Boolean.FALSE).dataReader(stripes));
  }

  /** For about as much as a megabyte. Decimals as objects, because a stored scale may differ from the declared one. */
  VectorizedRowBatch newBatch() {
    long rows = Math.max(1L, reader.getNumberOfRows());
    long bytes = Math.max(reader.getContentLength(), 0L);
    for (OrcProto.ColumnStatistics column : reader.getOrcProtoFileStatistics()) {
      OrcProto.ColumnStatistics one = (OrcProto.ColumnStatistics) column;
      bytes += Math.max(0L, one.getStringStatistics().getSum()) + Math.max(0L, one.getBinaryStatistics().getSum());
    }
    long fitting = BATCH_BYTES / Math.max(1L, bytes / rows);
    return schema.createRowBatch(TypeDescription.RowBatchVersion.ORIGINAL, (int) Math.max(1L, Math.min((long) MOST_ROWS, fitting)));
  }
}
