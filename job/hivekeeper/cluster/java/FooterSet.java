package hivekeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The footers of one unit, merged by form as they come. */
class FooterSet {
  /** By the texts of their forms, as in Numbered. */
  private final Map<String, FooterGroup> settled = new LinkedHashMap<String, FooterGroup>();
  private final Map<String, FooterGroup> open = new LinkedHashMap<String, FooterGroup>();
  private final List<Object> unreadable = new ArrayList<Object>();
  private final List<Object> rowGroups = new ArrayList<Object>();
  private long values;

  /** `number` says which of the unit's files this is; they come in their order. */
  void add(Footer footer, int number) throws IOException {
    if (footer.unreadable != null) {
      unreadable.add(reason(footer));
      return;
    }
    values += footer.values;
    if (footer.rowGroups != null && !footer.rowGroups.isEmpty()) rowGroups.add(Arrays.asList(new Object[] {number, footer.rowGroups}));
    Map<String, FooterGroup> groups = footer.settled ? settled : open;
    String text = text(footer.form);
    if (!groups.containsKey(text)) groups.put(text, new FooterGroup(footer.form));
    ((FooterGroup) groups.get(text)).add(footer, number);
  }

  /** {groups, unreadable, rowGroups, values}, groups in the order of their first files. */
  Map<String, Object> describe(FooterAnswer answer) throws IOException {
    List<Object> groups = new ArrayList<Object>();
    for (FooterGroup group : settle()) groups.add(group.describe(answer));
    Map<String, Object> described = new LinkedHashMap<String, Object>();
    described.put("groups", groups);
    described.put("unreadable", unreadable);
    described.put("rowGroups", rowGroups);
    described.put("values", values);
    return described;
  }

  /** Files without rows take the form of the first settled ones that differ in nothing else. */
  private List<FooterGroup> settle() throws IOException {
    Map<String, FooterGroup> known = new HashMap<String, FooterGroup>();
    for (FooterGroup group : settled.values()) known.putIfAbsent(text(withoutRows(group.form)), group);
    List<FooterGroup> all = new ArrayList<FooterGroup>(settled.values());
    for (FooterGroup group : open.values()) {
      FooterGroup like = (FooterGroup) known.get(text(withoutRows(group.form)));
      if (like == null) all.add(group);
      else like.merge(group);
    }
    Collections.sort(all, new Comparator<Object>() {
      public int compare(Object one, Object other) {
        return Integer.compare(((FooterGroup) one).first(), ((FooterGroup) other).first());
      }
    });
    return all;
  }

  /** What does not come from the rows. */
  private static Map<String, Object> withoutRows(Map<String, Object> form) {
    Map<String, Object> rest = new HashMap<String, Object>(form);
    for (String borrowed : new String[] {"codec", "zone", "blooms", "layout"}) rest.remove(borrowed);
    return rest;
  }

  /** The same for equal forms only. The identity is a hash of bytes that the schema is made from, too. */
  private static String text(Map<String, Object> form) throws IOException {
    Map<String, Object> telling = new TreeMap<String, Object>(form);
    if (form.containsKey("identity")) telling.remove("schema");
    return Json.write(telling);
  }

  private static Map<String, String> reason(Footer footer) {
    Map<String, String> found = new LinkedHashMap<String, String>();
    found.put("path", footer.file.path);
    found.put("reason", footer.unreadable);
    return found;
  }
}
