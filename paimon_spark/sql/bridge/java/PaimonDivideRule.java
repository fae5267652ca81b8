package paimon.python;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Divides a scan if only some files need a merge: Spark's own scan reads the other files.
 *
 * The rule runs last in the optimizer, when the columns and filters of a scan are known. A scan with a runtime filter
 * of a join is not divided, because the filter prunes partitions. The rule does not affect the result of a scan.
 * PaimonLocalRule runs with it.
 */
class PaimonDivideRule extends Rule {
  /** Add both rules to a session and the sessions cloned from it. null or a second call changes nothing. */
  static synchronized void install(SparkSession session) {
    if (session == null) {
      return;
    }
    ExperimentalMethods methods = session.sessionState().experimentalMethods();
    ArrayList rules = new ArrayList(CollectionConverters.asJava((Seq) methods.extraOptimizations()));
    for (int i = 0; i < rules.size(); i++) {
      if (rules.get(i) instanceof PaimonDivideRule) {
        return;
      }
    }
    rules.add(new PaimonDivideRule());
    rules.add(new PaimonLocalRule());
    methods.extraOptimizations_$eq(CollectionConverters.asScala(rules).toSeq());
  }

  public TreeNode apply(TreeNode plan) {
    return divided((LogicalPlan) plan);
  }

  private static LogicalPlan divided(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation) {
      Scan scan = ((DataSourceV2ScanRelation) plan).scan();
      PaimonScan[] parts = scan instanceof PaimonScan ? ((PaimonScan) scan).parts() : null;
      return parts == null ? plan : union((DataSourceV2ScanRelation) plan, parts);
    }
    if (plan instanceof Filter && isOfJoin(((Filter) plan).condition())) {
      return plan;
    }
    List children = CollectionConverters.asJava((Seq) plan.children());
    ArrayList found = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < children.size(); i++) {
      LogicalPlan child = (LogicalPlan) children.get(i);
      found.add(divided(child));
      changed |= found.get(i) != child;
    }
    return changed ? (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(found).toSeq()) : plan;
  }

  private static boolean isOfJoin(Expression condition) {
    List children = CollectionConverters.asJava((Seq) condition.children());
    for (int i = 0; i < children.size(); i++) {
      if (isOfJoin((Expression) children.get(i))) {
        return true;
      }
    }
    return condition instanceof DynamicPruning;
  }

  private static LogicalPlan union(DataSourceV2ScanRelation relation, PaimonScan[] parts) {
    List columns = CollectionConverters.asJava((Seq) relation.output());
    ArrayList others = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      others.add(((Attribute) columns.get(i)).newInstance());
    }
    LogicalPlan first = copy(relation, parts[0], columns);
    return Union$.MODULE$.apply(first, copy(relation, parts[1], others));
  }

  /** Return a relation of another scan, without the properties that Spark knows only about the whole scan. */
  private static LogicalPlan copy(DataSourceV2ScanRelation relation, PaimonScan scan, List columns) {
    Object[] fields = new Object[relation.productArity()];
    for (int i = 0; i < fields.length; i++) {
      Object field = relation.productElement(i);
      if (field == relation.scan()) {
        fields[i] = scan;
      } else if (field == relation.output()) {
        fields[i] = CollectionConverters.asScala(columns).toSeq();
      } else if (field instanceof Seq) {
        fields[i] = CollectionConverters.asScala(new ArrayList()).toSeq();
      } else {
        fields[i] = field instanceof scala.Option ? scala.Option.empty() : field;
      }
    }
    return (LogicalPlan) relation.makeCopy(fields);
  }
}
