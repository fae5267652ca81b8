package paimon.python;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Replaces a scan of rows from metadata with the rows, and computes the columns of the query from them.
 *
 * Spark runs a job for a projection of such a scan, which takes longer than the rest of the query. It runs no job for
 * local rows alone.
 */
class PaimonLocalRule extends Rule {
  public TreeNode apply(TreeNode plan) {
    LogicalPlan local = withRows((LogicalPlan) plan);
    return local == plan ? plan : (TreeNode) ConvertToLocalRelation$.MODULE$.apply(local);
  }

  private static LogicalPlan withRows(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation) {
      DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) plan;
      return relation.scan() instanceof PaimonLocalScan ? local(relation) : plan;
    }
    List children = CollectionConverters.asJava((Seq) plan.children());
    ArrayList replaced = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < children.size(); i++) {
      LogicalPlan child = (LogicalPlan) children.get(i);
      replaced.add(withRows(child));
      changed |= replaced.get(i) != child;
    }
    return changed ? (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(replaced).toSeq()) : plan;
  }

  /** Versions of Spark differ in the last fields of a local relation, which keep their defaults. */
  private static LogicalPlan local(DataSourceV2ScanRelation relation) {
    LocalRelation empty = LocalRelation$.MODULE$.apply(relation.output());
    Object[] fields = new Object[empty.productArity()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = empty.productElement(i);
    }
    fields[1] = CollectionConverters.asScala(Arrays.asList(((PaimonLocalScan) relation.scan()).rows())).toSeq();
    return (LogicalPlan) empty.makeCopy(fields);
  }
}
