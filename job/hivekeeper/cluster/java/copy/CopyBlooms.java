package hivekeeper.copy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter;
import org.apache.parquet.column.values.bloomfilter.BloomFilter;
import org.apache.parquet.column.values.bloomfilter.BloomFilterWriteStore;
import org.apache.parquet.column.values.bloomfilter.BloomFilterWriter;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

/**
 * Bloom filters that are no larger than their values need, and that have both zeros if they have one.
 *
 * The library makes each as large as the largest may be, and keeps those of all row groups until the file ends.
 */
class CopyBlooms implements BloomFilterWriteStore {
  /** The library's own limit. */
  private static final long MOST_BYTES = 1L << 20;
  private static final int LEAST_BYTES = 1 << 10;
  private static final int BLOCK_BYTES = 32;
  /** Of the bits, in a filter that finds about one of a hundred values that it does not have. */
  private static final double MOST_SET = 0.5;

  private final BloomFilterWriteStore store;

  CopyBlooms(BloomFilterWriteStore store) {
    this.store = store;
  }

  /**
   * `waitingBytes` is what a row group may take while it waits; a footer can claim a filter for each of ten thousand columns. Returns how many
   * bytes the filters of a row group take before it has any value.
   */
  static long enable(ParquetProperties.Builder builder, MessageType schema, List<String> wanted, long waitingBytes) {
    Set<String> asked = new HashSet<String>(wanted);
    List<String> filtered = new ArrayList<String>();
    for (ColumnDescriptor each : schema.getColumns()) {
      ColumnDescriptor column = (ColumnDescriptor) each;
      String name = String.join(".", column.getPath());
      // The library adds no boolean to a filter, and readers would find none in it. It cuts names at their dots, and takes `a.` for `a`.
      boolean isBoolean = column.getPrimitiveType().getPrimitiveTypeName() == PrimitiveTypeName.BOOLEAN;
      boolean isTaken = Arrays.equals(ColumnPath.fromDotString(name).toArray(), column.getPath());
      if (asked.contains(name) && isTaken && !isBoolean) filtered.add(name);
    }
    if (filtered.isEmpty()) return 0L;
    long each = Math.max((long) LEAST_BYTES, Math.min(MOST_BYTES, waitingBytes / 8 / filtered.size()));
    int bytes = (int) Long.highestOneBit(each);
    builder.withMaxBloomFilterBytes(bytes);
    for (String column : filtered) builder.withBloomFilterEnabled((String) column, true);
    return (long) bytes * filtered.size();
  }

  public BloomFilterWriter getBloomFilterWriter(ColumnDescriptor column) {
    final BloomFilterWriter writer = store.getBloomFilterWriter(column);
    final PrimitiveTypeName type = column.getPrimitiveType().getPrimitiveTypeName();
    return new BloomFilterWriter() {
      public void writeBloomFilter(BloomFilter filter) {
        if (type == PrimitiveTypeName.DOUBLE) addEqual(filter, filter.hash((double) 0.0), filter.hash((double) -0.0), filter.hash(Double.NaN));
        if (type == PrimitiveTypeName.FLOAT) addEqual(filter, filter.hash((float) 0.0), filter.hash((float) -0.0), filter.hash(Float.NaN));
        writer.writeBloomFilter(new BlockSplitBloomFilter(folded(bitsOf(filter))));
      }

      public void close() {}
    };
  }

  public void close() {}

  /** Readers look for one zero and for the canonical NaN; SQL takes them for equal to the other zero, and to NaNs of any bits. */
  private static void addEqual(BloomFilter filter, long one, long other, long nan) {
    filter.insertHash(nan);
    if (!filter.findHash(one) && !filter.findHash(other)) return;
    filter.insertHash(one);
    filter.insertHash(other);
  }

  private static byte[] bitsOf(BloomFilter filter) {
    ByteArrayOutputStream out = new ByteArrayOutputStream(filter.getBitsetSize());
    try {
      filter.writeTo(out);
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
    return out.toByteArray();
  }

  /** A value's block is the highest bits of its hash, so in half as many blocks it is where two neighbours come together. */
  private static byte[] folded(byte[] bits) {
    byte[] found = bits;
    while (found.length > LEAST_BYTES) {
      byte[] half = new byte[found.length / 2];
      for (int i = 0; i < half.length; i++) {
        int at = i / BLOCK_BYTES * 2 * BLOCK_BYTES + i % BLOCK_BYTES;
        half[i] = (byte) (found[at] | found[at + BLOCK_BYTES]);
      }
      if (set(half) > MOST_SET * 8 * half.length) return found;
      found = half;
    }
    return found;
  }

  private static long set(byte[] bits) {
    long count = 0;
    for (int i = 0; i < bits.length; i++) count += Integer.bitCount(bits[i] & 255);
    return count;
  }
}
