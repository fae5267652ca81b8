package paimon.python;

import java.util.concurrent.ConcurrentHashMap;

/**
 * The Python handlers of the installed catalogs, by catalog name, and the call of a method of a handler.
 *
 * Each class of this package implements interfaces of Spark and passes their calls on to one PythonHandler. A method
 * with a default in Spark's interface keeps it, so the classes work with every version of Spark that has these
 * interfaces. Janino compiles them on the driver: no lambdas, no inference of type arguments.
 */
public class Bridge {
  public static final ConcurrentHashMap HANDLERS = new ConcurrentHashMap();

  static Object call(Object handler, String method, Object[] arguments) {
    boolean outermost = Connections.begin();
    try {
      Object[] given = new Object[PythonHandler.MOST];
      if (arguments.length > given.length) {
        given[0] = arguments;
        return call((PythonHandler) handler, method, PythonHandler.IN_ARRAY, given);
      }
      System.arraycopy(arguments, 0, given, 0, arguments.length);
      return call((PythonHandler) handler, method, arguments.length, given);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      return Bridge.raise(error.getCause());  // a checked exception of Spark, raised by Python
    } finally {
      Connections.end(outermost);
    }
  }

  private static Object call(PythonHandler handler, String method, int number, Object[] a) {
    return handler.call(method, number, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
  }

  private static Object raise(Throwable error) {
    Bridge.throwUnchecked(error);
    return null;
  }

  /** Throw an exception that no signature declares. */
  static <T extends Throwable> void throwUnchecked(Throwable error) throws T {
    throw (T) error;
  }
}
