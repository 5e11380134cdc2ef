package hivekeeper;

/** The part of an exception's message that an operator reads. */
public class Messages {
  private static final int MOST_REASON = 300;

  private Messages() {}

  /** HDFS appends its server's stack trace to messages. */
  public static String firstLine(Throwable error) {
    String message = error.getMessage();
    return message == null || message.trim().isEmpty() ? error.getClass().getSimpleName() : message.trim().split("\n")[0];
  }

  /** The error on one short line, with its class, because a library's message alone often says little; it may quote a file. */
  public static String shortReason(Throwable error) {
    String message = error.getMessage() == null ? "" : ": " + error.getMessage().trim();
    return shorten(error.getClass().getSimpleName() + message);
  }

  static String shorten(String text) {
    String line = text.split("\n")[0];
    return line.length() > MOST_REASON ? line.substring(0, MOST_REASON) : line;
  }

  /**
   * A damaged file may make a library throw anything, even for memory or stack; Hadoop's native codecs throw an InternalError for it. Other
   * errors of the JVM are thrown again.
   */
  public static void requireOfFile(Throwable error) {
    boolean isOfFile = error instanceof StackOverflowError || error instanceof OutOfMemoryError || error instanceof InternalError;
    if (error instanceof VirtualMachineError && !isOfFile) throw (VirtualMachineError) error;
  }

  /** Whether memory ran out; a library may have wrapped the error. */
  public static boolean isOfMemory(Throwable error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof OutOfMemoryError) return true;
    }
    return false;
  }

  public static Throwable innermost(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) cause = cause.getCause();
    return cause;
  }
}
