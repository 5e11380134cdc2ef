package hivekeeper.copy;

/** The memory of the pages that the columns of a row group have open, with what their decoders make of them: not more than a task's share. */
class OpenPages {
  private final long most;
  private long held;

  OpenPages(long most) {
    this.most = most;
  }

  long left() {
    return most - held;
  }

  /** Before the memory is taken. */
  void take(long bytes, String what) {
    if (bytes > left()) throw new ShareExceeded(what, held + bytes, most);
    held += bytes;
  }

  void giveBack(long bytes) {
    held -= bytes;
  }
}
