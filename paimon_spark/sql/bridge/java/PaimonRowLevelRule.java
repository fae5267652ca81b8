package paimon.python;

import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ResolveRowLevelCommandAssignments$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.plans.logical.AddCheckConstraint;
import org.apache.spark.sql.catalyst.plans.logical.AlterColumns;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Replaces an analyzed DELETE, UPDATE or MERGE INTO on a Paimon table with a command that Python runs.
 *
 * By then Spark has resolved columns, sub-queries and defaults, and cast and completed (aligned) the assignments. The
 * statement is checked here, because Spark's check sees only the command.
 */
class PaimonRowLevelRule extends Rule {
  private static final StructType AFFECTED = StructType.fromDDL("num_affected_rows BIGINT");
  private static final StructType MERGED = StructType.fromDDL(
      "num_affected_rows BIGINT, num_updated_rows BIGINT, num_deleted_rows BIGINT, num_inserted_rows BIGINT");
  private final SparkSession session;

  PaimonRowLevelRule(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    if (plan instanceof DeleteFromTable) {
      return command("DELETE FROM", (LogicalPlan) plan, ((DeleteFromTable) plan).table(), "delete_rows", AFFECTED);
    }
    if (plan instanceof UpdateTable) {
      return command("UPDATE", (LogicalPlan) plan, ((UpdateTable) plan).table(), "update_rows", AFFECTED);
    }
    if (plan instanceof MergeIntoTable) {
      return command("MERGE INTO", (LogicalPlan) plan, ((MergeIntoTable) plan).targetTable(), "merge_rows", MERGED);
    }
    if (plan instanceof AlterColumns) {
      return PaimonAlter.of((AlterColumns) plan);
    }
    if (plan instanceof AddCheckConstraint) {
      checkNoConstraint((AddCheckConstraint) plan);
    }
    return plan instanceof OverwritePartitionsDynamic ? overwrite((OverwritePartitionsDynamic) plan) : plan;
  }

  /** Throw an exception for a constraint on a Paimon table, before Spark reads rows to check it. */
  private static void checkNoConstraint(AddCheckConstraint plan) {
    List leaves = CollectionConverters.asJava(plan.collectLeaves());  // Spark reads the rows that violate it
    if (leaves.size() == 1 && isOurs(leaves.get(0))) {
      throw new UnsupportedOperationException(
          "CHECK (" + plan.checkConstraint().condition()
              + ") is not possible: a Paimon table checks only NOT NULL constraints");
    }
  }

  private static boolean isOurs(Object plan) {
    return plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof PaimonTable;
  }

  /**
   * Throw EXPECT_TABLE_NOT_VIEW for a view, unless another source may support it.
   *
   * Spark would raise an internal error, or empty the table for a DELETE without a condition.
   */
  private static void checkNoView(String operation, View view) {
    List leaves = CollectionConverters.asJava(view.collectLeaves());
    for (int i = 0; i < leaves.size(); i++) {
      Object leaf = leaves.get(i);
      if (!isOurs(leaf) && !(leaf instanceof OneRowRelation || leaf instanceof LocalRelation || leaf instanceof Range)) {
        return;
      }
    }
    Bridge.throwUnchecked(PaimonErrors.noView(operation, view.desc().identifier().unquotedString()));
  }

  /** Check a copy of a statement: Spark pads the CHAR columns of its queries later, but not in a plan that it checked. */
  private void check(LogicalPlan plan) {
    session.sessionState().analyzer().checkAnalysis((LogicalPlan) ((TreeNode) plan).clone());
  }

  /** Return the command of a dynamic overwrite, for which Spark passes no DataFrame. */
  private TreeNode overwrite(OverwritePartitionsDynamic plan) {
    LogicalPlan found = (LogicalPlan) ((V2WriteCommand) plan).table();
    if (!plan.resolved()
        || !(found instanceof DataSourceV2Relation)
        || !(((DataSourceV2Relation) found).table() instanceof PaimonTable)) {
      return plan;
    }
    check(plan);
    PaimonTable table = (PaimonTable) ((DataSourceV2Relation) found).table();
    OverwritePlan write = new OverwritePlan(plan, (DataSourceV2Relation) found);
    Bridge.call(table.handler(), "check_write", new Object[] {"dynamic", "[]", write.options()});
    String title = "Paimon INSERT OVERWRITE " + table.name() + ": the partitions of the rows are replaced";
    return new PaimonCommand(title, table.handler(), "overwrite_partitions", write, new StructType(), plan);
  }

  private TreeNode command(
      String operation, LogicalPlan plan, LogicalPlan aliased, String method, StructType schema) {
    LogicalPlan found = aliased;
    while (found instanceof SubqueryAlias) {
      found = ((SubqueryAlias) found).child();
    }
    if (found instanceof View && found.resolved()) {
      checkNoView(operation, (View) found);
    }
    if (!isOurs(found) || !plan.childrenResolved()) {
      return plan;
    }
    DataSourceV2Relation relation = (DataSourceV2Relation) found;
    LogicalPlan uncast = (LogicalPlan) plan.transformExpressions(new WithoutInsertedCasts());
    if (!uncast.resolved() || uncast.missingInput().nonEmpty()) {
      return plan;  // Spark has not yet added the metadata columns
    }
    RowLevelPlan.checkAssigned(plan);
    LogicalPlan complete = complete(withPaddedSource(uncast));
    if (complete == null) {
      return plan;
    }
    check(complete);
    PaimonTable table = (PaimonTable) relation.table();
    RowLevelPlan changes = new RowLevelPlan(complete, relation, plan.references());
    String title = "Paimon " + operation + " " + table.name();
    if (PaimonLocalRule.EXPLAINS.get() != null) {  // planning the read of the target takes time
      String trees = complete instanceof DeleteFromTable ? changes.trees() : null;
      title += ": " + Bridge.call(table.handler(), "explain_row_changes", new Object[] {trees});
    }
    return new PaimonCommand(
        title,
        table.handler(),
        method,
        changes,
        schema,
        complete);
  }

