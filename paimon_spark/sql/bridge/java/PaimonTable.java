package paimon.python;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of the catalog. Python describes it once, and builds its scans and writes on request. */
public class PaimonTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns, TruncatableTable {
  private final Description description;
  private final Set capabilities;
  private final Object handler;

  /** @param description a text: see Description */
  public PaimonTable(String description, Object handler) {
    this(Description.of(description), handler);
  }

  PaimonTable(Description description, Object handler) {
    this.description = description;
    this.capabilities = new HashSet(description.capabilities);
    this.handler = handler;
  }

  public String name() {
    return description.name;
  }

  /** Spark creates the relation of a stream from these columns unchanged, and then refuses CHAR and VARCHAR. */
  public Column[] columns() {
    return description.hasLengths && calledForStream() ? description.streamed : description.columns;
  }

  private static boolean calledForStream() {
    StackTraceElement[] frames = Thread.currentThread().getStackTrace();
    return frames.length > 3 && frames[3].getClassName().contains(".RelationResolution");
  }

  public MetadataColumn[] metadataColumns() {
    StructField[] fields = description.metadata.fields();
    MetadataColumn[] found = new MetadataColumn[fields.length];
    for (int i = 0; i < found.length; i++) {
      found[i] = new PaimonMetadataColumn(fields[i].name(), fields[i].dataType());
    }
    return found;
  }

  public Transform[] partitioning() {
    return description.partitioning();
  }

  public Map properties() {
    return description.properties;
  }

  public Set capabilities() {
    return capabilities;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new PaimonScanBuilder(handler, options, description.partitions.length() > 0);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new PaimonWriteBuilder(handler, info);
  }

  public boolean truncateTable() {
    return ((Boolean) Bridge.call(handler, "truncate", new Object[0])).booleanValue();
  }

  /** Return the schema as the engine stores it. */
  public String storedSchema() {
    return (String) Bridge.call(handler, "stored_schema", new Object[0]);
  }

  /** Return the Python handler of the table. */
  public Object handler() {
    return handler;
  }

  /** Add the capabilities of another table to this table, and return it. */
  PaimonTable as(PaimonTable other) {
    capabilities.addAll(other.capabilities);
    return this;
  }

  /** Return this table with the interface for which Spark completes the assignments of UPDATE and MERGE INTO. */
  PaimonTable forRowLevel() {
    return new PaimonRowLevelTable(description, handler).as(this);
  }
}

/** A column that a query must name, because a star does not include it. */
class PaimonMetadataColumn implements MetadataColumn {
  private final String name;
  private final DataType type;

  PaimonMetadataColumn(String name, DataType type) {
    this.name = name;
    this.type = type;
  }

  public String name() {
    return name;
  }

  public DataType dataType() {
    return type;
  }
}

/** A table while PaimonRowLevelRule asks Spark to complete assignments. Spark never requests its operation. */
class PaimonRowLevelTable extends PaimonTable implements SupportsRowLevelOperations {
  PaimonRowLevelTable(Description description, Object handler) {
    super(description, handler);
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    throw new UnsupportedOperationException(info.command() + " on " + name());
  }
}
