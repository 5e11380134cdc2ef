import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.federation.store.MountTableStore;
import org.apache.hadoop.hdfs.server.federation.store.StateStoreService;
import org.apache.hadoop.hdfs.server.federation.store.protocol.AddMountTableEntryRequest;
import org.apache.hadoop.hdfs.server.federation.store.records.MountTable;

/** Write mount points to a router's store before it starts, without its server for administrators: PATH NAMESERVICE TARGET for each. */
public class MakeMounts {
    public static void main(String[] words) throws Exception {
        Configuration conf = new HdfsConfiguration();
        conf.addResource("hdfs-rbf-default.xml");
        conf.addResource("hdfs-site.xml");
        StateStoreService store = new StateStoreService();
        store.init(conf);
        store.start();
        MountTableStore mounts = store.getRegisteredRecordStore(MountTableStore.class);
        for (int i = 0; i < words.length; i += 3) {
            MountTable mount = MountTable.newInstance(words[i], Collections.singletonMap(words[i + 1], words[i + 2]));
            if (!mounts.addMountTableEntry(AddMountTableEntryRequest.newInstance(mount)).getStatus()) {
                throw new IllegalStateException(words[i]);
            }
        }
        store.stop();
    }
}
