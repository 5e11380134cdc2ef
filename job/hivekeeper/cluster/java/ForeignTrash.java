package hivekeeper;

import java.io.IOException;
import org.apache.hadoop.fs.Path;

/** A directory of this user's trash belongs to another user, or others may write to it. Nothing was moved. */
class ForeignTrash extends IOException {
  private static final long serialVersionUID = 1L;

  ForeignTrash(Path directory, String why) {
    super(directory + " " + why);
  }
}
