package hivekeeper.copy;

import hivekeeper.OrcBlocks;
import hivekeeper.WorkLimit;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.StripeInformation;
import org.apache.orc.impl.BitFieldReader;
import org.apache.orc.impl.BufferChunk;
import org.apache.orc.impl.InStream;
import org.apache.orc.impl.IntegerReader;
import org.apache.orc.impl.RunLengthIntegerReader;
import org.apache.orc.impl.RunLengthIntegerReaderV2;
import org.apache.orc.impl.StreamName;

/**
 * The numbers in the streams of an ORC file that its libraries take differently, so that a copy has other values than some readers saw.
 *
 * The one in Java, which makes the copy, cuts lengths and nanoseconds to 32 bits, lets milliseconds overflow, finds an empty text behind a
 * dictionary's last one, and does not look whether a row is NULL as a whole. The one in C++ (Arrow, Impala) fails, or finds other values; it
 * cuts decimals to 64 or 128 bits, and only then leaves out zeros behind the point. A second of nanoseconds is another time when it is copied.
 */
class OrcStreams {
  /** A hundred million years; as milliseconds they fit into 64 bits. */
  private static final long MOST_SECONDS = 1L << 52;
  private static final long NANOS_OF_A_SECOND = 1000000000L;
  private static final int ZEROS_BITS = 3;
  /** The C++ library holds decimals of so many digits in 64 bits, others in 128. */
  private static final int DIGITS_OF_A_LONG = 18;
  private static final int MOST_BYTES = 8 << 10;
  /** Their data are numbers. */
  private static final List<OrcProto.Type.Kind> NUMBERS = Arrays.asList(OrcProto.Type.Kind.SHORT, OrcProto.Type.Kind.INT, OrcProto.Type.Kind.LONG,
      OrcProto.Type.Kind.DATE, OrcProto.Type.Kind.TIMESTAMP, OrcProto.Type.Kind.TIMESTAMP_INSTANT);

  private final FileSystem fs;
  private final String path;
  private final Reader reader;
  private final List<OrcProto.Type> types;
  private final WorkLimit work;
  private final OrcBlocks blocks;
  /** Of all streams of the file, of which stripes may have millions. */
  private FSDataInputStream in;
  /** The last one that was opened, as it is stored: one with runs is opened twice. */
  private byte[] stored;
  private long storedAt;

  OrcStreams(FileSystem fs, String path, Reader reader, List<OrcProto.Type> types, WorkLimit work) {
    this.fs = fs;
    this.path = path;
    this.reader = reader;
    this.types = types;
    this.work = work;
    blocks = new OrcBlocks(reader.getCompressionKind());
  }

  void close() throws IOException {
    blocks.close();
    if (in != null) in.close();
  }

  /** Those that the library reads once more before the rows of a stripe: the lengths of its dictionaries' texts. */
  void takeDictionaries(OrcProto.StripeFooter footer) {
    for (int i = 0; i < footer.getColumnsCount(); i++) {
      if (isDictionary(footer.getColumns(i))) work.takeValues(footer.getColumns(i).getDictionarySize());
    }
  }

  /** Fails for a stripe with such numbers. */
  void require(StripeInformation stripe, OrcProto.StripeFooter footer) throws IOException {
    if (footer.getColumnsCount() != types.size()) {
      throw new IOException("a stripe has the encodings of " + footer.getColumnsCount() + " columns, its file has " + types.size());
    }
    requirePlaces(footer);
    Dictionary[] dictionaries = new Dictionary[types.size()];
    for (int i = 0; i < dictionaries.length; i++) {
      if (isDictionary(footer.getColumns(i))) dictionaries[i] = new Dictionary(footer.getColumns(i).getDictionarySize());
    }
    long at = stripe.getOffset();
    for (OrcProto.Stream each : footer.getStreamsList()) {
      OrcProto.Stream stream = (OrcProto.Stream) each;
      int column = stream.getColumn();
      if (stream.hasKind() && column >= 0 && column < types.size()) {
        if (hasRuns(stream, footer.getColumns(column))) new OrcRuns(open(stream, at), "a stream of the column " + column, work).requireWhole();
        if (column == 0 && stream.getKind() == OrcProto.Stream.Kind.PRESENT) requireRows(stream, at, stripe.getNumberOfRows());
        else if (dictionaries[column] != null) requireDictionary(stream, at, footer.getColumns(column), dictionaries[column]);
        else requireNumbers(stream, at, footer.getColumns(column));
        if (isDigits(stream)) requireDigits(stream, at);
      }
      at += stream.getLength();
    }
    for (int i = 0; i < dictionaries.length; i++) {
      if (dictionaries[i] != null && !dictionaries[i].isWhole()) throw new IOException("a dictionary of the column " + i + " lacks its texts");
    }
  }

