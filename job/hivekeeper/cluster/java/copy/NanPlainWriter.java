package hivekeeper.copy;

import java.io.IOException;
import org.apache.parquet.bytes.BytesInput;
import org.apache.parquet.bytes.CapacityByteArrayOutputStream;
import org.apache.parquet.bytes.LittleEndianDataOutputStream;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.values.ValuesWriter;

/** Plain encoding of floating-point numbers that keeps the bits of a NaN; parquet-mr's own writers make one of all NaNs. */
class NanPlainWriter extends ValuesWriter {
  private final CapacityByteArrayOutputStream bytes;
  private final LittleEndianDataOutputStream out;

  NanPlainWriter(ParquetProperties properties) {
    int slabBytes = properties.getInitialSlabSize();
    bytes = new CapacityByteArrayOutputStream(slabBytes, properties.getPageSizeThreshold(), properties.getAllocator());
    out = new LittleEndianDataOutputStream(bytes);
  }

  public void writeDouble(double value) {
    try {
      out.writeLong(Double.doubleToRawLongBits(value));
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  public void writeFloat(float value) {
    try {
      out.writeInt(Float.floatToRawIntBits(value));
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  public BytesInput getBytes() {
    try {
      out.flush();
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
    return BytesInput.from(bytes);
  }

  public Encoding getEncoding() {
    return Encoding.PLAIN;
  }

  public long getBufferedSize() {
    return bytes.size();
  }

  public long getAllocatedSize() {
    return bytes.getCapacity();
  }

  public void reset() {
    bytes.reset();
  }

  public void close() {
    bytes.close();
  }

  public String memUsageString(String prefix) {
    return prefix + " " + bytes.size() + " bytes";
  }
}
