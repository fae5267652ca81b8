package paimon.python;

import java.lang.reflect.Method;

/** Checks the names of Spark's internals that Python uses. */
public class PaimonNames {
  /** Return the class, or its first method, that this version of Spark lacks; null: it lacks none. */
  public static String missing(String owner, String methods) {
    Class type;
    try {
      type = Class.forName(owner, false, PaimonNames.class.getClassLoader());
    } catch (ClassNotFoundException error) {
      return "class " + owner;
    }
    String[] names = methods.length() == 0 ? new String[0] : methods.split(",");
    for (int i = 0; i < names.length; i++) {
      if (!hasMethod(type, names[i])) {
        return "method " + owner + "." + names[i];
      }
    }
    return null;
  }

  private static boolean hasMethod(Class type, String name) {
    Method[] found = type.getMethods();
    for (int i = 0; i < found.length; i++) {
      if (found[i].getName().equals(name)) {
        return true;
      }
    }
    return false;
  }
}