  /**
   * The C++ library finds streams where the footer lists them. The Java library looks for those of the index first, then for those of the
   * data; others take no place there, or twice theirs if their kind is not known.
   */
  private static void requirePlaces(OrcProto.StripeFooter footer) throws IOException {
    boolean behindData = false;
    for (OrcProto.Stream each : footer.getStreamsList()) {
      OrcProto.Stream stream = (OrcProto.Stream) each;
      if (stream.getLength() == 0) continue;
      boolean isData = stream.hasKind() && StreamName.getArea(stream.getKind()) == StreamName.Area.DATA;
      boolean isIndex = stream.hasKind() && StreamName.getArea(stream.getKind()) == StreamName.Area.INDEX;
      boolean isPassed = stream.hasKind() && stream.getKind().name().startsWith("ENCRYPTED_");
      boolean isPlaced = !isPassed && (isData || isIndex && !behindData);
      if (!isPlaced) throw new IOException("a stream of the column " + stream.getColumn() + " is in another place for other readers");
      behindData = behindData || isData;
    }
  }

  /** Whether the library decodes it as numbers of version 2. */
  private boolean hasRuns(OrcProto.Stream stream, OrcProto.ColumnEncoding encoding) {
    if (!isSecond(encoding)) return false;
    OrcProto.Stream.Kind kind = stream.getKind();
    boolean isNumber = NUMBERS.contains(((OrcProto.Type) types.get(stream.getColumn())).getKind()) || isDictionary(encoding);
    return kind == OrcProto.Stream.Kind.LENGTH || kind == OrcProto.Stream.Kind.SECONDARY || kind == OrcProto.Stream.Kind.DATA && isNumber;
  }

  private static boolean isSecond(OrcProto.ColumnEncoding encoding) {
    return encoding.getKind().name().endsWith("_V2");
  }

  private static boolean isDictionary(OrcProto.ColumnEncoding encoding) {
    return encoding.getKind() == OrcProto.ColumnEncoding.Kind.DICTIONARY || encoding.getKind() == OrcProto.ColumnEncoding.Kind.DICTIONARY_V2;
  }

  /** Without its texts, or their lengths, the library takes those of the stripe before, or NULL. */
  private static class Dictionary {
    final int size;
    /** Of all texts; negative if it is not known. */
    long bytes;
    boolean hasTexts;

    Dictionary(int size) {
      this.size = size;
      bytes = size == 0 ? 0 : -1;
    }

    boolean isWhole() {
      return bytes == 0 || bytes > 0 && hasTexts;
    }
  }

  private void requireRows(OrcProto.Stream stream, long at, long count) throws IOException {
    work.takeValues(count);
    BitFieldReader bits = new BitFieldReader(open(stream, at));
    for (long i = 0; i < count; i++) {
      if (bits.next() == 0) throw new IOException("a row is NULL as a whole");
    }
  }

  private void requireDictionary(OrcProto.Stream stream, long at, OrcProto.ColumnEncoding encoding, Dictionary dictionary) throws IOException {
    OrcProto.Stream.Kind kind = stream.getKind();
    if (kind == OrcProto.Stream.Kind.DICTIONARY_DATA) {
      dictionary.hasTexts = open(stream, at).available() > 0;
    } else if (kind == OrcProto.Stream.Kind.LENGTH) {
      IntegerReader lengths = numbers(open(stream, at), encoding, false);
      dictionary.bytes = 0;
      for (int i = 0; i < dictionary.size; i++) dictionary.bytes += requireBelow(next(lengths), Integer.MAX_VALUE, "a length", stream);
      requireBelow(dictionary.bytes, Integer.MAX_VALUE, "a dictionary", stream);
    } else if (kind == OrcProto.Stream.Kind.DATA) {
      IntegerReader places = numbers(open(stream, at), encoding, false);
      while (places.hasNext()) requireBelow(next(places), dictionary.size, "a place in a dictionary", stream);
    }
  }

