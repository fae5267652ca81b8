package paimon.python;

/**
 * A Python function of the name of a question and its arguments.
 *
 * Texts and numbers reach Python in the call itself. An array would cost a call back for each of its items.
 */
public interface PythonFunction {
  int MOST = 8;
  int IN_ARRAY = -1;

  /** @param number of the arguments that are given; IN_ARRAY: the first one is an array of all */
  Object ask(
      String question, int number, Object a, Object b, Object c, Object d, Object e, Object f, Object g, Object h);
}
