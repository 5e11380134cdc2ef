package hivekeeper;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The fields of a struct in Thrift's compact protocol, each as its raw bytes, so that what no library here understands can be kept.
 *
 * The whole struct is walked before anything is allocated for its contents: a list that claims more elements than there are bytes, a
 * field that appears twice, structs nested too deeply, or numbers that other readers cut to fewer bits are an IllegalStateException.
 */
public class ThriftStruct {
  /** A boolean is in the type of its field. */
  public static final int FALSE = 2;
  public static final int I32 = 5;
  public static final int I64 = 6;
  public static final int BINARY = 8;
  public static final int LIST = 9;
  public static final int STRUCT = 12;
  private static final int MOST_LEVELS = 40;
  private static final int LONG_FORM = 15;

  private final byte[] bytes;
  private final Map<Integer, byte[]> bodies = new TreeMap<Integer, byte[]>();
  private final Map<Integer, Integer> types = new TreeMap<Integer, Integer>();
  private final Map<Integer, Integer> ends = new TreeMap<Integer, Integer>();
  private final int start;
  private int at;

  public ThriftStruct(byte[] bytes) {
    this(bytes, 0);
  }

  /** A struct that begins at `start`; what follows it is left alone. */
  public ThriftStruct(byte[] bytes, int start) {
    this.bytes = bytes;
    this.start = start;
    at = start;
    int id = 0;
    int head = next();
    while (head != 0) {
      id = idAfter(id, head);
      int from = at;
      skip(head & 15, false, 0);
      if (bodies.put(id, Arrays.copyOfRange(bytes, from, at)) != null) throw malformed("field " + id + " appears twice");
      types.put(id, head & 15);
      ends.put(id, at);
      head = next();
    }
  }

  /** The structs of a list's raw bytes. */
  public static List<ThriftStruct> list(byte[] body) {
    List<ThriftStruct> found = new ArrayList<ThriftStruct>();
    int[] start = {1};
    int size = (body[0] & 255) >>> 4;
    if (size == LONG_FORM) size = (int) varint(body, start);
    if ((body[0] & 15) != STRUCT) throw malformed("a list of type " + (body[0] & 15) + " instead of structs");
    int at = start[0];
    for (int i = 0; i < size; i++) {
      ThriftStruct one = new ThriftStruct(body, at);
      found.add(one);
      at = one.at;
    }
    return found;
  }

  /** In bytes. */
  public int length() {
    return at - start;
  }

  public Iterable<Integer> ids() {
    return bodies.keySet();
  }

  public boolean has(int id) {
    return bodies.containsKey(id);
  }

  /** Null if the field is absent. */
  public byte[] body(int id) {
    return (byte[]) bodies.get(id);
  }

  /** 0 if the field is absent. */
  public int type(int id) {
    Integer type = (Integer) types.get(id);
    return type == null ? 0 : type.intValue();
  }

  /** Where a field that is there ends, in the bytes that this was made of. */
  public int endOf(int id) {
    return ((Integer) ends.get(id)).intValue();
  }

  /** The value of an integer field. */
  public long integer(int id) {
    return zigzag(varint(body(id), new int[] {0}));
  }

  /** The bytes of a text or binary field. */
  public byte[] binary(int id) {
    int[] start = {0};
    int size = (int) varint(body(id), start);
    return Arrays.copyOfRange(body(id), start[0], start[0] + size);
  }

