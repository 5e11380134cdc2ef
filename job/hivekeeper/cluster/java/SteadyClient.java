package hivekeeper;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.thrift.transport.TTransportException;

/**
 * Hive's client, which leaves the rest of an answer that was too large on its connection, and reads that as the answer to the next
 * question. The rest is a text that somebody has chosen, and the next question may be about any table; so there is a new connection first.
 */
public class SteadyClient implements InvocationHandler {
  private static final String TOO_LARGE = "its answer is larger than the driver has memory for, or than Thrift allows";

  private final IMetaStoreClient client;

  private SteadyClient(IMetaStoreClient client) {
    this.client = client;
  }

  static IMetaStoreClient around(IMetaStoreClient client) {
    Class[] kinds = {IMetaStoreClient.class};
    return (IMetaStoreClient) Proxy.newProxyInstance(IMetaStoreClient.class.getClassLoader(), kinds, new SteadyClient(client));
  }

  static boolean isTooLarge(MetaException failed) {
    return TOO_LARGE.equals(failed.getMessage());
  }

  /** Thrift from 0.14 on (Spark 4) reads no answer above a hundred megabytes. */
  private static boolean isTooMuch(Throwable cause) {
    boolean isOverLimit = cause instanceof TTransportException && String.valueOf(cause.getMessage()).contains("MaxMessageSize");
    return isOverLimit || cause instanceof OutOfMemoryError;
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(client, arguments);
    } catch (InvocationTargetException failed) {
      if (!isTooMuch(failed.getCause())) throw failed.getCause();
      // An embedded metastore has no connection.
      if (!client.isLocalMetaStore()) client.reconnect();
      throw new MetaException(TOO_LARGE);
    }
  }
}
