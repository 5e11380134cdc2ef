package hivekeeper;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.orc.BooleanColumnStatistics;
import org.apache.orc.ColumnStatistics;
import org.apache.orc.DateColumnStatistics;
import org.apache.orc.DecimalColumnStatistics;
import org.apache.orc.DoubleColumnStatistics;
import org.apache.orc.IntegerColumnStatistics;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.StringColumnStatistics;
import org.apache.orc.StripeInformation;
import org.apache.orc.TimestampColumnStatistics;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.ColumnStatisticsImpl;

/** Reads the footer of an ORC file. */
class OrcFooters {
  // Names of the zone without offset.
  private static final List<String> UTC =
      Arrays.asList("Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal");
  /** Among the keys of a file with such a column: what the library gives as its name is cut there, so Spark would write another one. */
  private static final String QUOTED_NAME = "orc.column.name#back-quote#";

  private OrcFooters() {}

  static void read(Configuration conf, Footer footer) throws Exception {
    OrcInput input = OrcClaims.open(conf, footer.file, false);
    try {
      describe(input, footer);
    } finally {
      input.close();
    }
  }

  private static void describe(OrcInput input, Footer footer) throws Exception {
    Reader reader = input.reader;
    TypeDescription schema = reader.getSchema();
    requireShallow(schema, 0);
    footer.rows = reader.getNumberOfRows();
    requireRowsOfStripes(reader);
    addRowGroups(reader, footer);
    footer.settled = !reader.getStripes().isEmpty();
    new Columns(footer, reader).add(schema, new ArrayList<String>(), footer.rows);
    OrcMeaning meaning = new OrcMeaning(input, false);
    boolean dated = meaning.timed || schema.toString().contains("date") || schema.toString().contains("timestamp");
    StringBuilder attributes = new StringBuilder();
    addAttributes(schema, attributes);
    footer.form.put("schema", schema.toString() + attributes);
    footer.form.put("codec", reader.getCompressionKind().name().toLowerCase(Locale.ROOT));
    footer.form.put("writer", writer(reader));
    footer.form.put("calendar", !dated ? "none" : reader.writerUsedProlepticGregorian() ? "corrected" : "legacy");
    footer.form.put("zone", zone(meaning));
    footer.form.put("keys", keys(reader, meaning.footer));
    footer.form.put("blooms", blooms(footer, schema, meaning));
    footer.form.put("undecodable", meaning.undecodable());
    footer.form.put("identity", meaning.identity());
    footer.form.put("layout", OrcLayout.of(reader.getFileTail()));
  }

  /** Some readers believe the rows of the file, others those of its stripes. */
  private static void requireRowsOfStripes(Reader reader) {
    long counted = 0;
    for (Object each : reader.getStripes()) {
      long rows = ((StripeInformation) each).getNumberOfRows();
      if (rows < 0) throw new IllegalStateException("a stripe claims " + rows + " rows");
      counted = Footer.sum(counted, rows);
    }
    if (counted != reader.getNumberOfRows()) {
      throw new IllegalStateException("its footer says " + reader.getNumberOfRows() + " rows, its stripes say " + counted);
    }
  }

  private static void addRowGroups(Reader reader, Footer footer) {
    if (!footer.beginRowGroups(reader.getStripes().size())) return;
    for (Object each : reader.getStripes()) {
      StripeInformation stripe = (StripeInformation) each;
      if (stripe.getNumberOfRows() > 0) footer.addRowGroup(stripe.getOffset(), stripe.getLength(), stripe.getNumberOfRows());
    }
  }

  private static String zone(OrcMeaning meaning) {
    Set<String> zones = new TreeSet<String>();
    for (String zone : meaning.zones) zones.add(UTC.contains(zone) ? "UTC" : (String) zone);
    return Footer.joined(zones);
  }

