package paimon.python;

import java.math.BigInteger;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.Iterator;

/** The first rows of each task of a DataFrame, if they are cheap to compute. */
public class FewRows {
  private FewRows() {}

  /**
   * Return the DataFrame with at most this many rows of each task; null: its sources exceed the byte limit, or Spark
   * does not know their size in advance.
   */
  public static Dataset of(SparkSession session, Dataset rows, int most, long bytes) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    if (plan.containsPattern(TreePattern$.MODULE$.PLAN_EXPRESSION())) {
      return null;
    }
    BigInteger known = BigInteger.ZERO;
    Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      LogicalPlan leaf = (LogicalPlan) leaves.next();
      if (!isKnown(leaf)) {
        return null;
      }
      known = known.add(leaf.stats().sizeInBytes().bigInteger());
    }
    if (known.compareTo(BigInteger.valueOf(bytes)) > 0) {
      return null;
    }
    LogicalPlan limited = new LocalLimit(new Literal(Integer.valueOf(most), DataTypes.IntegerType), plan);
    return Dataset$.MODULE$.ofRows((org.apache.spark.sql.classic.SparkSession) session, limited);
  }

  private static boolean isKnown(LogicalPlan leaf) {
    return leaf instanceof LogicalRelation
        || leaf instanceof LogicalRDD
        || leaf instanceof LocalRelation
        || leaf instanceof Range
        || leaf instanceof OneRowRelation;
  }
}
