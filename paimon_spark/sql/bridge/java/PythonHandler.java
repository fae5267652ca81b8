package paimon.python;

/**
 * An object of Python whose methods Java calls by their names.
 *
 * Texts and numbers reach Python in the call itself. An array would cost a call back for each of its items.
 */
public interface PythonHandler {
  int MOST = 8;
  int IN_ARRAY = -1;

  /** @param number of the arguments that are given; IN_ARRAY: the first one is an array of all */
  Object call(
      String method, int number, Object a, Object b, Object c, Object d, Object e, Object f, Object g, Object h);
}
