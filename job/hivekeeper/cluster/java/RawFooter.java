package hivekeeper;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A Parquet footer as the raw bytes of its top-level fields: 1 version, 2 schema, 3 rows, 4 row groups, 5 key-value metadata,
 * 6 created_by, 7 column orders, 8 and 9 encryption (parquet-format, `FileMetaData`).
 *
 * Fields 2, 5 and 6 decide how readers understand equal values. A copy keeps their bytes, and with them annotations that are newer than
 * this Parquet library; except a count of the rows of a source (`PandasLabels`), which would not be true of a copy with other rows.
 */
public class RawFooter {
  public static final int SCHEMA = 2;
  public static final int ROWS = 3;
  public static final int ROW_GROUPS = 4;
  public static final int ENCRYPTION = 8;
  private static final int LAST_KNOWN = 9;
  private static final int KEY_VALUES = 5;
  private static final int[] MEANING = {SCHEMA, KEY_VALUES, 6};
  private static final int[] TYPES = {
    0, ThriftStruct.I32, ThriftStruct.LIST, ThriftStruct.I64, ThriftStruct.LIST, ThriftStruct.LIST, ThriftStruct.BINARY, ThriftStruct.LIST
  };

  private static final List<byte[]> NONE = new ArrayList<byte[]>();

  public final ThriftStruct fields;
  private final byte[] keyValues;

  public RawFooter(byte[] footer) {
    fields = new ThriftStruct(footer);
    for (int id = 1; id < TYPES.length; id++) {
      if (fields.has(id) && fields.type(id) != TYPES[id]) {
        throw new IllegalStateException("its footer is malformed: field " + id + " has another type");
      }
    }
    for (int id = 1; id <= 4; id++) {
      if (!fields.has(id)) throw new IllegalStateException("its footer is malformed: field " + id + " is missing");
    }
    keyValues = PandasLabels.withoutCount(fields.body(KEY_VALUES));
  }

  /** This footer without its row groups. */
  public byte[] withoutRowGroups() {
    Map<Integer, byte[]> none = new HashMap<Integer, byte[]>();
    none.put(ROW_GROUPS, ThriftStruct.listOf(NONE));
    return fields.with(none);
  }

  /** This footer with other rows, and with the key-value metadata that a copy gets: a count would not be true of them. */
  public byte[] withRows(long rows, List<byte[]> groups) {
    Map<Integer, byte[]> changed = new HashMap<Integer, byte[]>();
    changed.put(ROWS, ThriftStruct.number(rows));
    changed.put(ROW_GROUPS, ThriftStruct.listOf(groups));
    if (fields.has(KEY_VALUES)) changed.put(KEY_VALUES, keyValues);
    return fields.with(changed);
  }

  public byte[] withoutRows() {
    return withRows(0, NONE);
  }

  /** A hash; the same for two files if row groups of both can stand in one footer. */
  public String layout() throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    digest.update(withoutRows());
    return Footer.hex(digest);
  }

  /** Whether it labels its rows in a way that is not true of them together with those of another file. */
  public boolean hasOwnLabels() {
    return PandasLabels.areOwn(keyValues);
  }

  /** The bytes that a copy gets. */
  private byte[] kept(int id) {
    return id == KEY_VALUES ? keyValues : fields.body(id);
  }

  /** The first top-level field that parquet-format 2.11 does not have, 0 if there is none. */
  public int unknownField() {
    for (Integer id : fields.ids()) {
      if (id.intValue() < 1 || id.intValue() > LAST_KNOWN) return id.intValue();
    }
    return 0;
  }

  /** Whether the bytes that a copy gets of schema, key-value metadata and created_by are the same. */
  public boolean meansLike(RawFooter other) {
    for (int id : MEANING) {
      if (!Arrays.equals(kept(id), other.kept(id))) return false;
    }
    return true;
  }

  /** 32 hex digits that are equal if `meansLike` holds: SHA-256 over each field with its length, -1 if it is absent. */
  public String identity() throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    for (int id : MEANING) {
      byte[] body = kept(id);
      digest.update(ByteBuffer.allocate(4).putInt(body == null ? -1 : body.length).array());
      if (body != null) digest.update(body);
    }
    return Footer.hex(digest);
  }

  /** This footer's rows, row groups and column orders (3, 4, 7) with version, schema, key-value metadata and created_by of `source`. */
  public byte[] withMeaningOf(RawFooter source) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    int last = 0;
    for (int id = 1; id < TYPES.length; id++) {
      boolean own = id == 3 || id == 4 || id == 7;
      byte[] body = (own ? this : source).kept(id);
      if (body == null) continue;
      out.write((id - last) << 4 | TYPES[id]);
      out.write(body, 0, body.length);
      last = id;
    }
    out.write(0);
    return out.toByteArray();
  }
}
