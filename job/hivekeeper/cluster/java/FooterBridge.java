package hivekeeper;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.orc.BooleanColumnStatistics;
import org.apache.orc.ColumnStatistics;
import org.apache.orc.DateColumnStatistics;
import org.apache.orc.DecimalColumnStatistics;
import org.apache.orc.DoubleColumnStatistics;
import org.apache.orc.IntegerColumnStatistics;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.StringColumnStatistics;
import org.apache.orc.StripeInformation;
import org.apache.orc.TimestampColumnStatistics;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.RecordReaderImpl;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.PrimitiveStringifier;
import org.apache.parquet.schema.PrimitiveType;

/**
 * Reads the footers of many Parquet or ORC files in one call and merges them per unit and form.
 * Touches nothing. Compiled at run time by Janino: Java 7, casts instead of generics, no lambdas.
 */
public class FooterBridge {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String SPARK = "org.apache.spark.";
  private static final String ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata";

  /** `units` is {unit: [path, …]}; the answer is described in cluster/rows.py. */
  public String read(final Configuration conf, final String format, String units, int threads) throws Exception {
    Map wanted = (Map) JSON.readValue(units, Map.class);
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      Map pending = new LinkedHashMap();
      for (Iterator it = wanted.entrySet().iterator(); it.hasNext();) {
        Map.Entry unit = (Map.Entry) it.next();
        List futures = new ArrayList();
        for (Iterator paths = ((List) unit.getValue()).iterator(); paths.hasNext();) {
          final String path = (String) paths.next();
          futures.add(pool.submit(new Callable() {
            public Object call() {
              return readOne(conf, format, path);
            }
          }));
        }
        pending.put(unit.getKey(), futures);
      }
      Map answer = new LinkedHashMap();
      for (Iterator it = pending.entrySet().iterator(); it.hasNext();) {
        Map.Entry unit = (Map.Entry) it.next();
        answer.put(unit.getKey(), merge((List) unit.getValue()));
      }
      return JSON.writeValueAsString(answer);
    } finally {
      pool.shutdownNow();
    }
  }

  /** What one file says, or why it cannot be read. */
  static class Footer {
    String path;
    String unreadable;
    long rows;
    boolean settled = true;
    Map form = new LinkedHashMap();
    Map columns = new TreeMap();
  }

  /** Statistics of one column. Bounds become unknown as soon as one part with values has none. */
  static class Facts {
    long values;
    long nulls;
    boolean nullsKnown = true;
    boolean boundsKnown = true;
    Object low;
    Object high;
    Comparator order;
    PrimitiveStringifier printer;

    void add(Object otherLow, Object otherHigh) {
      if (otherLow == null || otherHigh == null) {
        boundsKnown = false;
        return;
      }
      low = low == null || compare(otherLow, low) < 0 ? otherLow : low;
      high = high == null || compare(otherHigh, high) > 0 ? otherHigh : high;
    }

    int compare(Object left, Object right) {
      return order == null ? ((Comparable) left).compareTo(right) : order.compare(left, right);
    }

    void merge(Facts other) {
      values += other.values;
      nulls += other.nulls;
      nullsKnown = nullsKnown && other.nullsKnown;
      boundsKnown = boundsKnown && other.boundsKnown;
      if (other.low != null) {
        add(other.low, other.high);
      }
    }

    List print() {
      List out = new ArrayList();
      out.add(Long.valueOf(values));
      out.add(nullsKnown ? Long.valueOf(nulls) : null);
      out.add(boundsKnown && low != null ? text(low) : null);
      out.add(boundsKnown && high != null ? text(high) : null);
      return out;
    }

    private String text(Object value) {
      // Writers differ in how they state a bound of zero; rows with -0.0 are told apart by the digest.
      boolean floating = value instanceof Double || value instanceof Float;
      if (floating && ((Number) value).doubleValue() == 0.0) return "0.0";
      if (printer == null) return value.toString();
      if (value instanceof Integer) return printer.stringify(((Integer) value).intValue());
      if (value instanceof Long) return printer.stringify(((Long) value).longValue());
      if (value instanceof Binary) return printer.stringify((Binary) value);
      return value.toString();
    }
  }

  private static Footer readOne(Configuration conf, String format, String path) {
    Footer footer = new Footer();
    footer.path = path;
    try {
      if (format.equals("orc")) readOrc(conf, footer); else readParquet(conf, footer);
    } catch (Throwable error) {
      // Whatever a damaged file makes a library throw, the file is unreadable; only the JVM's own trouble goes on.
      if (error instanceof VirtualMachineError && !(error instanceof StackOverflowError)) throw (VirtualMachineError) error;
      String message = error.getMessage() == null ? "" : ": " + error.getMessage().trim();
      String line = error.getClass().getSimpleName() + message;
      footer.unreadable = line.indexOf('\n') < 0 ? line : line.substring(0, line.indexOf('\n'));
    }
    return footer;
  }

  private static Map merge(List futures) throws Exception {
    List unreadable = new ArrayList();
    List footers = new ArrayList();
    for (Iterator it = futures.iterator(); it.hasNext();) {
      Footer footer = (Footer) ((Future) it.next()).get();
      if (footer.unreadable == null) {
        footers.add(footer);
      } else {
        unreadable.add(Arrays.asList(new Object[] {footer.path, footer.unreadable}));
      }
    }
    settle(footers);
    Map groups = new LinkedHashMap();
    for (Iterator it = footers.iterator(); it.hasNext();) {
      Footer footer = (Footer) it.next();
      String key = JSON.writeValueAsString(footer.form);
      if (!groups.containsKey(key)) groups.put(key, new ArrayList());
      ((List) groups.get(key)).add(footer);
    }
    List printed = new ArrayList();
    for (Iterator it = groups.values().iterator(); it.hasNext();) printed.add(print((List) it.next()));
    Map answer = new LinkedHashMap();
    answer.put("groups", printed);
    answer.put("unreadable", unreadable);
    return answer;
  }

  /** A file without rows has no codec, zone or bloom filters of its own: it takes those of a like file of its unit. */
  private static void settle(List footers) {
    for (Iterator it = footers.iterator(); it.hasNext();) {
      Footer footer = (Footer) it.next();
      if (footer.settled) continue;
      for (Iterator others = footers.iterator(); others.hasNext();) {
        Footer other = (Footer) others.next();
        Map like = new LinkedHashMap(other.form);
        String[] borrowed = {"codec", "zone", "blooms"};
        for (int i = 0; i < borrowed.length; i++) like.put(borrowed[i], footer.form.get(borrowed[i]));
        if (other.settled && like.equals(footer.form)) {
          footer.form = other.form;
          break;
        }
      }
    }
  }

  private static Map print(List footers) {
    Map rows = new LinkedHashMap();
    Map columns = new TreeMap();
    for (Iterator it = footers.iterator(); it.hasNext();) {
      Footer footer = (Footer) it.next();
      rows.put(footer.path, Long.valueOf(footer.rows));
      for (Iterator names = footer.columns.entrySet().iterator(); names.hasNext();) {
        Map.Entry column = (Map.Entry) names.next();
        Facts known = (Facts) columns.get(column.getKey());
        if (known == null) columns.put(column.getKey(), column.getValue()); else known.merge((Facts) column.getValue());
      }
    }
    for (Iterator it = columns.entrySet().iterator(); it.hasNext();) {
      Map.Entry column = (Map.Entry) it.next();
      column.setValue(((Facts) column.getValue()).print());
    }
    Map answer = new LinkedHashMap();
    answer.put("form", ((Footer) footers.get(0)).form);
    answer.put("rows", rows);
    answer.put("columns", columns);
    return answer;
  }

  /** Parts of a nested column's name, joined by dots; a part that holds a dot or a back-quote is back-quoted. */
  private static String dotted(List parts) {
    StringBuilder out = new StringBuilder();
    for (Iterator it = parts.iterator(); it.hasNext();) {
      String part = (String) it.next();
      boolean plain = part.indexOf('.') < 0 && part.indexOf('`') < 0;
      if (out.length() > 0) out.append('.');
      out.append(plain ? part : "`" + part.replace("`", "``") + "`");
    }
    return out.toString();
  }

  // ---- Parquet

  private static void readParquet(Configuration conf, Footer footer) throws Exception {
    ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(new Path(footer.path), conf));
    try {
      describeParquet(reader.getFooter(), footer);
    } finally {
      reader.close();
    }
  }

  private static void describeParquet(ParquetMetadata metadata, Footer footer) throws Exception {
    TreeSet codecs = new TreeSet();
    TreeSet blooms = new TreeSet();
    for (Iterator it = metadata.getBlocks().iterator(); it.hasNext();) {
      BlockMetaData block = (BlockMetaData) it.next();
      footer.rows += block.getRowCount();
      for (Iterator chunks = block.getColumns().iterator(); chunks.hasNext();) {
        ColumnChunkMetaData chunk = (ColumnChunkMetaData) chunks.next();
        List parts = Arrays.asList((Object[]) chunk.getPath().toArray());
        String codec = chunk.getCodec().name().toLowerCase();
        codecs.add(codec.equals("uncompressed") ? "none" : codec);
        if (chunk.getBloomFilterOffset() >= 0) blooms.add(chunk.getPath().toDotString());
        addChunk(footer.columns, dotted(parts), chunk);
      }
    }
    if (codecs.isEmpty()) {
      footer.settled = false;
      codecs.add("none");
      for (Iterator it = metadata.getFileMetaData().getSchema().getPaths().iterator(); it.hasNext();) {
        footer.columns.put(dotted(Arrays.asList((Object[]) it.next())), new Facts());
      }
    }
    String text = metadata.getFileMetaData().getSchema().toString();
    text = "message schema {" + text.substring(text.indexOf('\n') < 0 ? text.length() : text.indexOf('\n'));
    text = text.replaceAll("(?m)^( *)required ", "$1optional ").trim();
    Map keys = metadata.getFileMetaData().getKeyValueMetaData();
    footer.form.put("schema", text);
    footer.form.put("codec", join(codecs));
    footer.form.put("writer", parquetWriter(metadata.getFileMetaData().getCreatedBy(), keys));
    footer.form.put("calendar", parquetCalendar(text, keys));
    footer.form.put("zone", "");
    footer.form.put("keys", meaningfulKeys(keys));
    footer.form.put("blooms", new ArrayList(blooms));
  }

  private static void addChunk(Map columns, String name, ColumnChunkMetaData chunk) {
    Facts facts = (Facts) columns.get(name);
    if (facts == null) {
      PrimitiveType type = chunk.getPrimitiveType();
      facts = new Facts();
      facts.order = (Comparator) type.comparator();
      facts.printer = type.stringifier();
      columns.put(name, facts);
    }
    facts.values += chunk.getValueCount();
    Statistics statistics = chunk.getStatistics();
    boolean counted = statistics != null && statistics.isNumNullsSet();
    facts.nullsKnown = facts.nullsKnown && counted;
    if (counted) facts.nulls += statistics.getNumNulls();
    if (statistics != null && statistics.hasNonNullValue()) {
      facts.add(statistics.genericGetMin(), statistics.genericGetMax());
    } else if (!counted || statistics.getNumNulls() < chunk.getValueCount()) {
      facts.boundsKnown = false;
    }
  }

  private static String parquetWriter(String createdBy, Map keys) {
    if (keys.containsKey(SPARK + "version") || keys.containsKey(ROW_METADATA)) return "spark";
    if (createdBy == null || createdBy.trim().isEmpty()) return "unknown";
    String name = createdBy.trim().toLowerCase().split("[ (]")[0];
    return name.startsWith("parquet-cpp") ? "arrow" : name;
  }

  /** hazards 3.7, 3.8: Spark's own keys say which calendar; other writers do not say. */
  private static String parquetCalendar(String schema, Map keys) {
    boolean int96 = schema.matches("(?s).*\\n *(optional|repeated) int96 .*");
    boolean dated = schema.contains("(DATE)") || schema.contains("(TIMESTAMP(");
    if (!int96 && !dated) return "none";
    String version = (String) keys.get(SPARK + "version");
    if (version == null) return "unknown";
    boolean legacy = dated && (keys.containsKey(SPARK + "legacyDateTime") || before(version, 3, 0))
        || int96 && (keys.containsKey(SPARK + "legacyINT96") || before(version, 3, 1));
    return legacy ? "legacy" : "corrected";
  }

  private static boolean before(String version, int major, int minor) {
    String[] parts = version.split("[^0-9]+");
    int foundMajor = Integer.parseInt(parts[0]);
    int foundMinor = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
    return foundMajor < major || foundMajor == major && foundMinor < minor;
  }

  /** All keys but Spark's own, and Spark's row metadata where it says more than the physical schema does. */
  private static List meaningfulKeys(Map keys) throws Exception {
    TreeSet names = new TreeSet();
    for (Iterator it = keys.keySet().iterator(); it.hasNext();) {
      String key = (String) it.next();
      if (!key.startsWith(SPARK)) names.add(key);
    }
    String json = (String) keys.get(ROW_METADATA);
    if (json != null) {
      String said = JSON.writeValueAsString(strip(JSON.readValue(json, Object.class)));
      boolean telling = said.contains("\"metadata\"") || said.contains("\"udt\"") || said.contains("\"interval");
      if (telling) names.add(ROW_METADATA + "#" + hash(said));
    }
    return new ArrayList(names);
  }

  /** Row metadata without nullability, comments and what is empty: these differ between files that mean the same. */
  private static Object strip(Object node) {
    if (node instanceof List) {
      List out = new ArrayList();
      for (Iterator it = ((List) node).iterator(); it.hasNext();) out.add(strip(it.next()));
      return out;
    }
    if (!(node instanceof Map)) return node;
    List ignored = Arrays.asList(new Object[] {"nullable", "containsNull", "valueContainsNull", "comment"});
    Map out = new TreeMap();
    for (Iterator it = ((Map) node).entrySet().iterator(); it.hasNext();) {
      Map.Entry entry = (Map.Entry) it.next();
      Object value = strip(entry.getValue());
      boolean empty = value instanceof Map && ((Map) value).isEmpty();
      if (!empty && !ignored.contains(entry.getKey())) out.put(entry.getKey(), value);
    }
    return out;
  }

  private static String hash(String text) throws Exception {
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes("UTF-8"));
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < 6; i++) out.append(Integer.toHexString(256 + (digest[i] & 255)).substring(1));
    return out.toString();
  }

  private static String join(TreeSet names) {
    StringBuilder out = new StringBuilder();
    for (Iterator it = names.iterator(); it.hasNext();) {
      if (out.length() > 0) out.append('+');
      out.append((String) it.next());
    }
    return out.toString();
  }

  // ---- ORC

  private static void readOrc(Configuration conf, Footer footer) throws Exception {
    Reader reader = OrcFile.createReader(new Path(footer.path), OrcFile.readerOptions(conf));
    try {
      describeOrc(reader, footer);
    } finally {
      reader.close();
    }
  }

  private static void describeOrc(Reader reader, Footer footer) throws Exception {
    TypeDescription schema = reader.getSchema();
    footer.rows = reader.getNumberOfRows();
    ColumnStatistics[] statistics = reader.getStatistics();
    if (statistics.length > 0) addOrcColumns(footer.columns, schema, statistics, new ArrayList(), Long.valueOf(footer.rows));
    TreeSet zones = new TreeSet();
    TreeSet blooms = new TreeSet();
    boolean timed = schema.toString().contains("timestamp");
    readStripes(reader, schema, timed, zones, blooms);
    footer.settled = !reader.getStripes().isEmpty();
    TreeSet keys = new TreeSet();
    for (Iterator it = reader.getMetadataKeys().iterator(); it.hasNext();) {
      String key = (String) it.next();
      if (!key.startsWith(SPARK)) keys.add(key);
    }
    String implementation = reader.getWriterVersion().getWriterImplementation().name().toLowerCase();
    String writer = implementation.equals("orc_java") ? "hive" : implementation.replace('_', '-');
    boolean dated = timed || schema.toString().contains("date");
    footer.form.put("schema", schema.toString() + attributes(schema));
    footer.form.put("codec", reader.getCompressionKind().name().toLowerCase());
    footer.form.put("writer", reader.hasMetadataValue(SPARK + "version") ? "spark" : writer);
    footer.form.put("calendar", !dated ? "none" : reader.writerUsedProlepticGregorian() ? "corrected" : "legacy");
    footer.form.put("zone", join(zones));
    footer.form.put("keys", new ArrayList(keys));
    footer.form.put("blooms", new ArrayList(blooms));
  }

  /** The writer's zone is in each stripe's footer; bloom filters show in the first one. */
  private static void readStripes(Reader reader, TypeDescription schema, boolean timed, TreeSet zones, TreeSet blooms) throws Exception {
    List stripes = reader.getStripes();
    if (stripes.isEmpty()) return;
    boolean[] rootOnly = new boolean[schema.getMaximumId() + 1];
    rootOnly[0] = true;
    RecordReaderImpl rows = (RecordReaderImpl) reader.rows(reader.options().include(rootOnly));
    try {
      for (int i = 0; i < (timed ? stripes.size() : 1); i++) {
        OrcProto.StripeFooter stripe = rows.readStripeFooter((StripeInformation) stripes.get(i));
        if (timed) zones.add(zone(stripe.getWriterTimezone()));
        for (int k = 0; k < stripe.getStreamsCount(); k++) {
          OrcProto.Stream stream = stripe.getStreams(k);
          if (stream.getKind().name().startsWith("BLOOM_FILTER")) blooms.add(fullName(schema.findSubtype(stream.getColumn())));
        }
      }
    } finally {
      rows.close();
    }
  }

  /** One name for the zone without offset, so that equal zones are equal text. */
  private static String zone(String name) {
    String[] same = {"Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal"};
    return Arrays.asList((Object[]) same).contains(name) ? "UTC" : name;
  }

  private static String fullName(TypeDescription type) {
    List parts = new ArrayList();
    while (type.getParent() != null) {
      TypeDescription parent = type.getParent();
      int at = parent.getChildren().indexOf(type);
      for (int i = 0; i < parent.getChildren().size(); i++) {
        if (parent.getChildren().get(i) == type) at = i;
      }
      parts.add(0, parent.getFieldNames() == null ? "_elem" : (String) parent.getFieldNames().get(at));
      type = parent;
    }
    return dotted(parts);
  }

  /** Type attributes are no part of the type's text. Spark marks its plain timestamps, which says nothing. */
  private static String attributes(TypeDescription type) {
    StringBuilder out = new StringBuilder();
    for (int id = type.getId(); id <= type.getMaximumId(); id++) {
      TypeDescription sub = type.findSubtype(id);
      for (Iterator it = sub.getAttributeNames().iterator(); it.hasNext();) {
        String name = (String) it.next();
        String value = sub.getAttributeValue(name);
        if (!value.equals("timestamp")) out.append(" /" + id + "." + name + "=" + value);
      }
    }
    return out.toString();
  }

  /** `entries` is how many values of this type there are, nulls included; null where ORC does not say (inside lists and maps). */
  private static void addOrcColumns(Map columns, TypeDescription type, ColumnStatistics[] all, List parts, Long entries) {
    ColumnStatistics statistics = all[type.getId()];
    long present = statistics.getNumberOfValues();
    if (!parts.isEmpty()) {
      Facts facts = new Facts();
      facts.values = entries == null ? present : entries.longValue();
      facts.nullsKnown = entries != null;
      facts.nulls = entries == null ? 0 : entries.longValue() - present;
      if (present > 0) addOrcBounds(facts, statistics);
      columns.put(dotted(parts), facts);
    }
    if (type.getChildren() == null) return;
    boolean struct = type.getCategory() == TypeDescription.Category.STRUCT;
    for (int i = 0; i < type.getChildren().size(); i++) {
      List deeper = new ArrayList(parts);
      deeper.add(struct ? (String) type.getFieldNames().get(i) : "_elem" + i);
      Long inside = !struct ? null : parts.isEmpty() ? entries : Long.valueOf(present);
      addOrcColumns(columns, (TypeDescription) type.getChildren().get(i), all, deeper, inside);
    }
  }

  private static void addOrcBounds(Facts facts, ColumnStatistics statistics) {
    if (statistics instanceof IntegerColumnStatistics) {
      IntegerColumnStatistics known = (IntegerColumnStatistics) statistics;
      facts.add(Long.valueOf(known.getMinimum()), Long.valueOf(known.getMaximum()));
    } else if (statistics instanceof DoubleColumnStatistics) {
      DoubleColumnStatistics known = (DoubleColumnStatistics) statistics;
      boolean usable = known.getMinimum() <= known.getMaximum();
      facts.add(usable ? Double.valueOf(known.getMinimum()) : null, usable ? Double.valueOf(known.getMaximum()) : null);
    } else if (statistics instanceof StringColumnStatistics) {
      StringColumnStatistics known = (StringColumnStatistics) statistics;
      String low = known.getMinimum();
      String high = known.getMaximum();
      facts.add(low == null ? null : new Text(low), high == null ? null : new Text(high));
    } else if (statistics instanceof DateColumnStatistics) {
      DateColumnStatistics known = (DateColumnStatistics) statistics;
      facts.add(Long.valueOf(known.getMinimumDayOfEpoch()), Long.valueOf(known.getMaximumDayOfEpoch()));
    } else if (statistics instanceof TimestampColumnStatistics) {
      TimestampColumnStatistics known = (TimestampColumnStatistics) statistics;
      if (known.getMinimumUTC() == null || known.getMaximumUTC() == null) {
        facts.add(null, null);
      } else {
        facts.add(Long.valueOf(known.getMinimumUTC().getTime()), Long.valueOf(known.getMaximumUTC().getTime()));
      }
    } else if (statistics instanceof DecimalColumnStatistics) {
      DecimalColumnStatistics known = (DecimalColumnStatistics) statistics;
      facts.add(known.getMinimum(), known.getMaximum());
    } else if (statistics instanceof BooleanColumnStatistics) {
      BooleanColumnStatistics known = (BooleanColumnStatistics) statistics;
      facts.add(Boolean.valueOf(known.getFalseCount() == 0), Boolean.valueOf(known.getTrueCount() > 0));
    }
  }
}
