package paimon.python;

/** A message at the end of a server whose Python process has died, which ends the JVM as well. */
public class ServerEnd extends Thread {
  private static volatile boolean expected = false;
  private static boolean announced = false;

  private ServerEnd() {}

  /** Print the message if the JVM ends before `expect` is called. A second call changes nothing. */
  public static synchronized void announce() {
    if (!announced) {
      Runtime.getRuntime().addShutdownHook(new ServerEnd());
      announced = true;
    }
    expected = false;
  }

  /** Print no message: the server has been stopped. */
  public static void expect() {
    expected = true;
  }

  public void run() {
    if (!expected) {
      System.err.println("The Python process of the server has ended, so the server ends; clients lose their sessions.");
    }
  }
}
