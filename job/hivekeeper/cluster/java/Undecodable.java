package hivekeeper;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.bytes.ByteBufferInputStream;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.ValuesType;
import org.apache.parquet.column.values.ValuesReader;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.RowGroup;
import org.apache.parquet.hadoop.CodecFactory;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;

/** What is in a file that this Parquet library, or a copy, cannot handle; found from the footer, by asking the library. */
public class Undecodable {
  /**
   * Those of which it was tried what they make of a page that is damaged, or shorter than it says. What a site installs for others (LZO,
   * Brotli) is not used: it may wait for ever, crash the JVM, or show what another page left in a buffer.
   */
  private static final List<String> TRIED = Arrays.asList("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4_RAW");
  private static final Map<CompressionCodecName, Boolean> CODECS = new HashMap<CompressionCodecName, Boolean>();

  private final Configuration conf;
  private final Set<String> found = new TreeSet<String>();
  private final Set<String> asked = new HashSet<String>();

  private Undecodable(Configuration conf) {
    this.conf = conf;
  }

  /** One short line each; empty if everything can be read. */
  public static List<String> find(Configuration conf, DecodedFooter footer, ParquetMetadata metadata) {
    Undecodable search = new Undecodable(conf);
    search.found.addAll(inFooter(footer));
    MessageType schema = metadata.getFileMetaData().getSchema();
    search.lookAtNames(schema);
    Map<ColumnPath, ColumnDescriptor> columns = new HashMap<ColumnPath, ColumnDescriptor>();
    for (ColumnDescriptor column : schema.getColumns()) columns.put(ColumnPath.get(((ColumnDescriptor) column).getPath()), column);
    for (BlockMetaData block : metadata.getBlocks()) {
      for (ColumnChunkMetaData chunk : ((BlockMetaData) block).getColumns()) {
        search.lookAtChunk((ColumnChunkMetaData) chunk, (ColumnDescriptor) columns.get(((ColumnChunkMetaData) chunk).getPath()));
      }
    }
    return new ArrayList<String>(search.found);
  }

  /** Of it, what shows before the library reads the footer, and asks for the keys of what is encrypted. */
  public static Set<String> inFooter(DecodedFooter footer) {
    Set<String> found = new TreeSet<String>();
    if (footer.raw.fields.has(RawFooter.ENCRYPTION)) found.add("encryption");
    if (footer.raw.unknownField() != 0) found.add("field " + footer.raw.unknownField() + " of the footer");
    for (RowGroup group : footer.metadata.getRow_groups()) {
      for (ColumnChunk chunk : ((RowGroup) group).getColumns()) {
        if (((ColumnChunk) chunk).isSetCrypto_metadata()) found.add("encryption");
        if (((ColumnChunk) chunk).isSetFile_path()) found.add("columns in another file");
      }
    }
    return found;
  }

  private void lookAtNames(MessageType schema) {
    Set<String> paths = new HashSet<String>();
    for (String[] path : schema.getPaths()) {
      if (!paths.add(String.join("\0", (String[]) path))) found.add("two columns of one name");
    }
  }

  private void lookAtChunk(ColumnChunkMetaData chunk, ColumnDescriptor column) {
    CompressionCodecName codec = chunk.getCodec();
    // parquet-mr and Arrow frame large pages of it differently (PARQUET-1996).
    if (codec == CompressionCodecName.LZ4) found.add("the codec LZ4 of Hadoop");
    else if (!TRIED.contains(codec.name()) || !hasCodec(codec)) found.add("the codec " + codec.name());
    for (Encoding encoding : chunk.getEncodings()) {
      PrimitiveType type = column.getPrimitiveType();
      String said = ((Encoding) encoding).name() + " of " + type.getPrimitiveTypeName().name();
      if (asked.add(said + column.getMaxDefinitionLevel()) && !canRead((Encoding) encoding, column)) found.add(said);
    }
  }

  private boolean hasCodec(CompressionCodecName codec) {
    synchronized (CODECS) {
      Boolean known = (Boolean) CODECS.get(codec);
      if (known == null) {
        known = canDecompress(codec);
        CODECS.put(codec, known);
      }
      return known.booleanValue();
    }
  }

  private boolean canDecompress(CompressionCodecName codec) {
    CodecFactory factory = new CodecFactory(conf, 1 << 16);
    try {
      factory.getDecompressor(codec);
      return true;
    } catch (RuntimeException absent) {
      return false;
    } catch (LinkageError absent) {
      return false;
    } finally {
      factory.release();
    }
  }

  /** A chunk lists the encodings of its levels (RLE, BIT_PACKED) with those of its values. */
  private static boolean canRead(Encoding encoding, ColumnDescriptor column) {
    boolean isBoolean = column.getPrimitiveType().getPrimitiveTypeName() == PrimitiveType.PrimitiveTypeName.BOOLEAN;
    if (encoding.usesDictionary()) return !isBoolean;
    if (encoding == Encoding.BIT_PACKED || encoding == Encoding.RLE && !isBoolean) return true;
    try {
      ValuesReader reader = encoding.getValuesReader(column, ValuesType.VALUES);
      boolean isFixed = column.getPrimitiveType().getPrimitiveTypeName() == PrimitiveType.PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY;
      // Of any length; the libraries that expect too many values do not know this encoding of it.
      if (encoding == Encoding.BYTE_STREAM_SPLIT && column.getMaxDefinitionLevel() > 0 && !isFixed) readPageWithNull(reader, column);
      return true;
    } catch (RuntimeException refused) {
      return false;
    } catch (IOException refused) {
      return false;
    }
  }

  /** parquet-mr 1.12 expects a value for every NULL of a page. */
  private static void readPageWithNull(ValuesReader reader, ColumnDescriptor column) throws IOException {
    PrimitiveType.PrimitiveTypeName type = column.getPrimitiveType().getPrimitiveTypeName();
    boolean isShort = type == PrimitiveType.PrimitiveTypeName.FLOAT || type == PrimitiveType.PrimitiveTypeName.INT32;
    reader.initFromPage(2, ByteBufferInputStream.wrap(ByteBuffer.allocate(isShort ? 4 : 8)));
  }
}
