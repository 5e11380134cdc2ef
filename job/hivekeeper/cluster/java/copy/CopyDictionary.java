package hivekeeper.copy;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.Arrays;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.Dictionary;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.page.DictionaryPage;
import org.apache.parquet.column.values.ValuesWriter;
import org.apache.parquet.column.values.dictionary.DictionaryValuesWriter;
import org.apache.parquet.column.values.dictionary.IntList;
import org.apache.parquet.column.values.plain.FixedLenByteArrayPlainValuesWriter;
import org.apache.parquet.column.values.plain.PlainValuesWriter;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;

/**
 * The dictionary of a column in a row group.
 *
 * Its values are found by a hash that nobody else can compute. The library's own dictionaries have one that everybody knows: a file of
 * 100 KB can hold a hundred thousand values of one hash, each of which is then compared with all others, for minutes; one of a megabyte
 * for hours. They also keep the page that each of their texts came from.
 *
 * A dictionary that has one of 0.0 and -0.0 has both: parquet-mr skips a row group whose dictionary lacks the value of a filter, and takes
 * them for different values; SQL takes them for equal. A source without dictionary has no such row group.
 */
class CopyDictionary extends DictionaryValuesWriter {
  private static final Encoding ENCODING = Encoding.PLAIN_DICTIONARY;
  private static final long SEED = new SecureRandom().nextLong();
  private static final int FIRST_SLOTS = 64;
  private static final int INT96_BYTES = 12;

  private final PrimitiveTypeName type;
  private final boolean isNumber;
  /** Of each value, or 0 for texts, which have their own. */
  private final int length;
  private final boolean isKept;
  /** Open addressing: the place of a value, plus one; 0 is free. At most half of them are taken. */
  private int[] slots;
  /** By place: the bits of a number, or the hash of a text. */
  private long[] keys;
  /** The texts and other bytes, one after the other, and by place where each ends. */
  private byte[] texts;
  private int[] ends;
  private int size;
  private boolean hasZeros;

  /** A dictionary that `isKept` is written even if plain values take less. */
  CopyDictionary(ColumnDescriptor column, ParquetProperties properties, boolean isKept) {
    super(properties.getDictionaryPageSizeThreshold(), ENCODING, ENCODING, properties.getAllocator());
    type = column.getPrimitiveType().getPrimitiveTypeName();
    boolean isLong = type == PrimitiveTypeName.INT64 || type == PrimitiveTypeName.DOUBLE;
    isNumber = isLong || type == PrimitiveTypeName.INT32 || type == PrimitiveTypeName.FLOAT;
    if (isNumber) length = isLong ? Long.BYTES : Integer.BYTES;
    else if (type == PrimitiveTypeName.BINARY) length = 0;
    else length = type == PrimitiveTypeName.INT96 ? INT96_BYTES : column.getPrimitiveType().getTypeLength();
    this.isKept = isKept;
    clearDictionaryContent();
  }

  public void writeInteger(int value) {
    encodedValues.add(placeOf(value));
  }

  public void writeLong(long value) {
    encodedValues.add(placeOf(value));
  }

  public void writeDouble(double value) {
    if (value == 0 && !hasZeros) addZeros(Double.doubleToRawLongBits(0.0), Double.doubleToRawLongBits(-0.0));
    encodedValues.add(placeOf(Double.doubleToRawLongBits(value)));
  }

  public void writeFloat(float value) {
    if (value == 0 && !hasZeros) addZeros(Float.floatToRawIntBits((float) 0.0), Float.floatToRawIntBits((float) -0.0));
    encodedValues.add(placeOf(Float.floatToRawIntBits(value)));
  }

  public void writeBytes(Binary value) {
    encodedValues.add(add(value));
  }

  private void addZeros(long one, long other) {
    placeOf(one);
    placeOf(other);
    hasZeros = true;
  }

  /** The place of a text, which is added if need be. */
  int add(Binary text) {
    ByteBuffer bytes = arrayOf(text);
    int start = bytes.arrayOffset() + bytes.position();
    int count = bytes.remaining();
    long hash = RowDigest.hash(bytes.array(), start, count, SEED);
    int at = slotOf(bytes.array(), start, count, hash);
    if (slots[at] != 0) return slots[at] - 1;
    int end = startOf(size);
    texts = grown(texts, end + (long) count);
    System.arraycopy(bytes.array(), start, texts, end, count);
    if (ends.length == size) ends = Arrays.copyOf(ends, 2 * size);
    ends[size] = end + count;
    return addKey(at, hash, length == 0 ? Integer.BYTES + count : length);
  }

  /** Whether there is room for all texts of another one, and there are not more than `most` then. */
  boolean hasRoomFor(Dictionary others, long most) {
    long bytes = dictionaryByteSize;
    long count = size;
    for (int i = 0; i <= others.getMaxId(); i++) {
      Binary text = others.decodeToBinary(i);
      if (has(text)) continue;
      bytes += Integer.BYTES + text.length();
      count++;
    }
    return bytes <= maxDictionaryByteSize && count <= most;
  }

