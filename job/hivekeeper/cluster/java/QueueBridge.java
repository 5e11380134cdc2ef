package hivekeeper;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Iterator;
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

/**
 * Asks the ResourceManager about a queue. A class of its own: a Spark without YARN's jars must not miss the rest.
 *
 * Compiled at run time by Janino, so: no generics, lambdas or diamonds.
 */
public class QueueBridge {
  final ObjectMapper json = new ObjectMapper();

  /** "null" where the configuration names no ResourceManager. */
  public String queue(Configuration hadoop, String name) throws Exception {
    YarnConfiguration conf = new YarnConfiguration(hadoop);
    boolean ha = conf.get("yarn.resourcemanager.ha.rm-ids") != null;
    if (!ha && conf.get("yarn.resourcemanager.address", "0.0.0.0:8032").startsWith("0.0.0.0")) return "null";
    // By default its clients try for a quarter of an hour.
    conf.set("yarn.resourcemanager.connect.max-wait.ms", "15000");
    conf.set("yarn.resourcemanager.connect.retry-interval.ms", "3000");
    conf.set("ipc.client.connect.max.retries", "2");
    YarnClient client = YarnClient.createYarnClient();
    client.init(conf);
    client.start();
    try {
      return json.writeValueAsString(describe(client, name));
    } finally {
      client.stop();
    }
  }

  Map describe(YarnClient client, String name) throws Exception {
    Map found = new LinkedHashMap();
    List others = new ArrayList();
    QueueInfo queue = null;
    for (Iterator each = client.getAllQueues().iterator(); each.hasNext();) {
      QueueInfo one = (QueueInfo) each.next();
      String full = one.getQueueName();
      others.add(full);
      if (full.equals(name) || shortName(name).equals(full)) queue = one;
    }
    found.put("name", name);
    found.put("exists", Boolean.valueOf(queue != null));
    found.put("others", others);
    if (queue != null) {
      found.put("running", Boolean.valueOf(queue.getQueueState() == QueueState.RUNNING));
      found.put("enforced", Boolean.valueOf(client.getConfig().getBoolean("yarn.acl.enable", false)));
      found.put("may_submit", Boolean.valueOf(maySubmit(client, queue.getQueueName())));
    }
    return found;
  }

  /** The capacity scheduler says `etl` in one answer and `root.etl` in another; its leaf names are unique unless a site asks otherwise. */
  static String shortName(String queue) {
    return queue.substring(queue.lastIndexOf('.') + 1);
  }

  boolean maySubmit(YarnClient client, String name) throws Exception {
    for (Iterator each = client.getQueueAclsInfo().iterator(); each.hasNext();) {
      QueueUserACLInfo info = (QueueUserACLInfo) each.next();
      if (shortName(info.getQueueName()).equals(shortName(name))) return info.getUserAcls().contains(QueueACL.SUBMIT_APPLICATIONS);
    }
    return false;
  }
}
