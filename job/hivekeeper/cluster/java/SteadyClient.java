package hivekeeper;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.MetaException;

/**
 * Hive's client, which leaves the rest of an answer that took all memory on its connection, and reads that as the answer to the next
 * question. The rest is a text that somebody has chosen, and the next question may be about any table; so there is a new connection first.
 */
public class SteadyClient implements InvocationHandler {
  private static final String TOO_LARGE = "its answer takes more memory than the driver has";

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

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(client, arguments);
    } catch (InvocationTargetException failed) {
      if (!(failed.getCause() instanceof OutOfMemoryError)) throw failed.getCause();
      // An embedded metastore has no connection.
      if (!client.isLocalMetaStore()) client.reconnect();
      throw new MetaException(TOO_LARGE);
    }
  }
}