  private boolean has(Binary text) {
    ByteBuffer bytes = arrayOf(text);
    int start = bytes.arrayOffset() + bytes.position();
    return slots[slotOf(bytes.array(), start, bytes.remaining(), RowDigest.hash(bytes.array(), start, bytes.remaining(), SEED))] != 0;
  }

  private static ByteBuffer arrayOf(Binary text) {
    ByteBuffer bytes = text.toByteBuffer();
    return bytes.hasArray() ? bytes : ByteBuffer.wrap(text.getBytes());
  }

  /** The slot that has the text, or a free one for it. */
  private int slotOf(byte[] bytes, int start, int count, long hash) {
    int mask = slots.length - 1;
    int at = (int) hash & mask;
    while (slots[at] != 0 && !(keys[slots[at] - 1] == hash && isText(slots[at] - 1, bytes, start, count))) at = at + 1 & mask;
    return at;
  }

  private int placeOf(long bits) {
    int mask = slots.length - 1;
    int at = (int) slotOf(bits) & mask;
    for (; slots[at] != 0; at = at + 1 & mask) {
      if (keys[slots[at] - 1] == bits) return slots[at] - 1;
    }
    return addKey(at, bits, length);
  }

  private int addKey(int slot, long key, int bytes) {
    if (keys.length == size) keys = Arrays.copyOf(keys, 2 * size);
    keys[size++] = key;
    slots[slot] = size;
    dictionaryByteSize += bytes;
    if (2 * size > slots.length) growSlots();
    return size - 1;
  }

  private void growSlots() {
    slots = new int[2 * slots.length];
    int mask = slots.length - 1;
    for (int place = 0; place < size; place++) {
      int at = (int) slotOf(keys[place]) & mask;
      while (slots[at] != 0) at = at + 1 & mask;
      slots[at] = place + 1;
    }
  }

  /** The hash of a text is one that only this process can compute already. */
  private long slotOf(long key) {
    return isNumber ? RowDigest.spread(key ^ SEED) : key;
  }

  private int startOf(int place) {
    return place == 0 ? 0 : ends[place - 1];
  }

  private boolean isText(int place, byte[] bytes, int offset, int count) {
    long start = Platform.BYTE_ARRAY_OFFSET + startOf(place);
    boolean isAsLong = ends[place] - startOf(place) == count;
    return isAsLong && ByteArrayMethods.arrayEquals(texts, start, bytes, (long) (Platform.BYTE_ARRAY_OFFSET + offset), count);
  }

  private static byte[] grown(byte[] bytes, long wanted) {
    if (wanted > Integer.MAX_VALUE) throw new IllegalStateException("the texts of a dictionary have " + wanted + " bytes");
    return wanted <= bytes.length ? bytes : Arrays.copyOf(bytes, (int) Math.max(wanted, Math.min(2L * bytes.length, Integer.MAX_VALUE)));
  }

  public boolean isCompressionSatisfying(long rawSize, long encodedSize) {
    return isKept || super.isCompressionSatisfying(rawSize, encodedSize);
  }

  /** Only what pages use. */
  public DictionaryPage toDictPageAndClose() {
    if (lastUsedDictionarySize == 0) return null;
    int bytes = lastUsedDictionaryByteSize;
    ValuesWriter page = isNumber || length == 0
        ? (ValuesWriter) new PlainValuesWriter(bytes, maxDictionaryByteSize, allocator)
        : (ValuesWriter) new FixedLenByteArrayPlainValuesWriter(length, bytes, maxDictionaryByteSize, allocator);
    for (int place = 0; place < lastUsedDictionarySize; place++) write(place, page);
    return dictPage(page);
  }

  protected void fallBackDictionaryEncodedData(ValuesWriter plain) {
    for (IntList.IntIterator places = encodedValues.iterator(); places.hasNext(); ) write(places.next(), plain);
  }

  private void write(int place, ValuesWriter to) {
    if (type == PrimitiveTypeName.INT32) to.writeInteger((int) keys[place]);
    else if (type == PrimitiveTypeName.INT64) to.writeLong(keys[place]);
    else if (type == PrimitiveTypeName.DOUBLE) to.writeDouble(Double.longBitsToDouble(keys[place]));
    else if (type == PrimitiveTypeName.FLOAT) to.writeFloat(Float.intBitsToFloat((int) keys[place]));
    else to.writeBytes(Binary.fromConstantByteArray(texts, startOf(place), ends[place] - startOf(place)));
  }

  protected int getDictionarySize() {
    return size;
  }

  protected void clearDictionaryContent() {
    size = 0;
    hasZeros = false;
    slots = new int[FIRST_SLOTS];
    keys = new long[FIRST_SLOTS];
    texts = new byte[FIRST_SLOTS];
    ends = new int[FIRST_SLOTS];
  }
}