  /** This struct with other bodies of fields that it has; null leaves a field out. All others keep their bytes. */
  public byte[] with(Map<Integer, byte[]> changed) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    int last = 0;
    for (Integer id : bodies.keySet()) {
      byte[] body = (byte[]) (changed.containsKey(id) ? changed.get(id) : bodies.get(id));
      if (body == null) continue;
      int step = id.intValue() - last;
      out.write((step > 0 && step < LONG_FORM ? step : 0) << 4 | type(id.intValue()));
      if (step <= 0 || step >= LONG_FORM) writeVarint(out, id.longValue() << 1);
      out.write(body, 0, body.length);
      last = id.intValue();
    }
    out.write(0);
    return out.toByteArray();
  }

  /** The body of a list of structs. */
  public static byte[] listOf(List<byte[]> structs) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    int size = structs.size();
    out.write(Math.min(size, LONG_FORM) << 4 | STRUCT);
    if (size >= LONG_FORM) writeVarint(out, size);
    for (byte[] one : structs) out.write(one, 0, ((byte[]) one).length);
    return out.toByteArray();
  }

  /** The body of an integer field. */
  public static byte[] number(long value) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    writeVarint(out, (value << 1) ^ (value >> 63));
    return out.toByteArray();
  }

  private static void writeVarint(ByteArrayOutputStream out, long value) {
    for (long left = value; ; left >>>= 7) {
      boolean isLast = left >>> 7 == 0;
      out.write((int) (left & 127) | (isLast ? 0 : 128));
      if (isLast) return;
    }
  }

  private int idAfter(int last, int head) {
    int step = head >>> 4;
    long id = step == 0 ? zigzag(varint32()) : last + step;
    if (id < 0 || id > Short.MAX_VALUE) throw malformed("field " + id);
    return (int) id;
  }

  private void skip(int type, boolean inList, int level) {
    if (level > MOST_LEVELS) throw malformed("values are nested deeper than " + MOST_LEVELS + " levels");
    if (type == 1 || type == 2) {
      // A boolean is in the type itself, except in lists.
      if (inList) skipBytes(1L);
    } else if (type == 3) {
      skipBytes(1L);
    } else if (type == 4 || type == I32) {
      varint32();
    } else if (type == I64) {
      varint();
    } else if (type == 7) {
      skipBytes(8L);
    } else if (type == BINARY) {
      skipBytes(varint32());
    } else if (type == LIST || type == 10) {
      skipList(level);
    } else if (type == 11) {
      skipMap(level);
    } else if (type == STRUCT) {
      skipStruct(level);
    } else {
      throw malformed("an unknown type " + type);
    }
  }

  private void skipList(int level) {
    int head = next();
    long size = head >>> 4;
    if (size == LONG_FORM) size = varint32();
    // No element takes less than a byte.
    if (size < 0 || size > bytes.length - at) throw malformed("a list claims " + size + " elements");
    for (long i = 0; i < size; i++) skip(head & 15, true, level + 1);
  }

  private void skipMap(int level) {
    long size = varint32();
    if (size < 0 || size > bytes.length - at) throw malformed("a map claims " + size + " entries");
    int kinds = size == 0 ? 0 : next();
    for (long i = 0; i < size; i++) {
      skip(kinds >>> 4, true, level + 1);
      skip(kinds & 15, true, level + 1);
    }
  }

  private void skipStruct(int level) {
    int head = next();
    while (head != 0) {
      idAfter(0, head);
      skip(head & 15, false, level + 1);
      head = next();
    }
  }

  private int next() {
    if (at >= bytes.length) throw malformed("it ends too early");
    return bytes[at++] & 255;
  }

  private void skipBytes(long count) {
    if (count < 0 || count > bytes.length - at) throw malformed("a value claims " + count + " bytes");
    at += (int) count;
  }

  /** Libraries read a number of 32 bits and drop what is above. */
  private long varint32() {
    long value = varint();
    if (value >>> 32 != 0) throw malformed("a number of 32 bits is " + value);
    return value;
  }

  private long varint() {
    int[] place = {at};
    long value = varint(bytes, place);
    at = place[0];
    return value;
  }

  private static long varint(byte[] from, int[] place) {
    long value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (place[0] >= from.length) throw malformed("it ends too early");
      byte next = from[place[0]++];
      value |= (long) (next & 127) << shift;
      if (next >= 0) return value;
    }
    throw malformed("a number takes more than ten bytes");
  }

  private static long zigzag(long value) {
    return (value >>> 1) ^ -(value & 1);
  }

  private static IllegalStateException malformed(String what) {
    return new IllegalStateException("its metadata are malformed: " + what);
  }
}
