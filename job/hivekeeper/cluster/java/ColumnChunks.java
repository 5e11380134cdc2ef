package hivekeeper;

import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
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
