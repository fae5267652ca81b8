package paimon.python;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts the option `filter` of a batch read into the plan, above the read, if only Spark can evaluate it.
 *
 * Spark pushes the parts that the engine can evaluate into the scan, like those of any filter. The option `limit` follows
 * the filter, as in a read by the engine.
 */
public class PaimonFilterRule extends Rule {
  private final SparkSession session;

  PaimonFilterRule(SparkSession session) {
    this.session = session;
  }

  /** True if the parser of the session accepts a condition. */
  public static boolean parses(SparkSession session, String condition) {
    try {
      parsed(session, condition);
      return true;
    } catch (Exception refused) {
      if (refused instanceof ParseException) {  // which Java does not see declared
        return false;
      }
      throw new IllegalStateException(refused);
    }
  }

  static Expression parsed(SparkSession session, String condition) throws Exception {
    return session.sessionState().sqlParser().parseExpression(condition);
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).resolveOperatorsDown(new FilteredReads(session));
  }
}

class FilteredReads extends AbstractPartialFunction {
  private final SparkSession session;

  FilteredReads(SparkSession session) {
    this.session = session;
  }

  public boolean isDefinedAt(Object node) {
    if (!(node instanceof DataSourceV2Relation) || !((DataSourceV2Relation) node).options().containsKey(FormatTable.FILTER)) {
      return false;
    }
    Object table = ((DataSourceV2Relation) node).table();
    return table instanceof FormatTable || table instanceof PaimonTable;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    DataSourceV2Relation relation = (DataSourceV2Relation) node;
    String condition = FormatTable.filterOfPlan(relation.options());
    if (condition == null) {
      return node;
    }
    Expression parsed;
    try {
      parsed = PaimonFilterRule.parsed(session, condition);
    } catch (Exception refused) {
      throw new IllegalStateException(refused);
    }
    return filtered(relation, parsed);
  }

  private static LogicalPlan filtered(DataSourceV2Relation relation, Expression condition) {
    Object[] fields = new Object[relation.productArity()];
    for (int i = 0; i < fields.length; i++) {
      Object field = relation.productElement(i);
      fields[i] = field == relation.options() ? FormatTable.withoutFilter(relation.options()) : field;
    }
    LogicalPlan plan = new Filter(condition, (LogicalPlan) relation.makeCopy(fields));  // with the same attributes
    String limit = relation.options().get(FormatTable.LIMIT);
    if (limit == null) {
      return plan;
    }
    Literal rows = new Literal(number(limit), DataTypes.IntegerType);
    return new GlobalLimit(rows, new LocalLimit(rows, plan));
  }

  private static Integer number(String limit) {
    try {
      return Integer.valueOf(limit.trim());
    } catch (NumberFormatException refused) {
      throw new IllegalArgumentException("option 'limit' is '" + limit + "': must be a whole number");
    }
  }
}
