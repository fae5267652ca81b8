package paimon.python;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of the catalog: its description is made once in Python, its scans and writes are asked for. */
public class PaimonTable implements SupportsRead, SupportsWrite {
  private final String name;
  private final Column[] columns;
  private final Transform[] partitioning;
  private final Map properties;
  private final Set capabilities;
  private final Object python;

  public PaimonTable(
      String name, Column[] columns, Transform[] partitioning, Map properties, Set capabilities, Object python) {
    this.name = name;
    this.columns = columns;
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
}
