package hivekeeper;

import sun.misc.Signal;
import sun.misc.SignalHandler;

/** Relays signals that would end this JVM to the driver's Python process, which ends in good order and takes the JVM with it. */
public class SignalRelay implements SignalHandler {
  private long python;

  /** An ignored signal, such as HUP under nohup, stays ignored. */
  public void handOn(long pid, String[] names) {
    python = pid;
    for (String name : names) {
      try {
        Signal signal = new Signal(name);
        if (Signal.handle(signal, this) == SignalHandler.SIG_IGN) Signal.handle(signal, SignalHandler.SIG_IGN);
      } catch (IllegalArgumentException reserved) {
        // A JVM with -Xrs leaves signals to the system: this signal kills it, and the next run recovers.
        continue;
      }
    }
  }

  public void handle(Signal signal) {
    if (!send(signal.getName())) Runtime.getRuntime().exit(128 + signal.getNumber());
  }

  /** False if the process no longer exists. */
  private boolean send(String name) {
    try {
      String command = "kill -s " + name + " " + python;
      return new ProcessBuilder(new String[] {"/bin/sh", "-c", command}).start().waitFor() == 0;
    } catch (Exception error) {
      return false;
    }
  }
}
