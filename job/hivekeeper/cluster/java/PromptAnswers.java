package hivekeeper;

import java.lang.reflect.Field;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import py4j.DefaultGatewayServerListener;
import py4j.GatewayServer;
import py4j.Py4JServerConnection;

/**
 * Has the JVM send each answer to Python at once. Py4J writes one of more than 8 KB in several pieces, and without TCP_NODELAY the kernel
 * holds back the second until Python has confirmed the first, which it does after 40 ms (py4j issue 516; 0.10.9).
 */
public class PromptAnswers extends DefaultGatewayServerListener {
  /** For the connections that there are, and those of later threads of Python. */
  public PromptAnswers(GatewayServer server) {
    server.addListener(this);
    for (Py4JServerConnection connection : connectionsOf(server)) if (connection != null) connectionStarted((Py4JServerConnection) connection);
  }

  /** Has an effect unless the connection is being closed: that of a thread of Python which has ended has no socket for a moment, or a closed one. */
  public void connectionStarted(Py4JServerConnection connection) {
    Socket socket = connection.getSocket();
    if (socket == null) return;
    try {
      socket.setTcpNoDelay(true);
    } catch (SocketException closed) {
      return;
    }
  }

  /** Py4J has no method that tells them. Where it keeps them elsewhere, answers on these are only slow. One that goes meanwhile may leave a null. */
  private static List<Py4JServerConnection> connectionsOf(GatewayServer server) {
    try {
      Field field = GatewayServer.class.getDeclaredField("connections");
      field.setAccessible(true);
      return new ArrayList<Py4JServerConnection>((List) field.get(server));
    } catch (ReflectiveOperationException unknown) {
      return new ArrayList<Py4JServerConnection>();
    }
  }
}
