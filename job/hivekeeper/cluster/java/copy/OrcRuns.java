package hivekeeper.copy;

import hivekeeper.WorkLimit;
import java.io.IOException;
import org.apache.orc.impl.InStream;

/**
 * Walks the runs of numbers in a stream of ORC (run-length encoding, version 2), before the library decodes them.
 *
 * Where packed bytes end too early, the library counts down to the lowest number of 32 bits, and from the highest one on, for some seconds
 * at each eight numbers, and then takes numbers that it read before: a stream of two bytes takes minutes, a file of a kilobyte hours. In a
 * single number with a difference to the next one it finds two, where the C++ library (Arrow, Impala) fails.
 */
class OrcRuns {
  private static final int MOST_BYTES = 8 << 10;
  private static final int COUNTED_AT_ONCE = 64 << 10;
  private static final int DIRECT = 1;
  private static final int DELTA = 3;
  private static final int CODE = 31;
  /** Codes of widths stand for one bit more than their number up to here. */
  private static final int LAST_OF_ALL_WIDTHS = 23;
  private static final int[] WIDER = {26, 28, 30, 32, 40, 48, 56, 64};

  private final InStream in;
  private final String what;
  private final WorkLimit work;
  private final byte[] passed = new byte[MOST_BYTES];
  private long uncounted;

  /** `what` names the stream in a reason. */
  OrcRuns(InStream in, String what, WorkLimit work) {
    this.in = in;
    this.what = what;
    this.work = work;
  }

  /** Fails if the last run is cut off, or one has a difference to no number. */
  void requireWhole() throws IOException {
    for (int first = in.read(); first >= 0; first = in.read()) {
      pass(first);
      if (uncounted < COUNTED_AT_ONCE) continue;
      work.takeBytes(uncounted);
      uncounted = 0;
    }
  }

  private void pass(int first) throws IOException {
    int kind = first >>> 6;
    uncounted++;
    if (kind == 0) {
      skip((first >>> 3 & 7) + 1);
      return;
    }
    int code = first >>> 1 & CODE;
    int count = ((first & 1) << 8 | next()) + 1;
    if (kind == DIRECT) {
      skip(packed(count, width(code)));
    } else if (kind == DELTA) {
      skipVarint();
      skipVarint();
      // The first number, and what the second one is more, are not packed; without a width that holds for all.
      if (code == 0) return;
      if (count < 2) throw new IOException(what + " has differences in a run of one number");
      skip(packed(count - 2, width(code)));
    } else {
      int ofBase = next();
      int ofPatches = next();
      int patch = aligned(width(ofBase & CODE) + (ofPatches >>> 5) + 1);
      skip((ofBase >>> 5) + 1 + packed(count, width(code)) + packed(ofPatches & CODE, patch));
    }
  }

  private static int packed(int count, int width) {
    return (count * width + 7) / 8;
  }

  private static int width(int code) {
    return code <= LAST_OF_ALL_WIDTHS ? code + 1 : WIDER[code - LAST_OF_ALL_WIDTHS - 1];
  }

  /** The least width that has a code. The library refuses patches of more than 64 bits. */
  private static int aligned(int bits) {
    int code = 0;
    while (code < CODE && width(code) < bits) code++;
    return width(code);
  }

  private int next() throws IOException {
    int found = in.read();
    if (found < 0) throw cut();
    uncounted++;
    return found;
  }

  private void skipVarint() throws IOException {
    while (next() > 127) continue;
  }

  private void skip(int bytes) throws IOException {
    uncounted += bytes;
    for (int left = bytes; left > 0; ) {
      int got = in.read(passed, 0, left);
      if (got < 0) throw cut();
      left -= got;
    }
  }

  private IOException cut() {
    return new IOException(what + " ends inside a run of numbers");
  }
}
