package paimon.python;

import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;

/**
 * The Python functions of the installed catalogs, by catalog name, and the call of one.
 *
 * Each class of this package implements interfaces of Spark and passes its questions on to one Python function, a
 * java.util.function.BiFunction of the name of the question and its arguments. A method that has a default in Spark's
 * interface keeps it, so the classes fit every Spark that has these interfaces. Janino compiles them on the driver: no
 * lambdas, no inference of type arguments.
 */
public class Bridge {
  public static final ConcurrentHashMap FUNCTIONS = new ConcurrentHashMap();

  static Object ask(Object python, String question, Object[] arguments) {
    try {
      return ((BiFunction) python).apply(question, arguments);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      return Bridge.raise(error.getCause());  // a checked exception of Spark, raised by Python
    }
  }

  private static Object raise(Throwable error) {
    Bridge.sneak(error);
    return null;
  }

  private static <T extends Throwable> void sneak(Throwable error) throws T {
    throw (T) error;
  }
}
