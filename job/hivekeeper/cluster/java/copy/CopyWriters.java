package hivekeeper.copy;

import java.util.Set;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.values.ValuesWriter;
import org.apache.parquet.column.values.factory.DefaultValuesWriterFactory;
import org.apache.parquet.column.values.factory.ValuesWriterFactory;
import org.apache.parquet.column.values.fallback.FallbackValuesWriter;

/** The library's own writers of values, except for dictionaries, and where a NaN has to be kept as it is. */
class CopyWriters implements ValuesWriterFactory {
  private final ValuesWriterFactory others = new DefaultValuesWriterFactory();
  private final Set<ColumnDescriptor> withOddNaN;
  private final Categories categories;
  private ParquetProperties properties;

  CopyWriters(Set<ColumnDescriptor> withOddNaN, Categories categories) {
    this.withOddNaN = withOddNaN;
    this.categories = categories;
  }

  public void initialize(ParquetProperties properties) {
    this.properties = properties;
    others.initialize(properties);
  }

  public ValuesWriter newValuesWriter(ColumnDescriptor column) {
    if (withOddNaN.contains(column)) return new NanPlainWriter(properties);
    ValuesWriter writer = others.newValuesWriter(column);
    if (!(writer instanceof FallbackValuesWriter)) return writer;
    ValuesWriter plain = (ValuesWriter) ((FallbackValuesWriter) writer).fallBackWriter;
    if (categories.has(column)) return FallbackValuesWriter.of((ValuesWriter) categories.newWriter(column, properties), plain);
    return FallbackValuesWriter.of(new CopyDictionary(column, properties, false), plain);
  }
}