  private void requireNumbers(OrcProto.Stream stream, long at, OrcProto.ColumnEncoding encoding) throws IOException {
    OrcProto.Type.Kind type = ((OrcProto.Type) types.get(stream.getColumn())).getKind();
    boolean isTime = type == OrcProto.Type.Kind.TIMESTAMP || type == OrcProto.Type.Kind.TIMESTAMP_INSTANT;
    boolean isSeconds = isTime && stream.getKind() == OrcProto.Stream.Kind.DATA;
    boolean isNanos = isTime && stream.getKind() == OrcProto.Stream.Kind.SECONDARY;
    boolean isLength = stream.getKind() == OrcProto.Stream.Kind.LENGTH;
    if (!isSeconds && !isNanos && !isLength) return;
    IntegerReader numbers = numbers(open(stream, at), encoding, isSeconds);
    while (numbers.hasNext()) {
      long number = next(numbers);
      if (isLength) requireBelow(number, Integer.MAX_VALUE, "a length", stream);
      else if (isSeconds) requireBelow(Math.abs(number), MOST_SECONDS, "a number of seconds", stream);
      else requireBelow(Math.abs(nanos(number)), NANOS_OF_A_SECOND, "a number of nanoseconds", stream);
    }
  }

  private boolean isDigits(OrcProto.Stream stream) {
    boolean isDecimal = ((OrcProto.Type) types.get(stream.getColumn())).getKind() == OrcProto.Type.Kind.DECIMAL;
    return isDecimal && stream.getKind() == OrcProto.Stream.Kind.DATA;
  }

  /** Each decimal is a number of as many bytes as it needs, seven bits in each, the lowest ones first; all but its last byte are negative. */
  private void requireDigits(OrcProto.Stream stream, long at) throws IOException {
    int precision = ((OrcProto.Type) types.get(stream.getColumn())).getPrecision();
    int most = precision > 0 && precision <= DIGITS_OF_A_LONG ? Long.SIZE : 2 * Long.SIZE;
    InStream in = open(stream, at);
    byte[] some = new byte[MOST_BYTES];
    int bits = 0;
    for (int got = in.read(some, 0, MOST_BYTES); got >= 0; got = in.read(some, 0, MOST_BYTES)) {
      work.takeBytes(got);
      for (int i = 0; i < got; i++) {
        boolean isCut = bits >= most || (some[i] & 127) >>> Math.min(7, most - bits) != 0;
        if (isCut) throw new IOException("the column " + stream.getColumn() + " has a decimal of more than " + most + " bits");
        bits = some[i] < 0 ? bits + 7 : 0;
      }
    }
  }

  /** Zeros at its end are stored as their number, less one. Arrow's are negative before 1970. */
  private static long nanos(long stored) {
    long digits = stored >> ZEROS_BITS;
    int zeros = (int) stored & 7;
    if (zeros == 0 || digits != (int) digits) return digits;
    for (int i = 0; i <= zeros; i++) digits *= 10;
    return digits;
  }

  private long next(IntegerReader numbers) throws IOException {
    work.takeValues(1L);
    return numbers.next();
  }

  /** Also the lowest number of 64 bits, which Math.abs leaves, is refused. */
  private static long requireBelow(long number, long limit, String what, OrcProto.Stream stream) throws IOException {
    if (number < 0 || number >= limit) throw new IOException("the column " + stream.getColumn() + " claims " + what + " of " + number);
    return number;
  }

  private InStream open(OrcProto.Stream stream, long at) throws IOException {
    if (stream.getLength() > Integer.MAX_VALUE) throw new IOException("a stream of " + stream.getLength() + " bytes is longer than an array");
    if (stored == null || storedAt != at || stored.length != stream.getLength()) read((int) stream.getLength(), at);
    InStream.StreamOptions how = OrcStripes.options(blocks, reader.getCompressionSize());
    return InStream.create(path, new BufferChunk(ByteBuffer.wrap(stored), 0L), 0L, stored.length, how);
  }

  private void read(int length, long at) throws IOException {
    // There need not be room for both.
    stored = null;
    byte[] found = new byte[length];
    if (in == null) in = fs.open(new Path(path));
    if (length > 0) {
      in.seek(at);
      in.readFully(found);
    }
    stored = found;
    storedAt = at;
  }

  private static IntegerReader numbers(InStream in, OrcProto.ColumnEncoding encoding, boolean signed) throws IOException {
    if (isSecond(encoding)) return new RunLengthIntegerReaderV2(in, signed, false);
    return new RunLengthIntegerReader(in, signed);
  }
}
