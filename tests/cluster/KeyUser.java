import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Opens every file below a directory, again and again until its input ends: PRINCIPAL KEYTAB DIRECTORY.
 *
 * Prints a line per file and attempt: `opened PATH`, or the exception's class and PATH. A KMS is asked as the process's own user, so this
 * is a process.
 */
public class KeyUser {
    public static void main(String[] words) throws Exception {
        Configuration conf = new HdfsConfiguration();
        UserGroupInformation.setConfiguration(conf);
        if (!words[1].isEmpty()) UserGroupInformation.loginUserFromKeytab(words[0], words[1]);
        FileSystem fs = FileSystem.get(conf);
        System.out.println("ready");
        do {
            look(fs, new Path(words[2]));
        } while (System.in.available() == 0);
    }

    static void look(FileSystem fs, Path directory) throws Exception {
        FileStatus[] statuses;
        try {
            statuses = fs.listStatus(directory);
        } catch (IOException gone) {
            return;
        }
        for (FileStatus status : statuses) {
            Path path = status.getPath();
            if (status.isDirectory()) look(fs, path);
            else System.out.println(open(fs, path) + " " + path.toUri().getPath());
        }
    }

    static String open(FileSystem fs, Path path) {
        try (FSDataInputStream in = fs.open(path)) {
            in.read();
            return "opened";
        } catch (IOException refused) {
            Throwable cause = refused;
            while (cause.getCause() != null) cause = cause.getCause();
            return cause.getClass().getSimpleName();
        }
    }
}
