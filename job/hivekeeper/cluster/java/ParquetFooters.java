package hivekeeper;

import java.io.IOException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;

/** Reads the footer of a Parquet file. */
class ParquetFooters {
  static final String ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata";
  // Differences in row metadata that do not change its meaning.
  private static final List<String> MEANINGLESS = Arrays.asList("nullable", "containsNull", "valueContainsNull", "comment");

  private static final int MOST_BOUND_BYTES = 4096;
  /** Jackson before 2.15 takes time quadratic in the number of digits. Looked for where digits begin, not once more from each of them. */
  private static final Pattern LONG_NUMBER = Pattern.compile("(?<![0-9])[0-9]{1001}");

  private ParquetFooters() {}

  static void read(Configuration conf, Footer footer, KnownForms known) throws Exception {
    ListedFile file = footer.file;
    DecodedFooter decoded = new DecodedFooter(ParquetTail.footer(file.system(conf), file.place(), file.begin, file.length));
    ParquetMetadata metadata = new ParquetMetadataConverter().fromParquetMetadata(decoded.metadata);
    ColumnChunks.requireConsistent(metadata, decoded.metadata.getNum_rows());
    addRows(metadata, footer);
    addRowGroups(metadata, footer);
    String identity = decoded.raw.identity();
    Map<String, Object> meaning = known.get(identity);
    if (meaning == null) {
      meaning = meaningOf(metadata, decoded);
      known.put(identity, meaning);
    }
    footer.form.putAll(meaning);
    footer.form.put("identity", identity);
    footer.form.put("layout", decoded.raw.layout());
    footer.form.put("undecodable", Undecodable.find(conf, decoded, metadata));
  }

  /** What comes from the row groups. */
  private static void addRows(ParquetMetadata metadata, Footer footer) {
    TreeSet<String> codecs = new TreeSet<String>();
    TreeSet<String> blooms = new TreeSet<String>();
    for (BlockMetaData block : metadata.getBlocks()) {
      footer.rows += block.getRowCount();
      for (ColumnChunkMetaData chunk : block.getColumns()) {
        ColumnChunks.requireInside(chunk, footer.file.length);
        String codec = chunk.getCodec().name().toLowerCase(Locale.ROOT);
        codecs.add(codec.equals("uncompressed") ? "none" : codec);
        if (chunk.getBloomFilterOffset() >= 0) blooms.add(chunk.getPath().toDotString());
        addChunk(footer, Footer.dotted(Arrays.asList(chunk.getPath().toArray())), chunk);
      }
    }
    if (codecs.isEmpty()) {
      footer.settled = false;
      codecs.add("none");
      for (String[] path : metadata.getFileMetaData().getSchema().getPaths()) {
        // Each repeats the names of the structs around it; in row groups a footer has to do that itself.
        footer.columns.put(footer.nameOf(Arrays.asList(path)), new ColumnFacts());
      }
    }
    footer.form.put("codec", Footer.joined(codecs));
    footer.form.put("blooms", new ArrayList<String>(blooms));
  }

  /** From the first byte of a column to the end of the last one: their places may be claimed in any order. */
  private static void addRowGroups(ParquetMetadata metadata, Footer footer) {
    if (!footer.beginRowGroups(metadata.getBlocks().size())) return;
    for (BlockMetaData block : metadata.getBlocks()) {
      if (block.getRowCount() == 0) continue;
      long start = Long.MAX_VALUE;
      long end = 0;
      for (ColumnChunkMetaData chunk : block.getColumns()) {
        start = Math.min(start, chunk.getStartingPos());
        end = Math.max(end, chunk.getStartingPos() + chunk.getTotalSize());
      }
      footer.addRowGroup(start, end - start, block.getRowCount());
    }
  }

