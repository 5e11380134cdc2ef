package hivekeeper.copy;

import hivekeeper.ColumnChunks;
import hivekeeper.ColumnNames;
import hivekeeper.DecodedFooter;
import hivekeeper.ParquetTail;
import hivekeeper.Undecodable;
import hivekeeper.WorkLimit;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.hadoop.CodecFactory;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.io.SeekableInputStream;

/**
 * A Parquet file to be read: a short one wholly in memory, a longer one streamed by the library's own reads.
 *
 * The library reads the footer that was looked at: that of a longer file follows behind its last byte, as does one without what the library
 * throws at.
 */
class ParquetSource {
  private static final int SMALL_BUFFER = 1 << 16;

  final String path;
  final DecodedFooter footer;
  final BoundedCodecs codecs;
  final ParquetFileReader reader;

  private final long length;
  private final byte[] content;
  private final SourceInput input;
  /** Of all row groups, of which a footer may claim a million: null before the first one. Their stream is null for a file in memory. */
  private PageHeaders headers;
  private SeekableInputStream in;

  private ParquetSource(String path, long length, byte[] content, DecodedFooter footer, BoundedCodecs codecs, SourceInput input,
      ParquetFileReader reader) {
    this.path = path;
    this.length = length;
    this.content = content;
    this.footer = footer;
    this.codecs = codecs;
    this.input = input;
    this.reader = reader;
  }

  /** `begin` is 0, or where the file lies in another one. `content` is null for a file that is streamed. Fails for what cannot be decoded, and for a file of another length. */
  static ParquetSource open(Configuration conf, String path, FileSystem fs, long begin, long length, byte[] content) throws Exception {
    Path place = new Path(path);
    byte[] found = content == null ? readFooter(fs, place, begin, length) : footer(content);
    DecodedFooter footer = new DecodedFooter(found);
    // With a site's crypto factory, the library asks a KMS that the file names while it opens the file.
    requireDecodable(Undecodable.inFooter(footer));
    // Another footer may be there when the library reads it.
    byte[] ending = footer.changed ? withLength(footer.bytes()) : content == null ? withLength(found) : new byte[0];
    BoundedCodecs codecs = new BoundedCodecs(new CodecFactory(conf, SMALL_BUFFER));
    ParquetReadOptions options = HadoopReadOptions.builder(conf).usePageChecksumVerification(true).withCodecFactory(codecs).build();
    SourceInput input = new SourceInput(fs, place, content, begin, length, ending);
    ParquetFileReader reader = ParquetFileReader.open(input, options);
    boolean sound = false;
    try {
      ColumnChunks.requireInside(reader.getFooter(), length);
      requireDecodable(Undecodable.find(conf, footer, reader.getFooter()));
      sound = true;
    } finally {
      if (!sound) reader.close();
      ColumnNames.forgetMany();
    }
    return new ParquetSource(path, length, content, footer, codecs, input, reader);
  }

  private static void requireDecodable(Collection<String> undecodable) throws IOException {
    for (String first : undecodable) throw new IOException("it has " + first + ", which cannot be copied");
  }

  void close() throws IOException {
    try {
      if (in != null) in.close();
    } finally {
      reader.close();
    }
  }

  /** The pages of the next row group, which is this one. What it takes to read them is looked at before. */
  SourcePages nextPages(BlockMetaData block, TaskMemory memory, WorkLimit work) throws IOException {
    OpenPages open = memory.openPages(block.getColumns().size());
    long longest = 0;
    long stored = 0;
    if (headers == null) {
      in = content == null ? input.newStream() : null;
      headers = new PageHeaders(content, in, length, reader.getFooter().getFileMetaData().getCreatedBy());
    }
    for (ColumnChunkMetaData each : block.getColumns()) {
      ColumnChunkMetaData chunk = (ColumnChunkMetaData) each;
      longest = Math.max(longest, chunk.getTotalUncompressedSize());
      stored += chunk.getTotalSize();
      headers.walk(chunk, open);
    }
    if (stored > memory.storedBytes) throw new ShareExceeded("a row group as it is stored", stored, memory.storedBytes);
    codecs.limit(longest);
    return new SourcePages(reader.readNextRowGroup(), codecs, open, work, block);
  }

  private static byte[] readFooter(FileSystem fs, Path place, long begin, long length) throws IOException {
    FSDataInputStream in = fs.open(place);
    try {
      byte[] footer = begin == 0 ? ParquetTail.footer(in, length) : ParquetTail.footer(in, begin, length);
      byte[] start = new byte[4];
      in.readFully(begin, start);
      ParquetTail.requireStart(start);
      return footer;
    } finally {
      in.close();
    }
  }

  private static byte[] footer(byte[] content) throws IOException {
    int size = ParquetTail.footerBytes(content, content.length);
    ParquetTail.requireStart(content);
    int end = content.length - ParquetTail.ENDING;
    return Arrays.copyOfRange(content, end - size, end);
  }

  private static byte[] withLength(byte[] footer) {
    byte[] ending = ParquetTail.ending(footer.length);
    byte[] both = Arrays.copyOf(footer, footer.length + ending.length);
    System.arraycopy(ending, 0, both, footer.length, ending.length);
    return both;
  }
}
