package paimon;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import paimon.python.FormatTable;

/**
 * The format "paimon" in a driver that has these classes.
 *
 * Spark loads the class NAME.DefaultSource of a format before it looks among Python data sources. Whatever this class
 * and FormatTable do not override is done by the Python data source of the same name.
 */
public class DefaultSource extends PythonDataSourceV2 {
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    CaseInsensitiveStringMap kept = FormatTable.ofReader(options);
    StructType found = FormatTable.schemaOf(kept);
    return found == null ? super.inferSchema(kept) : found;
  }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    return new FormatTable(this, schema);
  }
}
