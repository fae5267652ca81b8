package paimon.python;

import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The session whose query is planned in a thread, and its settings. */
public class Sessions {
  private Sessions() {}

  /** Return the session of this thread, or the other session if this thread has none. */
  public static SparkSession active(SparkSession otherwise) {
    Option found = SparkSession$.MODULE$.getActiveSession();
    return found.isDefined() ? (SparkSession) found.get() : otherwise;
  }

  /**
   * Return true if a method of a Spark class is on the stack of this thread.
   *
   * @param className the class, without its package
   */
  public static boolean isCalledBy(String className, String method) {
    StackTraceElement[] frames = Thread.currentThread().getStackTrace();
    for (int i = 0; i < frames.length; i++) {
      if (frames[i].getMethodName().equals(method) && frames[i].getClassName().endsWith("." + className)) {
        return true;
      }
    }
    return false;
  }

  /** Return the session of this thread, else the default session, which serves new threads; null: there is neither. */
  static SparkSession current() {
    Option found = SparkSession$.MODULE$.getDefaultSession();
    return active(found.isDefined() ? (SparkSession) found.get() : null);
  }

  /**
   * The settings of the connector in the session of this thread, and whether it asks for buckets, as a JSON object.
   *
   * Only a setting asks, not its default: a scan with buckets has fewer tasks. If Spark may shuffle other rows into
   * buckets, executors would evaluate the function, whose class they lack.
   */
  static String ownSettings() {
    SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    TreeMap found = settings(session, "spark.paimon.");
    SQLConf conf = session.sessionState().conf();
    String key = "spark.sql.sources.v2.bucketing.enabled";
    if (conf.contains(key) && conf.v2BucketingEnabled() && !conf.v2BucketingShuffleEnabled()) {
      found.put(key, "true");
    }
    found.putAll(settings(session, "spark.sql.variant.allowReadingShredded"));
    found.putAll(settings(session, "spark.sql.parquet.ignoreVariantAnnotation"));
    return Trees.json(found);
  }

  /** The id of the session of this thread, its settings of the connector and its parallelism, as a JSON object. */
  static String described() {
    SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    TreeMap parts = new TreeMap();
    parts.put("id", session.sessionUUID());
    parts.put("settings", settings(session, "spark.paimon."));
    parts.put("parallelism", Integer.valueOf(session.sparkContext().defaultParallelism()));
    return Trees.json(parts);
  }

  /**
   * The settings whose names begin with a prefix, as a JSON object.
   *
   * @param ofThread true: the settings of the session of this thread, if it has one
   */
  public static String settings(SparkSession session, boolean ofThread, String prefix) {
    return Trees.json(settings(ofThread ? active(session) : session, prefix));
  }

  private static TreeMap settings(SparkSession session, String prefix) {
    TreeMap found = new TreeMap();
    Map every = CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
    Iterator names = every.keySet().iterator();
    while (names.hasNext()) {
      String name = (String) names.next();
      if (name.startsWith(prefix)) {
        found.put(name, every.get(name));
      }
    }
    return found;
  }
}
