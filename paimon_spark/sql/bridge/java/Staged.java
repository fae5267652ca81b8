package paimon.python;

import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A table that appears, or replaces one, when its rows are written. */
public class Staged extends PaimonTable implements StagedTable {
  private final Object handler;

  public Staged(String description, Object handler) {
    super(description, handler);
    this.handler = handler;
  }

  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  public void commitStagedChanges() {
    Bridge.call(handler, "publish", new Object[0]);
  }

  public void abortStagedChanges() {
    Bridge.call(handler, "discard", new Object[0]);
  }
}
