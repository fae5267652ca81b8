package paimon.python;

import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A table that appears, or replaces one, when its rows are written. */
public class Staged extends PaimonTable implements StagedTable {
  private final Object python;

  public Staged(String description, Object python) {
    super(description, python);
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
