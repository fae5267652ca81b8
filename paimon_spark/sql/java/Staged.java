package paimon.python;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.types.StructType;

/** A table that appears, or replaces one, when its rows are written. */
public class Staged extends PaimonTable implements StagedTable {
  private final Object python;

  public Staged(
      String name,
      Column[] columns,
      StructType metadata,
      Transform[] partitioning,
      Map properties,
      Set capabilities,
      Object python) {
    super(name, columns, metadata, partitioning, properties, capabilities, python);
    this.python = python;
  }

  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  public void commitStagedChanges() {
    Bridge.ask(python, "publish", new Object[0]);
  }

  public void abortStagedChanges() {
    Bridge.ask(python, "discard", new Object[0]);
  }
}
