package paimon.python;

import java.util.Collections;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/** A read-only table opened by its path, outside of any catalog. */
public class PathTable implements SupportsRead {
  private final String name;
  private final StructType schema;
  private final Object handler;

  public PathTable(String name, StructType schema, Object handler) {
    this.name = name;
    this.schema = schema;
    this.handler = handler;
  }

  /** The rows of the table as a DataFrame: Spark asks for the scan when it plans a query. */
  public Object rows(Object session) {
    PaimonDivideRule.install((SparkSession) session);
    PaimonTranslationRule.install((SparkSession) session);
    return Dataset$.MODULE$.ofRows(
        (SparkSession) session, DataSourceV2Relation$.MODULE$.create(this, Option.empty(), Option.empty()));
  }

  public String name() {
    return name;
  }

  /** Spark creates the columns from this schema. */
  public StructType schema() {
    return schema;
  }

  public Map properties() {
    return Collections.emptyMap();
  }

  public Set capabilities() {
    return Collections.singleton(TableCapability.BATCH_READ);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new PaimonScanBuilder(handler, options);
  }
}
