package paimon.python;

import java.lang.reflect.Method;

/** Finds names inside of Spark that Python touches. */
public class PaimonNames {
  /** Return the class, or the first of its methods, that this Spark lacks; null: it has them all. */
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
