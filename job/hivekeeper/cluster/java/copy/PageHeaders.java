package hivekeeper.copy;

import hivekeeper.ThriftStruct;
import java.io.IOException;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.io.SeekableInputStream;

/**
 * Walks the page headers of a column chunk before the library reads it: the library goes back in the file for a negative size, again and
 * again, and allocates what a header claims beyond the chunk or for a bound.
 */
class PageHeaders {
  private static final int FIRST_READ = 4 << 10;
  private static final int MOST_READ = 16 << 20;
  /** What the library keeps of a page besides its bytes and bounds. */
  private static final int PAGE_BYTES = 512;
  private static final int DATA_PAGE = 0;
  private static final int DATA_PAGE_V2 = 3;
  // Numbers of fields.
  private static final int TYPE = 1;
  private static final int COMPRESSED_SIZE = 3;
  private static final int DATA_HEADER = 5;
  private static final int DATA_HEADER_V2 = 8;
  private static final int VALUES = 1;
  private static final int DEFINITION_BYTES = 5;
  private static final int REPETITION_BYTES = 6;

  private final byte[] content;
  private final SeekableInputStream in;
  private final long length;

  /** Of a file of this length; `content` is null if it is to be read from `in`. */
  PageHeaders(byte[] content, SeekableInputStream in, long length) {
    this.content = content;
    this.in = in;
    this.length = length;
  }

  /** Fails for what no library can read. The memory for all headers is taken from `open`. */
  void walk(ColumnChunkMetaData chunk, OpenPages open) throws IOException {
    long at = chunk.getStartingPos();
    long values = 0;
    // The chunk's own size may leave out a header (parquet-mr before 1.3); the library then reads on.
    while (values < chunk.getValueCount() && at < length) {
      ThriftStruct header = read(at);
      open.take(PAGE_BYTES + header.length(), "the list of the pages of " + chunk.getPath().toDotString());
      at += header.length();
      long size = inside(header, COMPRESSED_SIZE, length - at);
      values += values(header, size);
      at += size;
    }
  }

  /** None in a dictionary and in a page of an unknown type, which the library leaves out. */
  private static long values(ThriftStruct header, long size) {
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
    for (int size = FIRST_READ; true; size <<= 4) {
      byte[] some = new byte[(int) Math.min((long) size, length - at)];
      in.seek(at);
      in.readFully(some);
      try {
        return new ThriftStruct(some, 0);
      } catch (IllegalStateException cut) {
        if (size >= MOST_READ || some.length < size) throw cut;
      }
    }
  }
}
