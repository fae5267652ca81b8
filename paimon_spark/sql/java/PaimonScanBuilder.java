package paimon.python;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What Spark pushes into a scan, until Python builds the scan of it. Spark evaluates every filter again. */
class PaimonScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownFilters, SupportsPushDownLimit {
  private final Object python;
  private final CaseInsensitiveStringMap options;
  private StructType columns;
  private Filter[] filters = new Filter[0];
  private int limit = -1;

  PaimonScanBuilder(Object python, CaseInsensitiveStringMap options) {
    this.python = python;
    this.options = options;
  }

  public void pruneColumns(StructType required) {
    columns = required;
  }

  public Filter[] pushFilters(Filter[] offered) {
    filters = offered;
    return offered;
  }

  public Filter[] pushedFilters() {
    return filters;
  }

  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  public boolean isPartiallyPushed() {
    return true;
  }

  public Scan build() {
    return (Scan) Bridge.ask(python, "scan", new Object[] {columns, filters, Integer.valueOf(limit), options});
  }
}
