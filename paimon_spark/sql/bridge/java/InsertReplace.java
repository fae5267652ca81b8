package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * INSERT INTO ... REPLACE USING and REPLACE ON, which Spark's parser knows since version 4.2, as an overwrite with an
 * option. Classes are named as texts, because Spark 4.1 lacks them.
 */
class InsertReplace {
  private static final String WHERE = "org.apache.spark.sql.catalyst.plans.logical.InsertReplaceWhere";

  /** Return the columns or the condition of the rows to replace; null: the statement is another INSERT. */
  static Product criterion(InsertIntoStatement plan) {
    for (int i = 0; i < plan.productArity(); i++) {
      if (plan.productElementName(i).equals("replaceCriteriaOpt")) {
        Option found = (Option) plan.productElement(i);
        Product criterion = found.isEmpty() ? null : (Product) found.get();
        return criterion == null || criterion.getClass().getName().equals(WHERE) ? null : criterion;
      }
    }
    return null;
  }

  /**
   * Return an overwrite of the relation, whose option contains the criterion.
   *
   * @param version the version of Spark; 4.2 refuses every criterion, but overwrites all rows without one
   */
  static TreeNode overwrite(
      InsertIntoStatement plan, Product criterion, DataSourceV2Relation relation, LogicalPlan query, String version) {
    Map options = new HashMap(relation.options().asCaseSensitiveMap());
    LinkedHashMap stated = new LinkedHashMap();
    Object first = criterion.productElement(0);
    if (first instanceof Seq) {
      stated.put("using", new ArrayList(CollectionConverters.asJava((Seq) first)));
    } else {
      Expression condition = (Expression) first;
      if (holdsPlan(condition)) {
        throw new UnsupportedOperationException(
            "REPLACE ON " + condition.sql() + ": the condition cannot contain a query; join it in the source");
      }
      Option alias = (Option) criterion.productElement(1);
      stated.put("on", condition.sql());
      stated.put("target", alias.isEmpty() ? ((Identifier) relation.identifier().get()).name() : alias.get());
      stated.put("source", query instanceof SubqueryAlias ? ((SubqueryAlias) query).identifier().name() : null);
      stated.put("columns", query.schema().json());
      stated.put("by_name", Boolean.valueOf(plan.byName()));
    }
    options.put("replace.statement", Trees.json(stated));
    DataSourceV2Relation target = DataSourceV2Relation$.MODULE$.create(
        relation.table(),
        relation.catalog(),
        relation.identifier(),
        new CaseInsensitiveStringMap(options),
        Option.empty());
    Option rows = version.startsWith("4.2") ? Option.empty() : everyRow();
    Object[] parts = new Object[plan.productArity()];
    for (int i = 0; i < parts.length; i++) {
      String name = plan.productElementName(i);
      parts[i] = name.equals("table")
          ? target
          : name.equals("query") ? query : name.equals("replaceCriteriaOpt") ? rows : plan.productElement(i);
    }
    return plan.makeCopy(parts);
  }

  private static boolean holdsPlan(Expression expression) {
    if (expression instanceof PlanExpression) {
      return true;
    }
    List children = CollectionConverters.asJava(expression.children());
    for (int i = 0; i < children.size(); i++) {
      if (holdsPlan((Expression) children.get(i))) {
        return true;
      }
    }
    return false;
  }

  private static Option everyRow() {
    try {
      Object always = Literal$.MODULE$.TrueLiteral();
      return Option.apply(Class.forName(WHERE).getConstructor(new Class[] {Expression.class}).newInstance(
          new Object[] {always}));
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
