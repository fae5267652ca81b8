package paimon.python;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.collection.immutable.Seq;

/**
 * Spark's scan of local Parquet files, with more small files in a task than Spark chooses.
 *
 * Spark counts the opening of a file as 4 MB. On a local disk it takes as long as reading a few hundred kilobytes, and
 * a task for each 32 files takes longer than its files.
 */
class LocalFiles implements Scan, Batch {
  /** The bytes that take as long to read as the opening of a local file. */
  private static final long OPEN_COST = 256 << 10;

  private static final int TASKS_PER_CORE = 4;
  /** The most columns of all files of a task. Spark keeps the schema of each file until the task ends. */
  private static final int MOST_COLUMNS = 8192;
  /** Settings with which users choose the tasks of a scan. */
  private static final String[] CHOICES = {
    "spark.sql.files.openCostInBytes", "spark.sql.files.minPartitionNum", "spark.sql.files.maxPartitionNum"
  };

  private final SparkSession session;
  private final Scan scan;
  private final Batch batch;
  private final int mostFiles;

  /** @param columns the columns of the files */
  LocalFiles(SparkSession session, Scan scan, StructType columns) {
    this.session = session;
    this.scan = scan;
    batch = scan.toBatch();
    // the reader of a nested column keeps two vectors of each file until the task ends
    mostFiles = hasNested(scan.readSchema()) ? 0 : MOST_COLUMNS / Math.max(1, columns.length());
  }

  private static boolean hasNested(StructType columns) {
    StructField[] fields = columns.fields();
    for (int i = 0; i < fields.length; i++) {
      Object type = fields[i].dataType();
      if (type instanceof StructType || type instanceof ArrayType || type instanceof MapType) {
        return true;
      }
    }
    return false;
  }

  public StructType readSchema() {
    return scan.readSchema();
  }

  public Batch toBatch() {
    return this;
  }

  public Scan.ColumnarSupportMode columnarSupportMode() {
    return scan.columnarSupportMode();
  }

  public CustomMetric[] supportedCustomMetrics() {
    return scan.supportedCustomMetrics();
  }

  public PartitionReaderFactory createReaderFactory() {
    return batch.createReaderFactory();
  }

  public InputPartition[] planInputPartitions() {
    InputPartition[] tasks = batch.planInputPartitions();
    org.apache.spark.sql.classic.SparkSession classic = (org.apache.spark.sql.classic.SparkSession) session;
    SQLConf conf = classic.sessionState().conf();
    for (int i = 0; i < CHOICES.length; i++) {
      if (conf.contains(CHOICES[i])) {
        return tasks;
      }
    }
    int least = TASKS_PER_CORE * classic.sparkContext().defaultParallelism();
    return tasks.length <= least ? tasks : packed(tasks, least, conf.filesMaxPartitionBytes());
  }

  /** Join neighbouring tasks, up to a size; `least` or more tasks remain. */
  private InputPartition[] packed(InputPartition[] tasks, int least, long maxBytes) {
    long total = 0;
    for (int i = 0; i < tasks.length; i++) {
      total += weight(((FilePartition) tasks[i]).files());
    }
    long most = Math.min(maxBytes, total / least);
    ArrayList packed = new ArrayList();
    ArrayList open = new ArrayList();
    long bytes = 0;
    for (int i = 0; i < tasks.length; i++) {
      PartitionedFile[] files = ((FilePartition) tasks[i]).files();
      long weight = weight(files);
      if (!open.isEmpty() && (bytes + weight > most || open.size() + files.length > mostFiles)) {
        packed.add(task(packed.size(), open));
        open.clear();
        bytes = 0;
      }
      open.addAll(Arrays.asList(files));
      bytes += weight;
    }
    packed.add(task(packed.size(), open));
    return (InputPartition[]) packed.toArray(new InputPartition[0]);
  }

  private static long weight(PartitionedFile[] files) {
    long bytes = OPEN_COST * files.length;
    for (int i = 0; i < files.length; i++) {
      bytes += files[i].length();
    }
    return bytes;
  }

  private static FilePartition task(int number, ArrayList files) {
    return new FilePartition(number, (PartitionedFile[]) files.toArray(new PartitionedFile[0]));
  }
}

/** A builder of Spark's scan of local Parquet files, with `LocalSettings`. */
class LocalScanBuilder extends ParquetScanBuilder {
  private Configuration settings;

  LocalScanBuilder(
      SparkSession session, PartitioningAwareFileIndex index, StructType columns, CaseInsensitiveStringMap options) {
    super(session, index, columns, columns, options);
  }

  public synchronized Configuration hadoopConf() {
    if (settings == null) {
      settings = LocalSettings.of(super.hadoopConf());
    }
    return settings;
  }
}

/** Spark's format of local Parquet files, with `LocalSettings`, for plans that are not scans of `LocalScanBuilder`. */
class LocalParquet extends ParquetFileFormat {
  /** Return Spark's own reader: it contains the format that created it, and executors have only Spark's classes. */
  public Function1 buildReaderWithPartitionValues(
      SparkSession session,
      StructType columns,
      StructType partitions,
      StructType required,
      Seq filters,
      scala.collection.immutable.Map options,
      Configuration conf) {
    return new ParquetFileFormat()
        .buildReaderWithPartitionValues(
            session, columns, partitions, required, filters, options, LocalSettings.of(conf));
  }
}

/**
 * The settings of readers of local files that differ from Hadoop's defaults.
 *
 * A reader copies all its settings for each file, so more than a thousand defaults would take longer than a small file.
 * Readers of local files know the defaults.
 *
 * Hadoop's usual file system looks for a file of checksums beside each file, which writers of tables do not create.
 */
class LocalSettings {
  private static final String DEFAULTS = "-default.xml";
  private static final String FILE_SYSTEM = "fs.file.impl";

  private LocalSettings() {}

  static Configuration of(Configuration all) {
    Configuration settings = withoutDefaults(all);
    if (settings.get(FILE_SYSTEM) == null) {
      settings.set(FILE_SYSTEM, "org.apache.hadoop.fs.RawLocalFileSystem");
      settings.set(FILE_SYSTEM + ".disable.cache", "true");  // other readers keep theirs
    }
    return settings;
  }

  private static Configuration withoutDefaults(Configuration all) {
    Configuration explicit = new Configuration(false);
    for (Iterator entries = all.iterator(); entries.hasNext(); ) {
      Map.Entry entry = (Map.Entry) entries.next();
      String name = (String) entry.getKey();
      String[] sources = all.getPropertySources(name);
      if (sources == null || sources.length == 0 || !sources[sources.length - 1].endsWith(DEFAULTS)) {
        String value = (String) entry.getValue();
        explicit.set(name, value.contains("${") ? all.get(name, value) : value);  // it may name a default
      }
    }
    return explicit;
  }
}
