package hivekeeper.copy;

import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.values.ValuesWriter;
import org.apache.parquet.column.values.dictionary.DictionaryValuesWriter;
import org.apache.parquet.column.values.dictionary.IntList;

/**
 * Dictionaries of floating-point numbers that have both zeros if they have one.
 *
 * parquet-mr skips a row group whose dictionary lacks the value of a filter, and takes 0.0 and -0.0 for different values; SQL takes them
 * for equal. A source without dictionary has no such row group.
 */
class ZeroDictionaries {
  private static final Encoding ENCODING = Encoding.PLAIN_DICTIONARY;

  private ZeroDictionaries() {}

  static ValuesWriter doubles(ParquetProperties properties) {
    return new Doubles(properties);
  }

  static ValuesWriter floats(ParquetProperties properties) {
    return new Floats(properties);
  }

  private static class Doubles extends DictionaryValuesWriter.PlainDoubleDictionaryValuesWriter {
    private boolean hasZeros;

    Doubles(ParquetProperties properties) {
      super(properties.getDictionaryPageSizeThreshold(), ENCODING, ENCODING, properties.getAllocator());
    }

    public void writeDouble(double value) {
      if (value == 0 && !hasZeros) {
        IntList values = encodedValues;
        encodedValues = new IntList();
        super.writeDouble((double) 0.0);
        super.writeDouble((double) -0.0);
        encodedValues = values;
        hasZeros = true;
      }
      super.writeDouble(value);
    }

    protected void clearDictionaryContent() {
      super.clearDictionaryContent();
      hasZeros = false;
    }
  }

  private static class Floats extends DictionaryValuesWriter.PlainFloatDictionaryValuesWriter {
    private boolean hasZeros;

    Floats(ParquetProperties properties) {
      super(properties.getDictionaryPageSizeThreshold(), ENCODING, ENCODING, properties.getAllocator());
    }

    public void writeFloat(float value) {
      if (value == 0 && !hasZeros) {
        IntList values = encodedValues;
        encodedValues = new IntList();
        super.writeFloat((float) 0.0);
        super.writeFloat((float) -0.0);
        encodedValues = values;
        hasZeros = true;
      }
      super.writeFloat(value);
    }

    protected void clearDictionaryContent() {
      super.clearDictionaryContent();
      hasZeros = false;
    }
  }
}
