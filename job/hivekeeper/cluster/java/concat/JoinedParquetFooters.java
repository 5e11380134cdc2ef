package hivekeeper.concat;

import hivekeeper.Footer;
import hivekeeper.ParquetTail;
import hivekeeper.RawFooter;
import hivekeeper.ThriftStruct;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Footers for Parquet files that are made of whole files by concatenation. Readers find the footer at the end of a file and everything else
 * by the offsets in it, so bytes that it does not name are not read.
 *
 * Footers are changed as raw bytes (parquet-format, `FileMetaData`), so that what is newer than this Parquet library stays.
 */
public class JoinedParquetFooters implements JoinedFooters {
  // Of a row group.
  private static final int COLUMNS = 1;
  private static final int GROUP_OFFSET = 5;
  private static final int ORDINAL = 7;
  // Of a column chunk: the file that it is in, its metadata, and offset and length of its offset index and of its column index.
  private static final int FILE_PATH = 1;
  private static final int CHUNK_OFFSET = 2;
  private static final int METADATA = 3;
  private static final int[] INDEXES = {4, 5, 6, 7};
  private static final int[] ENCRYPTION = {8, 9};
  // Of a column chunk's metadata: data pages, index pages, dictionary, Bloom filter.
  private static final int DATA_OFFSET = 9;
  private static final int[] OTHER_OFFSETS = {10, 11, 14};

  private final List<byte[]> groups = new ArrayList<byte[]>();
  private RawFooter first;
  private byte[] withoutRows;
  private long rows;
  private long bytes;

  public byte[] withoutRows() {
    return end(withoutRows);
  }

  /** `footer`: its bytes. */
  public void add(Object footer, long start) {
    RawFooter next = raw((byte[]) footer);
    byte[] like = next.withoutRows();
    if (first == null) {
      first = next;
      withoutRows = like;
    }
    if (!Arrays.equals(withoutRows, like)) throw new IllegalStateException(UNLIKE);
    rows = Math.addExact(rows, next.fields.integer(RawFooter.ROWS));
    for (ThriftStruct group : ThriftStruct.list(next.fields.body(RawFooter.ROW_GROUPS))) {
      byte[] moved = moved((ThriftStruct) group, start, groups.size());
      bytes += moved.length;
      Footer.requireShort(bytes);
      groups.add(moved);
    }
  }

  /** Page indexes are left out: an offset index holds the places of pages, and is no part of the footer. */
  public byte[] over() {
    return end(first.withRows(rows, groups));
  }

  private static RawFooter raw(byte[] footer) {
    RawFooter raw = new RawFooter(footer);
    if (raw.fields.has(RawFooter.ENCRYPTION)) throw new IllegalStateException("its columns are encrypted");
    return raw;
  }

  private static byte[] moved(ThriftStruct group, long by, int ordinal) {
    Map<Integer, byte[]> changed = new HashMap<Integer, byte[]>();
    List<byte[]> columns = new ArrayList<byte[]>();
    for (ThriftStruct chunk : ThriftStruct.list(group.body(COLUMNS))) columns.add(movedChunk((ThriftStruct) chunk, by));
    changed.put(COLUMNS, ThriftStruct.listOf(columns));
    move(group, GROUP_OFFSET, by, changed);
    // It has 16 bits, and is needed for decryption only.
    if (group.has(ORDINAL)) changed.put(ORDINAL, ordinal > Short.MAX_VALUE ? null : ThriftStruct.number(ordinal));
    return group.with(changed);
  }

  private static byte[] movedChunk(ThriftStruct chunk, long by) {
    if (chunk.has(FILE_PATH)) throw new IllegalStateException("a column is in another file");
    if (!chunk.has(METADATA)) throw new IllegalStateException("its footer is malformed: a column chunk without metadata");
    for (int id : ENCRYPTION) {
      if (chunk.has(id)) throw new IllegalStateException("its columns are encrypted");
    }
    ThriftStruct metadata = new ThriftStruct(chunk.body(METADATA));
    if (!metadata.has(DATA_OFFSET)) throw new IllegalStateException("its footer is malformed: a column chunk without pages");
    Map<Integer, byte[]> inside = new HashMap<Integer, byte[]>();
    inside.put(DATA_OFFSET, ThriftStruct.number(Math.addExact(metadata.integer(DATA_OFFSET), by)));
    for (int id : OTHER_OFFSETS) move(metadata, id, by, inside);
    Map<Integer, byte[]> changed = new HashMap<Integer, byte[]>();
    changed.put(METADATA, metadata.with(inside));
    move(chunk, CHUNK_OFFSET, by, changed);
    for (int id : INDEXES) changed.put(id, null);
    return chunk.with(changed);
  }

  /** Writers write 0 for an offset that they do not have. */
  private static void move(ThriftStruct from, int id, long by, Map<Integer, byte[]> changed) {
    if (from.has(id) && from.integer(id) != 0) changed.put(id, ThriftStruct.number(Math.addExact(from.integer(id), by)));
  }

  /** A footer with what follows it. */
  static byte[] end(byte[] footer) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(footer, 0, footer.length);
    out.write(ParquetTail.ending(footer.length), 0, ParquetTail.ENDING);
    return out.toByteArray();
  }
}