  /** Of the first stripe, or of all. */
  private static List<String> blooms(Footer footer, TypeDescription schema, OrcMeaning meaning) {
    Set<Integer> wanted = new TreeSet<Integer>();
    for (Object one : meaning.stripes) {
      OrcProto.StripeFooter stripe = (OrcProto.StripeFooter) one;
      for (int i = 0; i < stripe.getStreamsCount(); i++) {
        OrcProto.Stream stream = stripe.getStreams(i);
        if (stream.getKind().name().startsWith("BLOOM_FILTER")) wanted.add(stream.getColumn());
      }
    }
    Set<String> found = new TreeSet<String>();
    addNames(footer, schema, new ArrayList<String>(), wanted, found);
    return new ArrayList<String>(found);
  }

  /** The dotted names of the types with these ids, in one walk: a file may have a million columns and streams. */
  private static void addNames(Footer footer, TypeDescription type, List<String> parts, Set<Integer> ids, Set<String> found) {
    if (ids.contains(type.getId())) found.add(footer.nameOf(parts));
    if (type.getChildren() == null) return;
    for (int i = 0; i < type.getChildren().size(); i++) {
      // Only a struct can be asked for names.
      parts.add(type.getCategory() == TypeDescription.Category.STRUCT ? (String) type.getFieldNames().get(i) : "_elem");
      addNames(footer, (TypeDescription) type.getChildren().get(i), parts, ids, found);
      parts.remove(parts.size() - 1);
    }
  }

  private static void requireShallow(TypeDescription type, int level) {
    Footer.requireShallow(level);
    if (type.getChildren() == null) return;
    for (Object child : type.getChildren()) requireShallow((TypeDescription) child, level + 1);
  }

  private static String writer(Reader reader) {
    if (reader.hasMetadataValue(Footer.SPARK + "version")) return "spark";
    String implementation = reader.getWriterVersion().getWriterImplementation().name().toLowerCase(Locale.ROOT);
    return implementation.equals("orc_java") ? "hive" : implementation.replace('_', '-');
  }

  /** All keys except Spark's own, and a mark of names that are not read as they are stored. */
  private static List<String> keys(Reader reader, OrcProto.Footer stored) {
    Set<String> keys = new TreeSet<String>();
    if (hasQuotedName(stored)) keys.add(QUOTED_NAME);
    for (String key : reader.getMetadataKeys()) {
      if (!key.startsWith(Footer.SPARK)) keys.add(key);
    }
    return new ArrayList<String>(keys);
  }

  private static boolean hasQuotedName(OrcProto.Footer stored) {
    for (int i = 0; i < stored.getTypesCount(); i++) {
      OrcProto.Type type = stored.getTypes(i);
      for (int j = 0; j < type.getFieldNamesCount(); j++) {
        if (type.getFieldNames(j).indexOf('`') >= 0) return true;
      }
    }
    return false;
  }

  /** Type attributes are not part of the type's text. Spark marks its plain timestamps, which has no meaning. */
  private static void addAttributes(TypeDescription type, StringBuilder out) {
    for (String name : type.getAttributeNames()) {
      String value = type.getAttributeValue(name);
      if (!value.equals("timestamp")) out.append(" /" + type.getId() + "." + name + "=" + value);
    }
    if (type.getChildren() == null) return;
    for (Object child : type.getChildren()) addAttributes((TypeDescription) child, out);
  }

  private static class Columns {
    private final Footer footer;
    private final Reader reader;
    private final List<OrcProto.ColumnStatistics> said;
    private final boolean areCounted;

    Columns(Footer footer, Reader reader) throws Exception {
      this.footer = footer;
      this.reader = reader;
      // Not what the library makes of them: it looks for the type of each among all, so a hundred thousand columns take minutes.
      said = reader.getOrcProtoFileStatistics();
      // ORC's Java writer counts nothing where it writes no index (`orc.create.index=false`), and says 0 for every column.
      areCounted = !said.isEmpty() && ((OrcProto.ColumnStatistics) said.get(0)).getNumberOfValues() == reader.getNumberOfRows();
    }

