package paimon.python;

/**
 * A Python object whose methods Java calls by name.
 *
 * Texts and numbers are sent with the call. An array would cost one call back per item.
 */
public interface PythonHandler {
  int MOST = 8;
  int IN_ARRAY = -1;

  /** @param number the number of arguments; IN_ARRAY: the first argument is an array of all arguments */
  Object call(
      String method, int number, Object a, Object b, Object c, Object d, Object e, Object f, Object g, Object h);
}
