package hivekeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;

/** Reads the footers of many Parquet or ORC files in one call and merges them per unit and form. Touches nothing. */
public class Footers {
  /** So many are in memory together, with their columns, before they are merged. */
  private static final int FILES_AT_ONCE = 1000;
  /** Where the memory is taken, each further file costs a full garbage collection or several: thousands of them would take hours. */
  private static final int MOST_STARVED = 32;
  /**
   * Of a call, alone. After so many as above one call gives up at its first, which costs no table whose footers can be read: files of other
   * tables are no reason to leave out these.
   */
  private static final int MOST_STARVED_AGAIN = 4;

  /** What a form has from the bytes of a footer. */
  private static final List<String> OF_BYTES = Arrays.asList("identity", "layout");

  private final Configuration conf;
  /** In all calls: a command has one of these. */
  private final AtomicInteger starved = new AtomicInteger();

  public Footers(Configuration conf) {
    this.conf = conf;
  }

  /** One file, `number` in the list of its unit's files. */
  private static class Source {
    final FooterSet unit;
    final int number;
    final ListedFile file;

    Source(FooterSet unit, int number, ListedFile file) {
      this.unit = unit;
      this.number = number;
      this.file = file;
    }
  }

  /**
   * `units` is {unit: [`ListedFile`, …]}; without `byIdentity` a form is what the footer means, not its bytes. Returns {forms: [form, …],
   * names: [[name, …], …], units: {unit: {groups, unreadable: [{path, reason}], rowGroups, values}}}; a group holds the files of one form:
   * {form, files, rows, names, facts}, where `form` and `names` are positions in these, `facts` those of the columns in the order of their
   * names (`FooterAnswer`), and `rows` are the counts of `files`, positions in the unit's list. `values` are rows and values of all columns.
   * `rowGroups` are [[file, [start, length, rows, …]], …], all those of a file or none: `mostRowGroups` of all files together. `mostCharacters`: of
   * so many characters the first units are told, and the others not; -1 for all.
   */
  public String read(String format, String units, boolean byIdentity, int mostRowGroups, long mostCharacters) throws Exception {
    Map<String, FooterSet> found = new LinkedHashMap<String, FooterSet>();
    List<Object> files = new ArrayList<Object>();
    for (Map.Entry<String, Object> unit : Json.readMap(units).entrySet()) {
      FooterSet set = new FooterSet();
      found.put((String) unit.getKey(), set);
      List<Object> wanted = ListedFile.all((List) unit.getValue());
      for (int i = 0; i < wanted.size(); i++) files.add(new Source(set, i, (ListedFile) wanted.get(i)));
    }
    Reading reading = new Reading(format, byIdentity, mostRowGroups);
    for (int start = 0; start < files.size(); start += FILES_AT_ONCE) {
      reading.readSome(files.subList(start, Math.min(start + FILES_AT_ONCE, files.size())));
    }
    // Nothing compares the bounds that a copy's sources state: old writers' are often wrong.
    return Json.write(describe(found, new FooterAnswer(!byIdentity), mostCharacters < 0 ? Long.MAX_VALUE : mostCharacters));
  }

  /** One call. */
  private class Reading {
    private final String format;
    private final boolean byIdentity;
    private final KnownForms known = new KnownForms();
    private final AtomicInteger roomForRowGroups;
    private final int mostStarved = Math.max(MOST_STARVED, starved.get() + 1);
    private final int mostStarvedAgain = starved.get() < MOST_STARVED ? MOST_STARVED_AGAIN : 1;
    private int starvedAgain;

    Reading(String format, boolean byIdentity, int mostRowGroups) {
      this.format = format;
      this.byIdentity = byIdentity;
      this.roomForRowGroups = new AtomicInteger(mostRowGroups);
    }

    void readSome(List<Object> files) throws Exception {
      List<Object> footers = WorkerPool.map(files, new WorkerPool.Task() {
        public Object of(Object file) {
          return starved.get() < mostStarved ? readOne((Source) file) : givenUp((Source) file);
        }
      });
      for (int i = 0; i < files.size(); i++) {
        Source file = (Source) files.get(i);
        Footer footer = readAgain(file, (Footer) footers.get(i));
        footers.set(i, null);
        if (!byIdentity) footer.form.keySet().removeAll(OF_BYTES);
        file.unit.add(footer, file.number);
      }
    }

    /** Alone, because other files that were read at the same time may have taken the memory. */
    private Footer readAgain(Source file, Footer footer) {
      if (!footer.isStarved() || starvedAgain >= mostStarvedAgain) return footer;
      Footer again = readOne(file);
      if (again.isStarved()) starvedAgain++;
      return again;
    }

    private Footer givenUp(Source source) {
      Footer footer = new Footer(source.file, roomForRowGroups);
      footer.giveUp();
      return footer;
    }

    private Footer readOne(Source source) {
      Footer footer = new Footer(source.file, roomForRowGroups);
      try {
        if (format.equals("orc")) OrcFooters.read(conf, footer);
        else ParquetFooters.read(conf, footer, known);
        footer.requireReadable();
      } catch (Throwable error) {
        Messages.requireOfFile(error);
        footer.refuse(error);
      }
      ColumnNames.forgetMany();
      if (footer.isStarved()) starved.incrementAndGet();
      return footer;
    }
  }

  private static Map<String, Object> describe(Map<String, FooterSet> sets, FooterAnswer answer, long mostCharacters) throws IOException {
    Map<String, Object> units = new LinkedHashMap<String, Object>();
    int forms = 0;
    int names = 0;
    for (Map.Entry<String, FooterSet> set : sets.entrySet()) {
      Map<String, Object> described = ((FooterSet) set.getValue()).describe(answer);
      if (answer.characters() > mostCharacters) break;
      units.put((String) set.getKey(), described);
      forms = answer.forms.all.size();
      names = answer.names.all.size();
    }
    Map<String, Object> told = new HashMap<String, Object>();
    told.put("forms", answer.forms.all.subList(0, forms));
    told.put("names", answer.names.all.subList(0, names));
    told.put("units", units);
    return told;
  }
}