    /** `entries` is the number of values of this type, nulls included; null if ORC does not record it (inside lists and maps). */
    void add(TypeDescription type, List<String> parts, Long entries) {
      OrcProto.ColumnStatistics own = areCounted && type.getId() < said.size() ? (OrcProto.ColumnStatistics) said.get(type.getId()) : null;
      boolean counted = own != null && own.hasNumberOfValues();
      long present = counted ? own.getNumberOfValues() : 0L;
      if (!parts.isEmpty()) {
        ColumnFacts facts = new ColumnFacts();
        facts.valuesKnown = entries != null || counted;
        facts.values = entries == null ? present : entries.longValue();
        facts.nullsKnown = entries != null && counted;
        facts.nulls = facts.nullsKnown ? entries.longValue() - present : 0L;
        if (present > 0) addBounds(facts, statistics(type, own));
        footer.columns.put(footer.nameOf(parts), facts);
      }
      if (type.getChildren() == null) return;
      boolean struct = type.getCategory() == TypeDescription.Category.STRUCT;
      for (int i = 0; i < type.getChildren().size(); i++) {
        List<String> deeper = new ArrayList<String>(parts);
        deeper.add(struct ? (String) type.getFieldNames().get(i) : "_elem" + i);
        Long inside = !struct ? null : parts.isEmpty() ? entries : counted ? Long.valueOf(present) : null;
        add((TypeDescription) type.getChildren().get(i), deeper, inside);
      }
    }

    private ColumnStatistics statistics(TypeDescription type, OrcProto.ColumnStatistics own) {
      return ColumnStatisticsImpl.deserialize(type, own, reader.writerUsedProlepticGregorian(), reader.getConvertToProlepticGregorian());
    }
  }

  private static void addBounds(ColumnFacts facts, ColumnStatistics statistics) {
    if (statistics instanceof IntegerColumnStatistics) {
      IntegerColumnStatistics known = (IntegerColumnStatistics) statistics;
      facts.addBounds(known.getMinimum(), known.getMaximum());
    } else if (statistics instanceof DoubleColumnStatistics) {
      DoubleColumnStatistics known = (DoubleColumnStatistics) statistics;
      // False if there is a NaN.
      boolean usable = known.getMinimum() <= known.getMaximum();
      facts.addBounds(usable ? (Object) known.getMinimum() : null, usable ? (Object) known.getMaximum() : null);
    } else if (statistics instanceof StringColumnStatistics) {
      StringColumnStatistics known = (StringColumnStatistics) statistics;
      facts.addBounds(bytesOf(known.getMinimum()), bytesOf(known.getMaximum()));
    } else if (statistics instanceof DateColumnStatistics) {
      DateColumnStatistics known = (DateColumnStatistics) statistics;
      facts.addBounds(known.getMinimumDayOfEpoch(), known.getMaximumDayOfEpoch());
    } else if (statistics instanceof TimestampColumnStatistics) {
      TimestampColumnStatistics known = (TimestampColumnStatistics) statistics;
      boolean usable = known.getMinimumUTC() != null && known.getMaximumUTC() != null;
      facts.addBounds(usable ? (Object) known.getMinimumUTC().getTime() : null, usable ? (Object) known.getMaximumUTC().getTime() : null);
    } else if (statistics instanceof DecimalColumnStatistics) {
      DecimalColumnStatistics known = (DecimalColumnStatistics) statistics;
      facts.addBounds(known.getMinimum(), known.getMaximum());
    } else if (statistics instanceof BooleanColumnStatistics) {
      BooleanColumnStatistics known = (BooleanColumnStatistics) statistics;
      facts.addBounds(known.getFalseCount() == 0, known.getTrueCount() > 0);
    }
  }

  /** ORC orders strings by bytes, like Text and unlike String. */
  private static Text bytesOf(String bound) {
    return bound == null ? null : new Text(bound);
  }
}
