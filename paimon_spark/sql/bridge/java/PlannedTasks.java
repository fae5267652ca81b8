package paimon.python;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.JobArtifactState;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Some;

/** A read of the Python data source whose tasks the driver has planned. Executors receive only Spark's own classes. */
class PlannedTasks implements Scan, Batch {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final UserDefinedPythonDataSource source;
  private final StructType schema;
  private final byte[] function;
  private final InputPartition[] partitions;

  /** @param planned the function of a task and the tasks, as Spark's own planning process writes them */
  PlannedTasks(SparkSession session, byte[] planned, StructType schema) {
    this.session = (org.apache.spark.sql.classic.SparkSession) session;
    this.schema = schema;
    source = this.session.sessionState().dataSourceManager().lookupDataSource("paimon");
    DataInputStream input = new DataInputStream(new ByteArrayInputStream(planned));
    try {
      function = next(input);
      partitions = new InputPartition[input.readInt()];
      for (int i = 0; i < partitions.length; i++) {
        partitions[i] = new PythonInputPartition(i, next(input));
      }
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  private static byte[] next(DataInputStream input) throws IOException {
    byte[] found = new byte[input.readInt()];
    input.readFully(found);
    return found;
  }

  public StructType readSchema() {
    return schema;
  }

  public Batch toBatch() {
    return this;
  }

  public Scan.ColumnarSupportMode columnarSupportMode() {
    return Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  public CustomMetric[] supportedCustomMetrics() {
    return source.createPythonMetrics();
  }

  public InputPartition[] planInputPartitions() {
    return partitions;
  }

  public PartitionReaderFactory createReaderFactory() {
    Option artifacts = JobArtifactSet$.MODULE$.getCurrentJobArtifactState();
    Option job =
        artifacts.isDefined() ? new Some(((JobArtifactState) artifacts.get()).uuid()) : Option.empty();
    Option logs =
        session.sessionState().conf().pythonWorkerLoggingEnabled() ? new Some(session.sessionUUID()) : Option.empty();
    return new PythonPartitionReaderFactory(source, function, schema, job, logs);
  }
}
