package paimon.python;

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
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of the catalog: its description is made once in Python, its scans and writes are asked for. */
public class PaimonTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns, TruncatableTable {
  private final String name;
  private final Column[] columns;
  private final StructType metadata;
  private final Transform[] partitioning;
  private final Map properties;
  private final Set capabilities;
  private final Object python;

  public PaimonTable(
      String name,
      Column[] columns,
      StructType metadata,
      Transform[] partitioning,
      Map properties,
      Set capabilities,
      Object python) {
    this.name = name;
    this.columns = columns;
    this.metadata = metadata;
    this.partitioning = partitioning;
    this.properties = properties;
    this.capabilities = capabilities;
    this.python = python;
  }

  public String name() {
    return name;
  }

  public Column[] columns() {
    return columns;
  }

  public MetadataColumn[] metadataColumns() {
    MetadataColumn[] found = new MetadataColumn[metadata.length()];
    for (int i = 0; i < found.length; i++) {
      found[i] = new PaimonMetadataColumn(metadata.fields()[i].name(), metadata.fields()[i].dataType());
    }
    return found;
  }

  public Transform[] partitioning() {
    return partitioning;
  }

  public Map properties() {
    return properties;
  }

  public Set capabilities() {
    return capabilities;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new PaimonScanBuilder(python, options);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new PaimonWriteBuilder(python, info);
  }

  public boolean truncateTable() {
    return ((Boolean) Bridge.ask(python, "truncate", new Object[0])).booleanValue();
  }

  /** Return the function that answers the questions about the table. */
  public Object python() {
    return python;
  }

  /** Return this table with the interface for which Spark completes the assignments of UPDATE and MERGE INTO. */
  PaimonTable forRowLevel() {
    return new PaimonRowLevelTable(name, columns, metadata, partitioning, properties, capabilities, python);
  }
}

/** A column that a query has to name: a star does not show it. */
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

/** A table while PaimonRowLevelRule asks Spark to complete assignments: its operation is never asked for. */
class PaimonRowLevelTable extends PaimonTable implements SupportsRowLevelOperations {
  PaimonRowLevelTable(
      String name,
      Column[] columns,
      StructType metadata,
      Transform[] partitioning,
      Map properties,
      Set capabilities,
      Object python) {
    super(name, columns, metadata, partitioning, properties, capabilities, python);
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    throw new UnsupportedOperationException(info.command() + " on " + name());
  }
}
