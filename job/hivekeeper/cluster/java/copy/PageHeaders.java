package hivekeeper.copy;

import hivekeeper.ThriftStruct;
import java.io.IOException;
import java.util.zip.CRC32;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.SeekableInputStream;

/**
 * Walks the page headers of a column chunk before the library reads it: the library goes back in the file for a negative size, again and
 * again, and allocates what a header claims beyond the chunk or for a bound.
 *
 * Checks what the library does not check in pages of version 2: checksums (parquet-mr 1.13), and whether they are as compressed as they
 * claim. Arrow before 3.0 compressed them and said that it had not (ARROW-10353); its later readers know that, others find other values.
 */
class PageHeaders {
  private static final int FIRST_READ = 4 << 10;
  private static final int MOST_READ = 16 << 20;
  /** What the library keeps of a page besides its bytes and bounds. */
  private static final int PAGE_BYTES = 512;
  /** What the size of a chunk may lack: parquet-mr before 1.3 did not count the header of a dictionary (IMPALA-694). Arrow allows as much. */
  private static final int MOST_UNCOUNTED = 100;
  private static final int DATA_PAGE = 0;
  private static final int DATA_PAGE_V2 = 3;
  private static final int CHECKED_AT_ONCE = 64 << 10;
  private static final String OLD_ARROW = "parquet-cpp version ";
  // Numbers of fields.
  private static final int TYPE = 1;
  private static final int SIZE = 2;
  private static final int COMPRESSED_SIZE = 3;
  private static final int CHECKSUM = 4;
  private static final int DATA_HEADER = 5;
  private static final int DATA_HEADER_V2 = 8;
  private static final int VALUES = 1;
  private static final int DEFINITION_BYTES = 5;
  private static final int REPETITION_BYTES = 6;
  private static final int IS_COMPRESSED = 7;

  private final byte[] content;
  private final SeekableInputStream in;
  private final long length;
  private final String createdBy;
  /** What was read last, and where it begins in the file. Pages may take twenty bytes, and HDFS opens a block anew to go back in it. */
  private byte[] last = new byte[0];
  private long lastAt;

  /** Of a file of this length; `content` is null if it is to be read from `in`. */
  PageHeaders(byte[] content, SeekableInputStream in, long length, String createdBy) {
    this.content = content;
    this.in = in;
    this.length = length;
    this.createdBy = createdBy == null ? "" : createdBy;
  }

  /** Fails for what no library can read. The memory for all headers is taken from `open`. */
  void walk(ColumnChunkMetaData chunk, OpenPages open) throws IOException {
    long at = chunk.getStartingPos();
    long values = 0;
    // The library reads a page to its end, and thousands of columns could claim one long page behind theirs.
    long end = Math.min(length, at + chunk.getTotalSize() + MOST_UNCOUNTED);
    while (values < chunk.getValueCount() && at < end) {
      ThriftStruct header = read(at);
      open.take(PAGE_BYTES + header.length(), "the list of the pages of " + chunk.getPath().toDotString());
      at += header.length();
      long size = inside(header, COMPRESSED_SIZE, Math.max(0L, end - at));
      values += values(header, size);
      if (header.integer(TYPE) == DATA_PAGE_V2) requireSound(header, chunk, at, size);
      at += size;
    }
  }

  /** A page of version 2 that begins at this place. */
  private void requireSound(ThriftStruct header, ColumnChunkMetaData chunk, long at, long size) throws IOException {
    String what = "a page of the column " + chunk.getPath().toDotString();
    boolean saysPlain = new ThriftStruct(header.body(DATA_HEADER_V2)).type(IS_COMPRESSED) == ThriftStruct.FALSE;
    boolean isOther = header.integer(SIZE) != size || createdBy.startsWith(OLD_ARROW);
    if (saysPlain && isOther && chunk.getCodec() != CompressionCodecName.UNCOMPRESSED) {
      throw new IOException(what + " may be compressed, though it says that it is not (ARROW-10353)");
    }
    if (header.has(CHECKSUM) && (int) header.integer(CHECKSUM) != checksum(at, size)) throw new IOException(what + " has another checksum");
  }

  private int checksum(long at, long size) throws IOException {
    CRC32 sum = new CRC32();
    if (content != null) {
      sum.update(content, (int) at, (int) size);
      return (int) sum.getValue();
    }
    if (at >= lastAt && at + size <= lastAt + last.length) {
      sum.update(last, (int) (at - lastAt), (int) size);
      return (int) sum.getValue();
    }
    byte[] some = new byte[(int) Math.min(size, (long) CHECKED_AT_ONCE)];
    in.seek(at);
    for (long left = size; left > 0; left -= some.length) {
      int count = (int) Math.min(left, (long) some.length);
      in.readFully(some, 0, count);
      sum.update(some, 0, count);
    }
    return (int) sum.getValue();
  }

  /** None in a dictionary and in a page of an unknown type, which the library leaves out. */
  private static long values(ThriftStruct header, long size) {
    inside(header, SIZE, Integer.MAX_VALUE);
    long type = inside(header, TYPE, Integer.MAX_VALUE);
    if (type != DATA_PAGE && type != DATA_PAGE_V2) return 0L;
    ThriftStruct page = new ThriftStruct(require(header, type == DATA_PAGE ? DATA_HEADER : DATA_HEADER_V2));
    if (type == DATA_PAGE_V2) inside(page, REPETITION_BYTES, size - inside(page, DEFINITION_BYTES, size));
    return inside(page, VALUES, Integer.MAX_VALUE);
  }

  private static long inside(ThriftStruct header, int field, long most) {
    require(header, field);
    long value = header.integer(field);
    if (value < 0 || value > most) {
      throw new IllegalStateException("a page header claims " + value + " in its field " + field + ", there can be no more than " + most);
    }
    return value;
  }

  private static byte[] require(ThriftStruct header, int field) {
    if (!header.has(field)) throw new IllegalStateException("a page header has no field " + field);
    return header.body(field);
  }

  private ThriftStruct read(long at) throws IOException {
    if (content != null) return new ThriftStruct(content, (int) at);
    if (at >= lastAt && at < lastAt + last.length) {
      try {
        return new ThriftStruct(last, (int) (at - lastAt));
      } catch (IllegalStateException cut) {
        // It goes on behind what was read, or is malformed, which shows once more.
      }
    }
    for (int size = FIRST_READ; true; size <<= 4) {
      last = new byte[(int) Math.min((long) size, length - at)];
      lastAt = at;
      in.seek(at);
      in.readFully(last);
      try {
        return new ThriftStruct(last, 0);
      } catch (IllegalStateException cut) {
        if (size >= MOST_READ || last.length < size) throw cut;
      }
    }
  }
}
