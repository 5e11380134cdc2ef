package hivekeeper.copy;

/** A file needs more memory than a task's share; the share of a task that runs alone may be enough. */
class ShareExceeded extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ShareExceeded(String what, long bytes, long most) {
    super(what + " takes " + bytes + " bytes of memory, a task has " + most + " for it");
  }

  /** Whether this is the reason of a failure, which libraries may have wrapped. */
  static boolean causes(Throwable error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof ShareExceeded) return true;
    }
    return false;
  }
}
