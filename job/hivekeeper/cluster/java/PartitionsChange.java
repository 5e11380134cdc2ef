package hivekeeper;

/** Partitions of a table were dropped or renamed each time that all of them were read. */
class PartitionsChange extends Exception {
  private static final long serialVersionUID = 1L;

  PartitionsChange(String database, String table, int rounds) {
    super("partitions of " + database + "." + table + " were dropped or renamed each of " + rounds + " times that they were read");
  }
}
