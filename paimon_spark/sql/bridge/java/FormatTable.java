package paimon.python;

import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table of the format "paimon": batch reads as in SQL where Python offers them, else those of the Python data source.
 *
 * Streams and writes are those of the Python data source. Spark asks for a scan when it plans a query.
 */
public class FormatTable extends PythonTable {
  private static volatile Object handler;
  private final boolean forStream = calledForStream();

  public FormatTable(PythonDataSourceV2 source, StructType schema) {
    super(source, "paimon", schema);
  }

  /** Use a handler for all later reads. */
  public static void use(Object reads) {
    handler = reads;
  }

  /** The columns of a batch read; null: the Python data source names them, or raises its error. */
  public static StructType schemaOf(CaseInsensitiveStringMap options) {
    if (handler == null || calledForStream()) {
      return null;
    }
    String found = (String) Bridge.call(handler, "schema", new Object[] {Trees.of(options), Sessions.described()});
    return found == null ? null : Trees.struct(found);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    if (handler == null || forStream) {
      return super.newScanBuilder(options);
    }
    PaimonDivideRule.install(Sessions.active(null));
    PaimonTranslationRule.install(Sessions.active(null));
    Object[] arguments = new Object[] {Trees.of(options), schema().json(), Sessions.described()};
    Object reads = Bridge.call(handler, "reads", arguments);
    return reads == null ? super.newScanBuilder(options) : new PaimonScanBuilder(reads, options);
  }

  /** The scan builder of the Python data source. */
  public static ScanBuilder ofPython(SupportsRead table, CaseInsensitiveStringMap options) {
    return table instanceof FormatTable ? ((FormatTable) table).ofPython(options) : table.newScanBuilder(options);
  }

  private ScanBuilder ofPython(CaseInsensitiveStringMap options) {
    return super.newScanBuilder(options);
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
