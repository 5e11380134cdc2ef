package hivekeeper;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The footers of one unit, merged by form as they come. */
class FooterSet {
  private final Map<Object, FooterGroup> settled = new LinkedHashMap<Object, FooterGroup>();
  private final Map<Object, FooterGroup> open = new LinkedHashMap<Object, FooterGroup>();
  private final List<Object> unreadable = new ArrayList<Object>();

  /** `number` says which of the unit's files this is; they come in their order. */
  void add(Footer footer, int number) {
    if (footer.unreadable != null) {
      unreadable.add(reason(footer));
      return;
    }
    Map<Object, FooterGroup> groups = footer.settled ? settled : open;
    if (!groups.containsKey(footer.form)) groups.put(footer.form, new FooterGroup(footer.form));
    ((FooterGroup) groups.get(footer.form)).add(footer, number);
  }

  /** {groups, unreadable}, groups in the order of their first files; a form is named by its number in `forms`, to which new ones are added. */
  Map<String, Object> describe(Map<Object, Integer> forms, boolean withBounds) {
    List<Object> groups = new ArrayList<Object>();
    for (FooterGroup group : settle()) {
      if (!forms.containsKey(group.form)) forms.put(group.form, forms.size());
      groups.add(group.describe((Integer) forms.get(group.form), withBounds));
    }
    Map<String, Object> answer = new LinkedHashMap<String, Object>();
    answer.put("groups", groups);
    answer.put("unreadable", unreadable);
    return answer;
  }

  /** Files without rows take the form of the first settled ones that differ in nothing else. */
  private List<FooterGroup> settle() {
    Map<Object, FooterGroup> known = new HashMap<Object, FooterGroup>();
    for (FooterGroup group : settled.values()) known.putIfAbsent(withoutRows(group.form), group);
    List<FooterGroup> all = new ArrayList<FooterGroup>(settled.values());
    for (FooterGroup group : open.values()) {
      FooterGroup like = (FooterGroup) known.get(withoutRows(group.form));
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
    for (String borrowed : new String[] {"codec", "zone", "blooms"}) rest.remove(borrowed);
    return rest;
  }

  private static Map<String, String> reason(Footer footer) {
    Map<String, String> found = new LinkedHashMap<String, String>();
    found.put("path", footer.path);
    found.put("reason", footer.unreadable);
    return found;
  }
}
