import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/**
 * A table of a metastore that Spark cannot talk to: URI make DATABASE ROOT makes `events` with discovery switched on, which finds its
 * partitions; URI list DATABASE prints their values; URI drop DATABASE drops it, without its files.
 */
public class DiscoveredTable {
    public static void main(String[] words) throws Exception {
        Configuration conf = MetastoreConf.newMetastoreConf();
        MetastoreConf.setVar(conf, MetastoreConf.ConfVars.THRIFT_URIS, words[0]);
        HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
        if (words[1].equals("make")) {
            make(client, words[2], words[3]);
        } else if (words[1].equals("list")) {
            for (Partition partition : client.listPartitions(words[2], "events", (short) -1)) {
                System.out.println(partition.getValues().get(0));
            }
        } else {
            client.dropTable(words[2], "events", false, true);
            client.dropDatabase(words[2]);
        }
        client.close();
    }

    static void make(HiveMetaStoreClient client, String database, String root) throws Exception {
        client.createDatabase(new Database(database, "", root + "-" + database, Collections.emptyMap()));
        Table table = new Table();
        table.setDbName(database);
        table.setTableName("events");
        table.setTableType("EXTERNAL_TABLE");
        table.putToParameters("EXTERNAL", "TRUE");
        table.putToParameters("discover.partitions", "true");
        table.setPartitionKeys(Collections.singletonList(new FieldSchema("dt", "string", "")));
        table.setSd(storage(root));
        client.createTable(table);
    }

    static StorageDescriptor storage(String location) {
        SerDeInfo serde = new SerDeInfo("", "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", Collections.emptyMap());
        StorageDescriptor storage = new StorageDescriptor();
        storage.setCols(Collections.singletonList(new FieldSchema("id", "bigint", "")));
        storage.setLocation(location);
        storage.setInputFormat("org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat");
        storage.setOutputFormat("org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat");
        storage.setSerdeInfo(serde);
        storage.setParameters(Collections.emptyMap());
        return storage;
    }
}
