package paimon.python;

import java.util.HashMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/** An analysed overwrite of the partitions of its rows, for Python. */
public class OverwritePlan {
  private final OverwritePartitionsDynamic plan;
  private final DataSourceV2Relation target;

  OverwritePlan(OverwritePartitionsDynamic plan, DataSourceV2Relation target) {
    this.plan = plan;
    this.target = target;
  }

  /** Return the rows, cast to the columns of the table. */
  public Dataset rows(SparkSession session) {
    return Dataset$.MODULE$.ofRows((org.apache.spark.sql.classic.SparkSession) session, plan.query());
  }

  /** Return the columns of the rows as JSON. */
  public String columns() {
    return plan.query().schema().json();
  }

  /** Return the options of the statement, of `t WITH (...)` or of the writer, as JSON. */
  public String options() {
    HashMap given = new HashMap(target.options().asCaseSensitiveMap());
    given.putAll(CollectionConverters.asJava(plan.writeOptions()));
    return Trees.of(new CaseInsensitiveStringMap(given));
  }
}
