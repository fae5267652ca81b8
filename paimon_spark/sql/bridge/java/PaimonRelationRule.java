package paimon.python;

import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.collection.mutable.Map;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Resolves the tables that are read with options, each on its own.
 *
 * Spark keeps the tables of a query by name and version until the query is analysed. Before version 4.3 it does not compare
 * options, so that a second read of a table, with other options or none, would return the rows of the first.
 */
class PaimonRelationRule extends Rule {
  private final SparkSession session;

  PaimonRelationRule(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).resolveOperatorsDown(new RelationsWithOptions(session));
  }

  /** Return a relation as Spark resolves it while it keeps no tables. */
  static LogicalPlan resolved(SparkSession session, LogicalPlan relation) {
    Map kept = AnalysisContext.get().relationCache();
    Map others = (Map) kept.clone();
    kept.clear();
    try {
      return (LogicalPlan) session.sessionState().analyzer().ResolveRelations().apply(relation);
    } finally {
      kept.clear();
      kept.addAll(others);
    }
  }

  /** Return True if a name without a catalog, or its first part, belongs to a catalog of this connector. */
  static boolean isOurs(SparkSession session, UnresolvedRelation relation) {
    Object first = relation.multipartIdentifier().head();
    Seq ofView = AnalysisContext.get().catalogAndNamespace();
    Object current =
        ofView.isEmpty() ? session.sessionState().catalogManager().currentCatalog().name() : ofView.head();
    return Bridge.HANDLERS.containsKey(first) || Bridge.HANDLERS.containsKey(current);
  }
}

class RelationsWithOptions extends AbstractPartialFunction {
  private final SparkSession session;

  RelationsWithOptions(SparkSession session) {
    this.session = session;
  }

  public boolean isDefinedAt(Object node) {
    Object found = node instanceof RelationTimeTravel ? ((RelationTimeTravel) node).relation() : node;
    return found instanceof UnresolvedRelation
        && !((UnresolvedRelation) found).options().isEmpty()
        && PaimonRelationRule.isOurs(session, (UnresolvedRelation) found);
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    return isDefinedAt(node) ? PaimonRelationRule.resolved(session, (LogicalPlan) node) : otherwise.apply(node);
  }
}

class RelationRuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new PaimonRelationRule((SparkSession) session);
  }
}
