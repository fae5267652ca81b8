package paimon.python;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions;
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/** A job that writes the rows of a DataFrame to Parquet files of a table, without Python in its tasks. */
public class NativeWrite extends AbstractFunction0 {
  /** Settings of the encoder that the files of a table need, whatever the session has. */
  private static final String[][] FIXED = {
    {"spark.sql.parquet.writeLegacyFormat", "false"},
    {"spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"},
    {"spark.sql.parquet.fieldId.write.enabled", "false"},
    {"spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED"},
    {"spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED"},
  };

  private final SparkContext context;
  private final QueryExecution query;
  private final NativeWriteTask task;

  private NativeWrite(SparkContext context, QueryExecution query, NativeWriteTask task) {
    this.context = context;
    this.query = query;
    this.task = task;
  }

  /**
   * Write the rows, and return the result of each task as a JSON array: see {@link NativeWriteTask}.
   *
   * @param rows the rows, with the columns of the table
   * @param plan the plan of the files, as JSON
   * @param footer the footer of a file with the columns of the table
   * @param handler names the directory of each partition
   */
  public static String run(Dataset rows, String plan, byte[] footer, Object handler) throws IOException {
    SparkSession session = rows.sparkSession();
    SQLConf conf = session.sessionState().conf().clone();
    for (int i = 0; i < FIXED.length; i++) {
      conf.setConfString(FIXED[i][0], FIXED[i][1]);
    }
    Job job = Job.getInstance(session.sessionState().newHadoopConf());
    for (int i = 0; i < FIXED.length; i++) {
      job.getConfiguration().set(FIXED[i][0], FIXED[i][1]);
    }
    ParquetOptions options = new ParquetOptions((scala.collection.immutable.Map) Map$.MODULE$.empty(), conf);
    ParquetUtils.prepareWrite(conf, job, rows.schema(), options);
    job.getConfiguration().set("parquet.compression.codec.zstd.level", text(plan, "level"));
    job.getConfiguration().unset("parquet.crypto.factory.class");  // other engines have no keys of this session
    SparkContext context = session.sparkContext();
    int slots = context.isLocal() ? context.defaultParallelism() : context.conf().getInt("spark.executor.cores", 0);
    SerializableConfiguration configuration = new SerializableConfiguration(job.getConfiguration());
    String id = text(plan, "job");
    NativePartitions.begin(id, handler);
    try {
      String driver = context.isLocal() || handler == null ? null : NativePartitions.serve(id);
      NativeWriteTask task = new NativeWriteTask(configuration, plan, footer, rows.schema(), slots, driver);
      NativeWrite write = new NativeWrite(context, rows.queryExecution(), task);
      return (String) SQLExecution.withNewExecutionId(rows.queryExecution(), Option.apply("paimon write"), write);
    } catch (Throwable error) {
      String lacking = context.isLocal() ? null : TaskClasses.lacking(error);
      if (lacking == null) {
        Bridge.throwUnchecked(error);
      }
      return refused(lacking);
    } finally {
      NativePartitions.end(id);
    }
  }

  /** The result of a job that wrote nothing. */
  private static String refused(String reason) {
    HashMap result = new HashMap();
    result.put("refused", reason);
    return "[" + Trees.json(result) + "]";
  }

  private static String text(String plan, String name) {
    return String.valueOf(((Map) Trees.parsed(plan)).get(name));
  }

  /** Run the job. Executors read the settings of the encoder from the properties of this thread. */
  public Object apply() {
    String lacking = null;
    try {
      lacking = TaskClasses.send(context);
    } catch (IOException error) {
      lacking = String.valueOf(error);
    }
    if (lacking != null) {
      return refused(lacking);
    }
    String[] before = new String[FIXED.length];
    for (int i = 0; i < FIXED.length; i++) {
      before[i] = context.getLocalProperty(FIXED[i][0]);
      context.setLocalProperty(FIXED[i][0], FIXED[i][1]);
    }
    try {
      Object[] results =
          (Object[]) context.runJob(query.toRdd(), task, ClassTag$.MODULE$.apply(String.class));
      return "[" + String.join(",", (String[]) results) + "]";
    } finally {
      for (int i = 0; i < FIXED.length; i++) {
        context.setLocalProperty(FIXED[i][0], before[i]);
      }
    }
  }
}
