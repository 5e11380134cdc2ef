package hivekeeper.copy;

import java.util.Set;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.values.ValuesWriter;
import org.apache.parquet.column.values.factory.DefaultValuesWriterFactory;
import org.apache.parquet.column.values.factory.ValuesWriterFactory;

/** The library's own writers of values, except for some columns, whose NaNs have to be kept. */
class CopyWriters implements ValuesWriterFactory {
  private final ValuesWriterFactory others = new DefaultValuesWriterFactory();
  private final Set<ColumnDescriptor> withOddNaN;
  private ParquetProperties properties;

  CopyWriters(Set<ColumnDescriptor> withOddNaN) {
    this.withOddNaN = withOddNaN;
  }

  public void initialize(ParquetProperties properties) {
    this.properties = properties;
    others.initialize(properties);
  }

  public ValuesWriter newValuesWriter(ColumnDescriptor column) {
    return withOddNaN.contains(column) ? new NanPlainWriter(properties) : others.newValuesWriter(column);
  }
}