  /** What the bytes say that `RawFooter.identity` covers. */
  private static Map<String, Object> meaningOf(ParquetMetadata metadata, DecodedFooter decoded) throws Exception {
    ParquetSchemaText schema = new ParquetSchemaText(metadata.getFileMetaData().getSchema(), decoded.unknownTypes);
    Map<String, String> keys = metadata.getFileMetaData().getKeyValueMetaData();
    Map<String, Object> meaning = new LinkedHashMap<String, Object>();
    meaning.put("schema", schema.text());
    meaning.put("writer", writer(metadata.getFileMetaData().getCreatedBy(), keys));
    meaning.put("calendar", calendar(schema, keys));
    meaning.put("zone", "");
    meaning.put("keys", meaningfulKeys(keys, metadata.getFileMetaData().getSchema()));
    meaning.put("single", decoded.raw.hasOwnLabels());
    return meaning;
  }

  private static void addChunk(Footer footer, String name, ColumnChunkMetaData chunk) {
    ColumnFacts facts = (ColumnFacts) footer.columns.get(name);
    if (facts == null) {
      facts = new ColumnFacts(chunk.getPrimitiveType().comparator(), chunk.getPrimitiveType().stringifier());
      footer.columns.put(name, facts);
    }
    facts.values = Footer.sum(facts.values, chunk.getValueCount());
    Statistics<?> statistics = chunk.getStatistics();
    boolean counted = statistics != null && statistics.isNumNullsSet();
    facts.nullsKnown = facts.nullsKnown && counted;
    if (counted) facts.nulls += statistics.getNumNulls();
    if (statistics != null && (isLong(statistics.getMinBytes()) || isLong(statistics.getMaxBytes()))) {
      facts.boundsKnown = false;
    } else if (statistics != null && statistics.hasNonNullValue()) {
      facts.addBounds(statistics.genericGetMin(), statistics.genericGetMax());
    } else if (!counted || statistics.getNumNulls() < chunk.getValueCount()) {
      facts.boundsKnown = false;
    }
  }

  /** The text of a decimal of a million bytes takes a minute. Libraries write no such bounds (PARQUET-400). */
  private static boolean isLong(byte[] bound) {
    return bound != null && bound.length > MOST_BOUND_BYTES;
  }

  private static String writer(String createdBy, Map<String, String> keys) {
    if (keys.containsKey(Footer.SPARK + "version") || keys.containsKey(ROW_METADATA)) return "spark";
    if (createdBy == null || createdBy.trim().isEmpty()) return "unknown";
    String name = createdBy.trim().toLowerCase(Locale.ROOT).split("[ (]", 2)[0];
    return name.startsWith("parquet-cpp") ? "arrow" : name;
  }

  /** Spark's own keys give the calendar of ancient dates; other writers do not record it. */
  private static String calendar(ParquetSchemaText schema, Map<String, String> keys) {
    if (!schema.hasInt96 && !schema.hasDates) return "none";
    String version = (String) keys.get(Footer.SPARK + "version");
    if (version == null) return "unknown";
    boolean legacy = schema.hasDates && (keys.containsKey(Footer.SPARK + "legacyDateTime") || isBefore(version, 3, 0))
        || schema.hasInt96 && (keys.containsKey(Footer.SPARK + "legacyINT96") || isBefore(version, 3, 1));
    return legacy ? "legacy" : "corrected";
  }

  private static boolean isBefore(String version, int major, int minor) {
    String[] parts = version.split("[^0-9]+", 3);
    int foundMajor = Integer.parseInt(parts[0]);
    int foundMinor = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
    return foundMajor < major || foundMajor == major && foundMinor < minor;
  }

  /** All keys except Spark's own, and Spark's row metadata if it adds to the physical schema. */
  private static List<String> meaningfulKeys(Map<String, String> keys, MessageType schema) throws Exception {
    TreeSet<String> names = new TreeSet<String>();
    for (String key : keys.keySet()) {
      if (!key.startsWith(Footer.SPARK)) names.add(key);
    }
    String json = (String) keys.get(ROW_METADATA);
    if (json != null) {
      Object tree = rowMetadata(json);
      String said = Json.write(withoutMeaningless(tree));
      boolean telling = said.contains("\"metadata\"") || said.contains("\"udt\"") || said.contains("\"interval");
      String unfit = RowSchema.unfitIn(json);
      if (unfit.isEmpty() && namesOtherColumns(tree, schema)) unfit = "columns";
      if (telling || !unfit.isEmpty()) names.add(ROW_METADATA + "#" + (unfit.isEmpty() ? "" : unfit + "#") + hash(said));
    }
    return new ArrayList<String>(names);
  }

