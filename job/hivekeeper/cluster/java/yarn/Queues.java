package hivekeeper.yarn;

import hivekeeper.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.QueueACL;
import org.apache.hadoop.yarn.api.records.QueueInfo;
import org.apache.hadoop.yarn.api.records.QueueState;
import org.apache.hadoop.yarn.api.records.QueueUserACLInfo;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** Queries the ResourceManager about a queue. Compiled separately, so that the rest works in a Spark without YARN's jars. */
public class Queues {
  private final Configuration hadoop;

  public Queues(Configuration hadoop) {
    this.hadoop = hadoop;
  }

  /** "null" if the configuration names no ResourceManager. */
  public String find(String name) throws Exception {
    YarnConfiguration conf = new YarnConfiguration(hadoop);
    boolean ha = conf.get("yarn.resourcemanager.ha.rm-ids") != null;
    if (!ha && conf.get("yarn.resourcemanager.address", "0.0.0.0:8032").startsWith("0.0.0.0")) return "null";
    // By default its clients retry for a quarter of an hour.
    conf.set("yarn.resourcemanager.connect.max-wait.ms", "15000");
    conf.set("yarn.resourcemanager.connect.retry-interval.ms", "3000");
    conf.set("ipc.client.connect.max.retries", "2");
    YarnClient client = YarnClient.createYarnClient();
    client.init(conf);
    client.start();
    try {
      return Json.write(describe(client, name));
    } finally {
      client.stop();
    }
  }

  private static Map<String, Object> describe(YarnClient client, String name) throws Exception {
    List<String> others = new ArrayList<String>();
    QueueInfo queue = null;
    for (QueueInfo one : client.getAllQueues()) {
      String full = one.getQueueName();
      others.add(full);
      if (full.equals(name) || shortName(name).equals(full)) queue = one;
    }
    Map<String, Object> found = new LinkedHashMap<String, Object>();
    found.put("name", name);
    found.put("exists", queue != null);
    found.put("others", others);
    if (queue != null) {
      found.put("running", queue.getQueueState() == QueueState.RUNNING);
      found.put("enforced", client.getConfig().getBoolean("yarn.acl.enable", false));
      found.put("may_submit", maySubmit(client, queue.getQueueName()));
    }
    return found;
  }

  /** The capacity scheduler returns `etl` in one answer and `root.etl` in another; leaf names are unique unless a site allows otherwise. */
  private static String shortName(String queue) {
    return queue.substring(queue.lastIndexOf('.') + 1);
  }

  private static boolean maySubmit(YarnClient client, String name) throws Exception {
    for (QueueUserACLInfo info : client.getQueueAclsInfo()) {
      if (shortName(info.getQueueName()).equals(shortName(name))) return info.getUserAcls().contains(QueueACL.SUBMIT_APPLICATIONS);
    }
    return false;
  }
}
