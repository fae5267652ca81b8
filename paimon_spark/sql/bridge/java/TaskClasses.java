package paimon.python;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.JobArtifactState;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkFiles;
import scala.Option;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction0;
import scala.runtime.BoxedUnit;

/**
 * The classes of this package for the tasks of a cluster. Executors fetch them from the driver as a jar, once each.
 *
 * The tasks of a local session run in the JVM of the driver, which has the classes.
 */
class TaskClasses {
  private static final String LACKING = "ClassNotFoundException: paimon.python.";

  private TaskClasses() {}

  /**
   * Give the tasks of the jobs of this thread the classes. Return the reason why they cannot have them, else null.
   *
   * A session may have jars of its own, which replace those of the application. So the jar joins the jars that the tasks of
   * this thread get. It becomes the first jar of a session only if the session does not get those of the application.
   */
  static synchronized String send(SparkContext context) throws IOException {
    if (context.isLocal()) {
      return null;
    }
    byte[] classes = ClassDefiner.jar();
    if (classes == null) {
      return "the driver has no copy of its classes for executors";
    }
    Path jar = Paths.get(SparkFiles.getRootDirectory(), name(classes));
    if (!Files.exists(jar)) {
      Path partial = Files.createTempFile(jar.getParent(), "paimon-classes-", ".partial");
      Files.write(partial, classes);
      Files.move(partial, jar, StandardCopyOption.ATOMIC_MOVE);
    }
    AddedJar added = new AddedJar(context, jar.toString());
    if (!isSent(context, jar) && !hasOwnJars(context)) {
      JobArtifactSet$.MODULE$.withActiveJobArtifactState(null, added);
    }
    if (!isSent(context, jar)) {
      added.apply();
    }
    return isSent(context, jar) ? null : "Spark does not serve " + jar + " to executors";
  }

  /** Return the reason for an error if executors could not load the classes; null: the error has another reason. */
  static String lacking(Throwable error) {
    String text = String.valueOf(error);
    byte[] classes = ClassDefiner.jar();
    boolean lacks = text.contains(LACKING) || (classes != null && text.contains(name(classes)));
    return lacks ? "executors cannot load the connector's classes: " + text.split("\n", 2)[0] : null;
  }

  /** Return true if the tasks of this thread's jobs get the jar. */
  private static boolean isSent(SparkContext context, Path jar) {
    String end = "/" + jar.getFileName();
    Iterator urls = JobArtifactSet$.MODULE$.getActiveOrDefault(context).jars().keysIterator();
    while (urls.hasNext()) {
      if (((String) urls.next()).endsWith(end)) {
        return true;
      }
    }
    return false;
  }

  /** Return true if the session of this thread has jars. */
  private static boolean hasOwnJars(SparkContext context) {
    Option state = JobArtifactSet$.MODULE$.getActiveOrDefault(context).state();
    return state.isDefined() && context.addedJars().contains(((JobArtifactState) state.get()).uuid());
  }

  private static String name(byte[] classes) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(classes);
      return "paimon-classes-" + new BigInteger(1, digest).toString(16) + ".jar";
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error);  // each Java has SHA-256
    }
  }
}

/** Adds a jar to the tasks of an application, or of the session of the thread. */
class AddedJar extends AbstractFunction0 {
  private final SparkContext context;
  private final String path;

  AddedJar(SparkContext context, String path) {
    this.context = context;
    this.path = path;
  }

  public Object apply() {
    context.addJar(path);
    return BoxedUnit.UNIT;
  }
}
