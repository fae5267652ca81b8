package paimon.python;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table of the format "paimon": batches are read and written as in SQL where Python offers it, else by the Python data
 * source.
 *
 * Streams are those of the Python data source. Spark asks for a scan when it plans a query.
 */
public class FormatTable extends PythonTable {
  static final String FILTER = "filter";
  static final String LIMIT = "limit";
  private static final String NATIVE_WRITES = "spark.paimon.write.native";
  private static volatile Object reader;
  private static volatile Object writer;
  private static volatile SparkContext context;
  private final boolean forStream = calledForStream();
  private final boolean writesInDriver = writesInDriver();

  public FormatTable(PythonDataSourceV2 source, StructType schema) {
    super(source, "paimon", schema);
    if (reader != null && !forStream) {
      installRules();  // before a query is optimized
    }
  }

  private static void installRules() {
    SparkSession session = Sessions.active(null);
    PaimonDivideRule.install(session);
    PaimonTranslationRule.install(session);
  }

  /** Use these handlers for all later reads, and for later writes in sessions of this context. */
  public static void use(Object reads, Object writes, SparkContext sparkContext) {
    reader = reads;
    writer = writes;
    context = sparkContext;
  }

  /** The columns of a batch read; null: the Python data source names them, or raises its error. */
  public static StructType schemaOf(CaseInsensitiveStringMap options) {
    if (reader == null || calledForStream()) {
      return null;
    }
    String found = (String) Bridge.call(reader, "schema", new Object[] {Trees.of(options), Sessions.described()});
    return found == null ? null : Trees.struct(found);
  }

  /** The option `filter` of a batch read if Spark evaluates it in the plan; null: the reader does. */
  static String filterOfPlan(CaseInsensitiveStringMap options) {
    String text = options.get(FILTER);
    if (text == null || reader == null || calledForStream() || !PaimonExtensions.evaluatesFilters(Sessions.active(null))) {
      return null;
    }
    return (String) Bridge.call(reader, "filter_of_plan", new Object[] {text, Sessions.described()});
  }

  /** The options of a read without those that its plan evaluates: a filter, and the limit that follows it. */
  public static CaseInsensitiveStringMap ofReader(CaseInsensitiveStringMap options) {
    return filterOfPlan(options) == null ? options : withoutFilter(options);
  }

  static CaseInsensitiveStringMap withoutFilter(CaseInsensitiveStringMap options) {
    HashMap others = new HashMap(options.asCaseSensitiveMap());
    Object[] keys = others.keySet().toArray();
    for (int i = 0; i < keys.length; i++) {
      if (FILTER.equalsIgnoreCase((String) keys[i]) || LIMIT.equalsIgnoreCase((String) keys[i])) {
        others.remove(keys[i]);
      }
    }
    return new CaseInsensitiveStringMap((Map) others);
  }

  /** With V1_BATCH_WRITE Spark hands a batch as a Dataset to the write, and plans no tasks itself. */
  public Set capabilities() {
    if (!writesInDriver) {
      return super.capabilities();
    }
    HashSet all = new HashSet(super.capabilities());
    all.add(TableCapability.V1_BATCH_WRITE);
    return all;
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    WriteBuilder python = super.newWriteBuilder(info);
    return writesInDriver ? new FormatWriteBuilder(writer, info, (PythonWriteBuilder) python) : python;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    if (reader == null || forStream) {
      return super.newScanBuilder(options);
    }
    installRules();  // the query may run in another session than the one that loaded the table
    if (filterOfPlan(options) != null) {
      throw new IllegalStateException("the plan lacks the option 'filter' of the read: load the table again");
    }
    Object[] arguments = new Object[] {Trees.of(options), schema().json(), Sessions.described()};
    Object reads = Bridge.call(reader, "reads", arguments);
    return reads == null ? super.newScanBuilder(options) : new PaimonScanBuilder(reads, options);
  }

  /** The scan builder of the Python data source. */
  public static ScanBuilder ofPython(SupportsRead table, CaseInsensitiveStringMap options) {
    return table instanceof FormatTable ? ((FormatTable) table).ofPython(options) : table.newScanBuilder(options);
  }

  private ScanBuilder ofPython(CaseInsensitiveStringMap options) {
    return super.newScanBuilder(options);
  }

  /** True if the driver handles the batch writes of the session of this thread, or of the default session. */
  private static boolean writesInDriver() {
    SparkSession session = Sessions.current();
    if (writer == null || session == null || session.sparkContext() != context) {
      return false;
    }
    return !"false".equalsIgnoreCase(session.conf().get(NATIVE_WRITES, "true").trim());
  }

  /** True if spark.readStream creates the table: Spark passes a source no sign of it. */
  private static boolean calledForStream() {
    StackTraceElement[] frames = Thread.currentThread().getStackTrace();
    for (int i = 0; i < frames.length; i++) {
      if (frames[i].getClassName().endsWith(".DataStreamReader")) {
        return true;
      }
    }
    return false;
  }
}
