package hivekeeper;

import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.LockComponentBuilder;
import org.apache.hadoop.hive.metastore.LockRequestBuilder;
import org.apache.hadoop.hive.metastore.api.DataOperationType;
import org.apache.hadoop.hive.metastore.api.LockRequest;
import org.apache.hadoop.hive.metastore.api.LockResponse;
import org.apache.hadoop.hive.metastore.api.LockState;
import org.apache.hadoop.security.UserGroupInformation;

/** Hive's own exclusive lock on one table at a time: best effort, nothing relies on it alone. */
public class HiveLock {
  // Servers drop a lock after hive.txn.timeout without a heartbeat: 300 s unless a site changed it.
  private static final long HEARTBEAT_MS = 20000L;
  private static final long POLL_MS = 200L;

  private final MetastoreConnection connection;
  private long id;
  private Thread heart;

  public HiveLock(MetastoreConnection connection) {
    this.connection = connection;
  }

  /** Returns "" if the lock is held now, else why not; never throws. */
  public String lock(String database, String table, long timeoutMs) {
    try {
      LockResponse answer = connection.client.lock(request(database, table));
      id = answer.getLockid();
      long end = System.currentTimeMillis() + timeoutMs;
      while (answer.getState() == LockState.WAITING && System.currentTimeMillis() < end) {
        Thread.sleep(POLL_MS);
        answer = connection.client.checkLock(id);
      }
      if (answer.getState() == LockState.ACQUIRED) {
        startHeart();
        return "";
      }
      unlock();
      return "another holds Hive's lock on it";
    } catch (Throwable failed) {
      unlock();
      return Messages.firstLine(Messages.innermost(failed));
    }
  }

  private static LockRequest request(String database, String table) throws Exception {
    LockComponentBuilder component = new LockComponentBuilder();
    component.setExclusive();
    component.setOperationType(DataOperationType.NO_TXN);
    component.setDbName(database);
    component.setTableName(table);
    LockRequestBuilder request = new LockRequestBuilder("hivekeeper");
    request.setUser(UserGroupInformation.getCurrentUser().getShortUserName());
    request.addLockComponent(component.build());
    return request.build();
  }

  /** Never throws: a lock that cannot be released ends by itself when its heartbeats stop. */
  public void unlock() {
    if (heart != null) {
      heart.interrupt();
      heart = null;
    }
    if (id == 0) return;
    try {
      connection.client.unlock(id);
    } catch (Throwable failed) {
      // As above: it ends by itself.
    }
    id = 0;
  }

  private void startHeart() {
    heart = new Thread(new Heartbeat(connection, id), "hivekeeper-hive-lock");
    heart.setDaemon(true);
    heart.start();
  }

  /** Keeps one lock alive until interrupted, with its own client: clients are not thread-safe. */
  private static class Heartbeat implements Runnable {
    private final MetastoreConnection connection;
    private final long id;

    Heartbeat(MetastoreConnection connection, long id) {
      this.connection = connection;
      this.id = id;
    }

    public void run() {
      IMetaStoreClient client = null;
      try {
        client = connection.newClient();
        while (true) {
          client.heartbeat(0L, id);
          Thread.sleep(HEARTBEAT_MS);
        }
      } catch (Throwable ended) {
        // Released or lost: a run does not depend on it.
      } finally {
        if (client != null) client.close();
      }
    }
  }
}