  /** As Jackson's plain lists, maps and values. */
  static Object rowMetadata(String json) throws IOException {
    if (LONG_NUMBER.matcher(json).find()) throw new IllegalStateException("its row metadata has a number of more than 1000 digits");
    return Json.readAny(json);
  }

  /** Whether a struct of the row metadata, also in lists and maps, has other fields than the file's own schema. */
  static boolean namesOtherColumns(Object said, Type type) {
    if (!(said instanceof Map)) return false;
    Map<String, Object> kind = (Map) said;
    // Spark passes over what names no fields: only a struct's names can hide columns.
    if (kind.get("fields") instanceof List) return namesOtherFields((List) kind.get("fields"), type);
    if (kind.get("elementType") instanceof Map) return namesOtherColumns(kind.get("elementType"), elementOf(type));
    if (!(kind.get("keyType") instanceof Map) && !(kind.get("valueType") instanceof Map)) return false;
    GroupType entry = entryOf(type);
    if (entry == null || entry.getFieldCount() != 2) return true;
    return namesOtherColumns(kind.get("keyType"), entry.getType(0)) || namesOtherColumns(kind.get("valueType"), entry.getType(1));
  }

  private static boolean namesOtherFields(List<?> fields, Type type) {
    if (type == null || type.isPrimitive() || fields.size() != type.asGroupType().getFieldCount()) return true;
    TreeSet<String> names = new TreeSet<String>();
    for (Object field : fields) {
      Object name = field instanceof Map ? ((Map) field).get("name") : null;
      if (!(name instanceof String) || !names.add((String) name) || !type.asGroupType().containsField((String) name)) return true;
      if (namesOtherColumns(((Map) field).get("type"), type.asGroupType().getType((String) name))) return true;
    }
    return false;
  }

  /** What Spark takes for the elements of a list, of one of the older forms, too; null if there is nothing in it (ParquetReadSupport). */
  private static Type elementOf(Type list) {
    if (list == null || list.isRepetition(Type.Repetition.REPEATED) && list.getLogicalTypeAnnotation() == null) return list;
    GroupType level = entryOf(list);
    if (level == null || level.getFieldCount() == 0) return null;
    boolean isElement = level.getFieldCount() > 1 || level.getName().equals("array") || level.getName().equals(list.getName() + "_tuple");
    return isElement ? level : level.getType(0);
  }

  /** The group in the middle of a list or map, or null. */
  private static GroupType entryOf(Type type) {
    if (type == null || type.isPrimitive() || type.asGroupType().getFieldCount() != 1) return null;
    Type level = type.asGroupType().getType(0);
    return level.isPrimitive() ? null : level.asGroupType();
  }

  /** Row metadata without nullability, comments and empty values. */
  private static Object withoutMeaningless(Object node) {
    if (node instanceof List) {
      List<Object> out = new ArrayList<Object>();
      for (Object item : (List<?>) node) out.add(withoutMeaningless(item));
      return out;
    }
    if (!(node instanceof Map)) return node;
    Map<String, Object> out = new TreeMap<String, Object>();
    for (Map.Entry<String, Object> entry : ((Map<String, Object>) node).entrySet()) {
      Object value = withoutMeaningless(entry.getValue());
      boolean empty = value instanceof Map && ((Map) value).isEmpty();
      if (!empty && !MEANINGLESS.contains(entry.getKey())) out.put((String) entry.getKey(), value);
    }
    return out;
  }

  private static String hash(String text) throws Exception {
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes("UTF-8"));
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < 6; i++) out.append(Integer.toHexString(256 + (digest[i] & 255)).substring(1));
    return out.toString();
  }
}
