package paimon.python;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.TaggingExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.UnaryNode;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.V2ExpressionBuilder;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.BooleanType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Tags the conditions at which Spark's translation of aggregates and orders for a scan would fail.
 *
 * Spark translates both before it calls the scan. AND, OR and NOT fail an assertion if an operand translates but is not
 * a predicate: a NULL, into which Spark rewrites a comparison with a number that the column cannot contain, or a cast
 * to BOOLEAN. Spark cannot translate a tagged expression, so it evaluates the aggregate or the order itself. A tag
 * changes no value.
 */
class PaimonTranslationRule extends Rule {
  private static final Set KNOWN = Collections.newSetFromMap(new WeakHashMap());

  /** Add the rule to a session and those that share its extensions. A second call changes nothing, nor does null. */
  static synchronized void install(SparkSession session) {
    SparkSessionExtensions extensions = session == null ? null : session.extensions();
    if (extensions != null && KNOWN.add(extensions)) {
      extensions.injectOptimizerRule(new TranslationRuleBuilder());
    }
  }

  public TreeNode apply(TreeNode plan) {
    return tagged((LogicalPlan) plan, false);
  }

  /** @param pushed true if an aggregate or an order above the plan may be pushed into a scan in it */
  private static LogicalPlan tagged(LogicalPlan plan, boolean pushed) {
    boolean asks = plan instanceof UnaryNode && (pushed || plan instanceof Aggregate || plan instanceof Sort);
    List children = CollectionConverters.asJava((Seq) plan.children());
    ArrayList found = new ArrayList();
    for (int i = 0; i < children.size(); i++) {
      found.add(tagged((LogicalPlan) children.get(i), asks));
    }
    LogicalPlan own = (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(found).toSeq());
    boolean translates = asks && !(plan instanceof Filter) && readsTable(plan);
    return translates ? (LogicalPlan) own.mapExpressions(new Tagging()) : own;
  }

  /** True if the only leaf below nodes with one child is a table of ours. */
  private static boolean readsTable(LogicalPlan plan) {
    LogicalPlan leaf = plan;
    while (leaf instanceof UnaryNode) {
      leaf = (LogicalPlan) leaf.children().head();
    }
    Table table = leaf instanceof DataSourceV2Relation ? ((DataSourceV2Relation) leaf).table() : null;
    return table instanceof PaimonTable || table instanceof PathTable || table instanceof FormatTable;
  }

  static Expression tagged(Expression expression) {
    if (expression instanceof TaggingExpression) {
      return expression;
    }
    List children = CollectionConverters.asJava((Seq) expression.children());
    boolean needsPredicates = expression instanceof And || expression instanceof Or || expression instanceof Not;
    needsPredicates |= expression instanceof Alias; // which Spark may put in the place of a name
    ArrayList found = new ArrayList();
    for (int i = 0; i < children.size(); i++) {
      Expression child = tagged((Expression) children.get(i));
      found.add(needsPredicates && fails(child) ? new KnownNullable(child) : child);
    }
    return (Expression) expression.withNewChildren(CollectionConverters.asScala(found).toSeq());
  }

  /** True if Spark has a form for a condition which is no predicate. */
  private static boolean fails(Expression condition) {
    if (condition instanceof AggregateExpression || !(condition.dataType() instanceof BooleanType)) {
      return false;
    }
    try {
      Option found = new V2ExpressionBuilder(condition, true).build();
      return found.isDefined() && !(found.get() instanceof Predicate);
    } catch (AssertionError failed) {
      return true;
    }
  }
}

class Tagging extends AbstractFunction1 {
  public Object apply(Object expression) {
    return PaimonTranslationRule.tagged((Expression) expression);
  }
}

class TranslationRuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new PaimonTranslationRule();
  }
}
