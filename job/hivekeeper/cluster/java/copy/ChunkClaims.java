package hivekeeper.copy;

import java.io.IOException;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.PrimitiveComparator;

/** The bounds and the number of nulls that a footer claims for a column chunk, by which readers skip rows; compared with its values. */
class ChunkClaims {
  private final String column;
  private final Statistics<?> said;
  private final PrimitiveComparator<Binary> comparator;
  private final boolean bounded;
  private final Object low;
  private final Object high;
  private final long lowNumber;
  private final long highNumber;
  private final double lowDouble;
  private final double highDouble;
  private long nulls;

  ChunkClaims(ColumnChunkMetaData chunk) {
    column = chunk.getPath().toDotString();
    said = chunk.getStatistics();
    comparator = chunk.getPrimitiveType().comparator();
    bounded = said != null && said.hasNonNullValue();
    low = bounded ? said.genericGetMin() : null;
    high = bounded ? said.genericGetMax() : null;
    lowNumber = low instanceof Number ? ((Number) low).longValue() : 0L;
    highNumber = high instanceof Number ? ((Number) high).longValue() : 0L;
    lowDouble = low instanceof Number ? ((Number) low).doubleValue() : 0.0;
    highDouble = high instanceof Number ? ((Number) high).doubleValue() : 0.0;
  }

  void addNull() {
    nulls++;
  }

  void check(int value) throws IOException {
    if (bounded) require(comparator.compare((int) lowNumber, value) <= 0 && comparator.compare(value, (int) highNumber) <= 0);
  }

  void check(long value) throws IOException {
    if (bounded) require(comparator.compare(lowNumber, value) <= 0 && comparator.compare(value, highNumber) <= 0);
  }

  void check(boolean value) throws IOException {
    if (bounded) require(value ? (Boolean) high : !(Boolean) low);
  }

  /** Bounds say nothing about NaN. */
  void check(double value) throws IOException {
    if (bounded) require(!(value < lowDouble) && !(value > highDouble));
  }

  void check(Binary value) throws IOException {
    if (bounded) require(comparator.compare((Binary) low, value) <= 0 && comparator.compare(value, (Binary) high) <= 0);
  }

  /** After the last value. */
  void checkNulls() throws IOException {
    if (said != null && said.isNumNullsSet() && said.getNumNulls() != nulls) {
      throw new IOException("the column " + column + " has " + nulls + " nulls, its footer says " + said.getNumNulls());
    }
  }

  private void require(boolean holds) throws IOException {
    if (!holds) throw new IOException("a value of the column " + column + " lies outside the bounds in its footer");
  }
}
