package hivekeeper.concat;

/** Makes ends of files that consist of whole files, one after the other. Readers find the rows of a file by its end only. */
interface JoinedFooters {
  String UNLIKE = "their footers differ in more than their rows";

  /**
   * From now on the rows of the file with this footer, which begins at `start`, belong to `over`. Fails if it differs from the others in
   * anything but its rows, or if what is kept of all would make an end that nobody reads.
   */
  void add(Object footer, long start) throws Exception;

  /** The end of a file that has the rows of all that were added. */
  byte[] over() throws Exception;

  /** The end of a file that has the schema of the first one and no rows, whatever lies before. */
  byte[] withoutRows() throws Exception;
}
