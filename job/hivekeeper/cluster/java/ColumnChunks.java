package hivekeeper;

import java.util.ArrayList;
import java.util.List;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;

/** Checks the places and sizes that a footer claims: a reader allocates memory for a whole chunk before it reads any of it. */
public class ColumnChunks {
  private ColumnChunks() {}

  public static void requireInside(ColumnChunkMetaData chunk, long length) {
    long start = chunk.getStartingPos();
    long size = chunk.getTotalSize();
    if (start < 0 || size < 0 || size > length || start > length - size) {
      String chunkSaid = "a column of " + size + " bytes from " + start + " on";
      throw new IllegalStateException(chunkSaid + " does not fit into the file of " + length + " bytes");
    }
  }

  /**
   * One claim for every reader: some believe the rows of the file, others those of its row groups or the values; some find columns by
   * their places, others by their paths; some begin a column at its dictionary, others at whichever page is first.
   */
  public static void requireConsistent(ParquetMetadata metadata, long rows) {
    // Not by their names with dots: `a.b` may be a column, or one in the struct `a`.
    List<ColumnPath> leaves = new ArrayList<ColumnPath>();
    for (String[] path : metadata.getFileMetaData().getSchema().getPaths()) leaves.add(ColumnPath.get(path));
    long counted = 0;
    for (BlockMetaData each : metadata.getBlocks()) {
      BlockMetaData block = (BlockMetaData) each;
      if (block.getRowCount() < 0) throw new IllegalStateException("a row group claims " + block.getRowCount() + " rows");
      counted = Footer.sum(counted, block.getRowCount());
      requireLeaves(block, leaves);
    }
    if (counted != rows) throw new IllegalStateException("its footer says " + rows + " rows, its row groups say " + counted);
  }

  private static void requireLeaves(BlockMetaData block, List<ColumnPath> leaves) {
    List<ColumnPath> found = new ArrayList<ColumnPath>();
    for (ColumnChunkMetaData each : block.getColumns()) {
      ColumnChunkMetaData chunk = (ColumnChunkMetaData) each;
      found.add(chunk.getPath());
      // Arrow counts no pages of a row group without rows, only the dictionary that it wrote.
      boolean isBehind = chunk.getValueCount() > 0 && chunk.getDictionaryPageOffset() > chunk.getFirstDataPageOffset();
      if (isBehind) throw new IllegalStateException("a column has its dictionary behind its data");
      if (block.getRowCount() == 0 && chunk.getValueCount() != 0) throw new IllegalStateException("a row group without rows has values");
    }
    boolean isEmpty = block.getRowCount() == 0 && found.isEmpty();
    if (!isEmpty && !found.equals(leaves)) throw new IllegalStateException("a row group's columns are not those of the schema in their order");
  }

  /** Each chunk inside the file, and all together not longer than it. */
  public static void requireInside(ParquetMetadata metadata, long length) {
    long total = 0;
    for (BlockMetaData block : metadata.getBlocks()) {
      for (ColumnChunkMetaData chunk : ((BlockMetaData) block).getColumns()) {
        requireInside((ColumnChunkMetaData) chunk, length);
        total += ((ColumnChunkMetaData) chunk).getTotalSize();
        if (total > length) throw new IllegalStateException("its columns together do not fit into the file of " + length + " bytes");
      }
    }
  }
}
