package paimon.python;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A write in the making: Python gets the DataFrame to insert and what it replaces. */
class PaimonWriteBuilder implements SupportsOverwrite, SupportsDynamicOverwrite {
  private final Object python;
  private final LogicalWriteInfo info;
  private String mode = "append";
  private Filter[] filters = new Filter[0];

  PaimonWriteBuilder(Object python, LogicalWriteInfo info) {
    this.python = python;
    this.info = info;
  }

  public WriteBuilder overwrite(Filter[] filters) {
    mode = "overwrite";
    this.filters = filters;
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
    Bridge.ask(python, "check_write", new Object[] {mode, filters, info.options()});
    return new PaimonWrite(python, mode, filters, info.options());
  }
}

class PaimonWrite implements V1Write, InsertableRelation {
  private final Object python;
  private final String mode;
  private final Filter[] filters;
  private final CaseInsensitiveStringMap options;

  PaimonWrite(Object python, String mode, Filter[] filters, CaseInsensitiveStringMap options) {
    this.python = python;
    this.mode = mode;
    this.filters = filters;
    this.options = options;
  }

  public InsertableRelation toInsertableRelation() {
    return this;
  }

  public String description() {
    return "paimon " + mode;
  }

  public void insert(Dataset rows, boolean overwrite) {
    Bridge.ask(python, "insert", new Object[] {rows, mode, filters, options});
  }
}
