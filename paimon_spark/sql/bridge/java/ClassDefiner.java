package paimon.python;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

/** Defines the classes of a jar in a class loader to which no URL can be added, such as the one that loaded Spark. */
public final class ClassDefiner {
  private static volatile byte[] kept;

  private ClassDefiner() {}

  /** Keep the jar of the classes for the executors of a cluster. */
  public static void keep(byte[] jar) {
    kept = jar;
  }

  /** Return the jar of the classes; null: another program defined them. */
  public static byte[] jar() {
    return kept;
  }

  /** Define all classes of a jar but this one. A class must wait until the class that it extends is defined. */
  public static void define(ClassLoader loader, byte[] jar) throws Throwable {
    Method define = ClassLoader.class.getDeclaredMethod(
        "defineClass", new Class[] {String.class, byte[].class, Integer.TYPE, Integer.TYPE});
    define.setAccessible(true);
    keep(jar);
    Map waiting = classes(jar);
    waiting.remove(ClassDefiner.class.getName());
    while (!waiting.isEmpty()) {
      Throwable fault = null;
      int before = waiting.size();
      for (Iterator each = waiting.entrySet().iterator(); each.hasNext();) {
        Map.Entry entry = (Map.Entry) each.next();
        byte[] code = (byte[]) entry.getValue();
        try {
          define.invoke(loader, new Object[] {entry.getKey(), code, Integer.valueOf(0), Integer.valueOf(code.length)});
          each.remove();
        } catch (InvocationTargetException error) {
          fault = error.getCause();
          if (!(fault instanceof NoClassDefFoundError)) {
            throw fault;
          }
        }
      }
      if (waiting.size() == before) {
        throw fault;
      }
    }
  }

  private static Map classes(byte[] jar) throws IOException {
    Map found = new HashMap();
    ZipInputStream stream = new ZipInputStream(new ByteArrayInputStream(jar));
    for (ZipEntry entry = stream.getNextEntry(); entry != null; entry = stream.getNextEntry()) {
      String file = entry.getName();
      found.put(file.substring(0, file.length() - ".class".length()).replace('/', '.'), stream.readAllBytes());
    }
    return found;
  }
}
