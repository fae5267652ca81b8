package paimon.python;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriteBuilder;
import org.apache.spark.sql.sources.InsertableRelation;

/** A builder of a write by path. */
class FormatWriteBuilder implements SupportsTruncate {
  private final Object handler;
  private final LogicalWriteInfo info;
  private final PythonWriteBuilder python;
  private boolean overwrite = false;

  /** @param python the builder of the Python data source, for streams */
  FormatWriteBuilder(Object handler, LogicalWriteInfo info, PythonWriteBuilder python) {
    this.handler = handler;
    this.info = info;
    this.python = python;
  }

  public WriteBuilder truncate() {
    overwrite = true;
    python.truncate();
    return this;
  }

  public Write build() {
    return new FormatWrite(handler, info, overwrite, python.build());
  }
}

/** A write by path: Python gets the rows of a batch; a stream is a write of the Python data source. */
class FormatWrite implements V1Write, InsertableRelation {
  private final Object handler;
  private final LogicalWriteInfo info;
  private final boolean overwrite;
  private final Write python;

  FormatWrite(Object handler, LogicalWriteInfo info, boolean overwrite, Write python) {
    this.handler = handler;
    this.info = info;
    this.overwrite = overwrite;
    this.python = python;
  }

  public InsertableRelation toInsertableRelation() {
    return this;
  }

  public BatchWrite toBatch() {
    return python.toBatch();
  }

  public StreamingWrite toStreaming() {
    return python.toStreaming();
  }

  public String description() {
    return "paimon";
  }

  /** Spark passes false for each overwrite, because a write builder knows its mode. */
  public void insert(Dataset rows, boolean ignored) {
    Bridge.call(handler, "write", new Object[] {rows, Boolean.valueOf(overwrite), Trees.of(info.options())});
  }
}
