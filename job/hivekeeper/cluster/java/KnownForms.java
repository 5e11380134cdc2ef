package hivekeeper;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What a Parquet footer means, by the bytes that say it (`RawFooter.identity`): the files of a table mostly share them, and with them the
 * text of their schema. Whoever writes files may make each another one, so only the first of them are kept.
 */
class KnownForms {
  private static final int MOST = 100;

  private final ConcurrentHashMap<String, Map<String, Object>> known = new ConcurrentHashMap<String, Map<String, Object>>();

  /** Null if it is not known. */
  Map<String, Object> get(String identity) {
    return (Map) known.get(identity);
  }

  void put(String identity, Map<String, Object> meaning) {
    if (known.size() < MOST) known.put(identity, meaning);
  }
}
