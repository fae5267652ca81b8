package paimon.python;

import java.util.ArrayList;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A builder of a write, which passes the DataFrame and the rows to replace to Python. */
class PaimonWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final Object handler;
  private final LogicalWriteInfo info;
  private String mode = "append";
  private String trees = "[]";

  PaimonWriteBuilder(Object handler, LogicalWriteInfo info) {
    this.handler = handler;
    this.info = info;
  }

  public WriteBuilder overwrite(Predicate[] predicates) {
    ArrayList described = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      described.add(Trees.of(predicates[i]));
    }
    mode = "overwrite";
    trees = Trees.json(described);
    return this;
  }

  public WriteBuilder truncate() {
    mode = "overwrite";
    return this;
  }

  public WriteBuilder overwriteDynamicPartitions() {
    mode = "dynamic";
    return this;
  }

  public Write build() {
    Bridge.call(handler, "check_write", new Object[] {mode, trees, Trees.of(info.options())});
    return new PaimonWrite(handler, mode, trees, info);
  }
}

/** Spark's information about a write, with other options. */
public class PaimonWriteInfo implements LogicalWriteInfo {
  private final LogicalWriteInfo given;
  private final CaseInsensitiveStringMap options;

  public PaimonWriteInfo(LogicalWriteInfo given, Map options) {
    this.given = given;
    this.options = new CaseInsensitiveStringMap(options);
  }

  public CaseInsensitiveStringMap options() {
    return options;
  }

  public String queryId() {
    return given.queryId();
  }

  public StructType schema() {
    return given.schema();
  }
}

/** A write: Python gets the rows of a batch; dynamic overwrites and streams are writes of the Python data source. */
class PaimonWrite implements V1Write, InsertableRelation {
  private final Object handler;
  private final String mode;
  private final String trees;
  private final LogicalWriteInfo info;

  PaimonWrite(Object handler, String mode, String trees, LogicalWriteInfo info) {
    this.handler = handler;
    this.mode = mode;
    this.trees = trees;
    this.info = info;
  }

  public InsertableRelation toInsertableRelation() {
    return this;
  }

  public BatchWrite toBatch() {
    return ((Write) Bridge.call(handler, "source_write", new Object[] {mode, info, Trees.of(info.options())})).toBatch();
  }

  public StreamingWrite toStreaming() {
    return ((Write) Bridge.call(handler, "source_write", new Object[] {mode, info, Trees.of(info.options())})).toStreaming();
  }

  public String description() {
    return "paimon " + mode;
  }

  /** Return the writer of the rows, for EXPLAIN. */
  String explained() {
    return (String)
        Bridge.call(handler, "explain_write", new Object[] {info.schema().json(), Trees.of(info.options())});
  }

  public void insert(Dataset rows, boolean overwrite) {
    Bridge.call(handler, "insert", new Object[] {rows, mode, trees, Trees.of(info.options())});
  }
}