  /** Return True if a table of a plan has a CHAR or VARCHAR column. */
  private static boolean readsDeclaredTexts(LogicalPlan plan) {
    List leaves = CollectionConverters.asJava(plan.collectLeaves());
    for (int i = 0; i < leaves.size(); i++) {
      List columns = CollectionConverters.asJava(((LogicalPlan) leaves.get(i)).output());
      for (int j = 0; j < columns.size(); j++) {
        if (((Attribute) columns.get(j)).metadata().contains(Description.DECLARED_TYPE)) {
          return true;
        }
      }
    }
    return false;
  }

  /** Return a MERGE INTO whose source has padded CHAR columns; Spark pads them last, and only in plans that it runs. */
  private LogicalPlan withPaddedSource(LogicalPlan plan) {
    if (!(plan instanceof MergeIntoTable) || !readsDeclaredTexts(((MergeIntoTable) plan).sourceTable())) {
      return plan;
    }
    MergeIntoTable merge = (MergeIntoTable) plan;
    LogicalPlan copy = (LogicalPlan) ((TreeNode) merge.sourceTable()).clone();
    LogicalPlan source = session.sessionState().executePlan(copy, CommandExecutionMode.SKIP()).analyzed();
    HashMap padded = new HashMap();
    Iterator columns = CollectionConverters.asJava(source.output()).iterator();
    Iterator known = CollectionConverters.asJava(copy.output()).iterator();
    while (columns.hasNext()) {
      Attribute column = (Attribute) columns.next();
      Attribute old = (Attribute) known.next();
      if (!column.exprId().equals(old.exprId())) {
        padded.put(old.exprId(), column);
      }
    }
    if (padded.isEmpty()) {
      return plan;
    }
    LogicalPlan changed = new MergeIntoTable(
        merge.targetTable(),
        source,
        merge.mergeCondition(),
        merge.matchedActions(),
        merge.notMatchedActions(),
        merge.notMatchedBySourceActions(),
        merge.withSchemaEvolution());
    return (LogicalPlan) changed.transformExpressions(new Replaced(padded));
  }

  /** Return the statement with one assignment for each target column; null: Spark must first do more. */
  private static LogicalPlan complete(LogicalPlan plan) {
    if (plan instanceof UpdateTable) {
      UpdateTable update = (UpdateTable) plan;
      UpdateTable found = (UpdateTable) ResolveRowLevelCommandAssignments$.MODULE$.apply(
          new UpdateTable(forRowLevel(update.table()), update.assignments(), update.condition()));
      return found.aligned() ? found : null;
    }
    if (plan instanceof MergeIntoTable) {
      MergeIntoTable merge = (MergeIntoTable) plan;
      MergeIntoTable found = (MergeIntoTable) ResolveRowLevelCommandAssignments$.MODULE$.apply(
          new MergeIntoTable(
              forRowLevel(merge.targetTable()),
              merge.sourceTable(),
              merge.mergeCondition(),
              merge.matchedActions(),
              merge.notMatchedActions(),
              merge.notMatchedBySourceActions(),
              merge.withSchemaEvolution()));
      return found.aligned() ? found : null;
    }
    return plan;
  }

  private static LogicalPlan forRowLevel(LogicalPlan target) {
    if (target instanceof SubqueryAlias) {
      SubqueryAlias alias = (SubqueryAlias) target;
      return new SubqueryAlias(alias.identifier(), forRowLevel(alias.child()));
    }
    DataSourceV2Relation relation = (DataSourceV2Relation) target;
    return new DataSourceV2Relation(
        ((PaimonTable) relation.table()).forRowLevel(),
        relation.output(),
        relation.catalog(),
        relation.identifier(),
        relation.options(),
        relation.timeTravelSpec());
  }
}

/**
 * Removes the casts that Spark added without a check, so that alignment adds checked casts.
 *
 * Spark casts structs by position, and cannot resolve a cast of fields in another order. Alignment matches fields by
 * name.
 */
class WithoutInsertedCasts extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    if (!(node instanceof Assignment) || !(((Assignment) node).value() instanceof Cast)) {
      return false;
    }
    return ((Assignment) node).value().getTagValue(Cast$.MODULE$.BY_TABLE_INSERTION()).isDefined();
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    Assignment assignment = (Assignment) node;
    return new Assignment(assignment.key(), ((Cast) assignment.value()).child());
  }
}

/** Replaces columns by their identity. */
class Replaced extends AbstractPartialFunction {
  private final Map columns;

  Replaced(Map columns) {
    this.columns = columns;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof Attribute && columns.containsKey(((Attribute) node).exprId());
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    return isDefinedAt(node) ? columns.get(((Attribute) node).exprId()) : otherwise.apply(node);
  }
}
