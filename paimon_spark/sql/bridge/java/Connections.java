package paimon.python;

import java.lang.reflect.Method;
import py4j.ClientServerConnection;
import py4j.GatewayServer;
import py4j.PythonClient;

/**
 * The connections over which Java threads call Python.
 *
 * py4j opens one connection per Java thread, and Python one thread per connection. Neither ends with the Java thread,
 * and Spark starts new threads for each query. So the connection of such a thread is closed after its call. Threads of
 * py4j itself, which serve calls from Python, keep their connections.
 */
public class Connections {
  private static final ThreadLocal CALLS = new ThreadLocal();  // int[1]: the calls since the outermost one began
  private static volatile GatewayServer server;
  private static volatile Method taking;

  private Connections() {}

  /** Let threads close their connections to the Python process of this server. */
  public static void use(GatewayServer given) throws Exception {
    Method method = PythonClient.class.getDeclaredMethod("getConnection", new Class[0]);
    method.setAccessible(true);
    taking = method;
    server = given;
  }

  /** Record that this thread calls Python; return true unless it is already inside a call to Python. */
  static boolean begin() {
    int[] calls = (int[]) CALLS.get();
    boolean outermost = calls == null;
    if (outermost) {
      calls = new int[1];
      CALLS.set(calls);
    }
    calls[0]++;
    return outermost;
  }

  /** Close the connection of this thread after its outermost call. */
  static void end(boolean outermost) {
    if (!outermost) {
      return;
    }
    int calls = ((int[]) CALLS.get())[0];
    CALLS.remove();
    if (server == null || !(server.getCallbackClient() instanceof PythonClient) || servesPython()) {
      return;
    }
    PythonClient client = (PythonClient) server.getCallbackClient();
    ClientServerConnection connection = client.getPerThreadConnection();
    if (connection == null || connection.getSocket() == null || !connection.isInitiatedFromClient()) {
      return;
    }
    try {
      // Every call has added it to the connections that the client keeps, also a call inside another one.
      for (int i = 0; i < calls; i++) {
        taking.invoke(client, new Object[0]);
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    connection.shutdown();
  }

  /**
   * Return true if this thread serves a call from Python, or is in a call to Python that is not ours, for example of
   * foreachBatch: then its connection is in use.
   */
  private static boolean servesPython() {
    StackTraceElement[] frames = Thread.currentThread().getStackTrace();
    for (int i = 0; i < frames.length; i++) {
      if (frames[i].getClassName().startsWith("py4j.")) {
        return true;
      }
    }
    return false;
  }
}
