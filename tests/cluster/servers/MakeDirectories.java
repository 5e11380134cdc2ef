import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.security.UserGroupInformation;

/** Make directories in HDFS as superuser: KEYTAB (or an empty word) and then PATH OWNER GROUP MODE for each. */
public class MakeDirectories {
    public static void main(String[] words) throws Exception {
        Configuration conf = new HdfsConfiguration();
        UserGroupInformation.setConfiguration(conf);
        if (!words[0].isEmpty()) {
            UserGroupInformation.loginUserFromKeytab("hdfs/localhost", words[0]);
        }
        FileSystem fs = FileSystem.get(conf);
        for (int i = 1; i < words.length; i += 4) {
            Path path = new Path(words[i]);
            fs.mkdirs(path);
            fs.setOwner(path, words[i + 1], words[i + 2]);
            fs.setPermission(path, new FsPermission(words[i + 3]));
        }
    }
}
