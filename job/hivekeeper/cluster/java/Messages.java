package hivekeeper;

/** The part of an exception's message that an operator reads. */
public class Messages {
  private Messages() {}

  /** HDFS appends its server's stack trace to messages. */
  public static String firstLine(Throwable error) {
    String message = error.getMessage();
    return message == null || message.trim().isEmpty() ? error.getClass().getSimpleName() : message.trim().split("\n")[0];
  }

  public static Throwable innermost(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) cause = cause.getCause();
    return cause;
  }
}
