package paimon.python;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.InsertStarAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateStarAction;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Plans a write that may change the schema against the changed table, which has the columns of the rows.
 *
 * The rule runs before Spark compares columns, and also translates REPLACE USING and REPLACE ON. Spark then matches, casts and completes the rows for the changed table.
 * The stored schema changes when the write runs, but not under EXPLAIN.
 */
class PaimonMergeSchemaRule extends Rule {
  private static final String[] MERGE_SCHEMA = {"merge-schema", "mergeschema"};
  private static final String[] MISSING_COLUMNS = {"write.missing-columns"};
  private final SparkSession session;

  PaimonMergeSchemaRule(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    if (plan instanceof InsertIntoStatement) {
      return insert((InsertIntoStatement) plan);
    }
    if (plan instanceof V2WriteCommand) {
      return write((V2WriteCommand) plan);
    }
    return plan instanceof MergeIntoTable ? merge((MergeIntoTable) plan) : plan;
  }

  private TreeNode insert(InsertIntoStatement plan) {
    scala.Product criterion = InsertReplace.criterion(plan);
    if (criterion != null) {
      DataSourceV2Relation target = relation(analyzed(plan.table()));
      return target == null
          ? plan
          : InsertReplace.overwrite(plan, criterion, target, analyzed(plan.query()), session.version());
    }
    Map settings = CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
    boolean asked = mentions(optionsOf(plan.table()).keySet().iterator(), MISSING_COLUMNS)
        || mentions(settings.keySet().iterator(), MISSING_COLUMNS) && isNamedInOurCatalog(plan.table());
    if (asked) {
      throw new UnsupportedOperationException(
          "option 'write.missing-columns' is for writes of DataFrames, not for INSERT: list every column in the statement");
    }
    boolean demanded = flag(plan, "withSchemaEvolution");
    if (!demanded && !wanted(optionsOf(plan.table())) || !demanded && !plan.byName()) {
      return plan;
    }
    LogicalPlan table = analyzed(plan.table());
    DataSourceV2Relation relation = relation(table);
    if (relation == null) {
      return plan;
    }
    StructType columns = analyzed(plan.query()).schema();
    DataSourceV2Relation merged = merged(relation, columns, optionsOf(plan.table()), demanded, plan.byName());
    return merged == null || merged == relation && !demanded ? plan : replaced(plan, merged);
  }

  private TreeNode write(V2WriteCommand plan) {
    boolean demanded = flag((TreeNode) plan, "withSchemaEvolution");
    Map options = plan instanceof AppendData
        ? CollectionConverters.asJava(((AppendData) plan).writeOptions())
        : plan instanceof OverwriteByExpression
            ? CollectionConverters.asJava(((OverwriteByExpression) plan).writeOptions())
            : plan instanceof OverwritePartitionsDynamic
                ? CollectionConverters.asJava(((OverwritePartitionsDynamic) plan).writeOptions())
                : null;
    if (plan instanceof AppendData && plan.isByName()) {
      checkMissingColumns(plan, options);
    }
    if (options == null || !demanded && !wanted(options) || !demanded && !plan.isByName()) {
      return (TreeNode) plan;
    }
    DataSourceV2Relation relation = relation(analyzed((LogicalPlan) plan.table()));
    if (relation == null) {
      return (TreeNode) plan;
    }
    StructType columns = analyzed((LogicalPlan) ((LogicalPlan) plan).children().head()).schema();
    DataSourceV2Relation merged = merged(relation, columns, options, demanded, plan.isByName());
    boolean same = merged == null || merged == relation && !demanded;
    return same ? (TreeNode) plan : replaced((TreeNode) plan, merged);
  }

  /** Let Python warn about, or refuse, an append by name whose rows lack columns of the table. */
  private void checkMissingColumns(V2WriteCommand plan, Map options) {
    LogicalPlan table = (LogicalPlan) plan.table();
    if (!table.resolved() && !isNamedInOurCatalog(table)) {
      return;
    }
    DataSourceV2Relation relation = relation(analyzed(table));
    if (relation == null || !relation.table().properties().containsKey("primary-key")) {
      return;
    }
    StructType columns = analyzed((LogicalPlan) ((LogicalPlan) plan).children().head()).schema();
    if (columns.size() < relation.table().columns().length) {
      PaimonTable target = (PaimonTable) relation.table();
      String stated = Trees.of(new CaseInsensitiveStringMap(options));
      Bridge.call(target.handler(), "check_missing_columns", new Object[] {columns.json(), stated});
    }
  }

  /** Return True if a name that is not resolved yet has a catalog of this connector; other tables are not loaded. */
  private boolean isNamedInOurCatalog(LogicalPlan table) {
    if (!(table instanceof UnresolvedRelation)) {
      return relation(table) != null;
    }
    Object first = CollectionConverters.asJava(((UnresolvedRelation) table).multipartIdentifier()).get(0);
    String current = session.sessionState().catalogManager().currentCatalog().name();
    return Bridge.HANDLERS.containsKey(first) || Bridge.HANDLERS.containsKey(current);
  }

  private TreeNode merge(MergeIntoTable plan) {
    Map options = optionsOf(plan.targetTable());
    boolean stars = stars(plan.matchedActions()) || stars(plan.notMatchedActions());
    if (!plan.withSchemaEvolution() && !(stars && wanted(options))) {
      return plan;
    }
    LogicalPlan target = analyzed(plan.targetTable());
    DataSourceV2Relation relation = relation(target);
    if (relation == null) {
      return plan;
    }
    LogicalPlan source = analyzed(plan.sourceTable());
    StructType columns = source.schema();
    if (!stars) {
      ArrayList named = new ArrayList();
      addAssigned(plan.matchedActions(), named);
      addAssigned(plan.notMatchedActions(), named);
      columns = only(columns, named);
    }
    DataSourceV2Relation merged = merged(relation, columns, options, plan.withSchemaEvolution(), true);
    if (merged == null) {
      return plan;
    }
    return new MergeIntoTable(
        with(target, merged),
        source,
        plan.mergeCondition(),
        explicit(plan.matchedActions(), merged, source),
        explicit(plan.notMatchedActions(), merged, source),
        plan.notMatchedBySourceActions(),
        false);
  }

  /** Return True if options or the session may allow a schema change; Python decides. */
  private boolean wanted(Map options) {
    Map settings = CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
    return mentions(options.keySet().iterator(), MERGE_SCHEMA)
        || mentions(settings.keySet().iterator(), MERGE_SCHEMA);
  }

  private static boolean mentions(Iterator keys, String[] endings) {
    while (keys.hasNext()) {
      String key = ((String) keys.next()).toLowerCase();
      for (int i = 0; i < endings.length; i++) {
        if (key.endsWith(endings[i])) {
          return true;
        }
      }
    }
    return false;
  }

  /** Return the relation with its future schema, or itself if the schema stays; null: the schema must not change. */
  private DataSourceV2Relation merged(
      DataSourceV2Relation relation, StructType columns, Map options, boolean demanded, boolean byName) {
    PaimonTable table = (PaimonTable) relation.table();
    CaseInsensitiveStringMap given = new CaseInsensitiveStringMap(options);
    Object found = Bridge.call(
        table.handler(),
        "with_merged_columns",
        new Object[] {columns.json(), Trees.of(given), Boolean.valueOf(demanded), Boolean.valueOf(byName)});
    if (!(found instanceof PaimonTable)) {
      return found == null ? null : relation;
    }
    return DataSourceV2Relation$.MODULE$.create(
        ((PaimonTable) found).as(table),
        relation.catalog(),
        relation.identifier(),
        relation.options(),
        Option.empty());
  }

  private LogicalPlan analyzed(LogicalPlan plan) {
    return plan.resolved()
        ? plan
        : session.sessionState().executePlan(plan, CommandExecutionMode.SKIP()).analyzed();
  }

  /** Return True for the projection with which Spark pads the CHAR columns of a relation. */
  private static boolean isPadding(LogicalPlan plan) {
    return plan instanceof Project && plan.children().head() instanceof DataSourceV2Relation;
  }

  /** Return the relation of a Paimon table under its aliases; null: not a Paimon table. */
  private static DataSourceV2Relation relation(LogicalPlan plan) {
    LogicalPlan found = plan;
    while (found instanceof SubqueryAlias || isPadding(found)) {
      found = (LogicalPlan) found.children().head();
    }
    boolean ours =
        found instanceof DataSourceV2Relation && ((DataSourceV2Relation) found).table() instanceof PaimonTable;
    return ours ? (DataSourceV2Relation) found : null;
  }

  private static LogicalPlan with(LogicalPlan target, DataSourceV2Relation relation) {
    if (target instanceof SubqueryAlias) {
      SubqueryAlias alias = (SubqueryAlias) target;
      return new SubqueryAlias(alias.identifier(), with(alias.child(), relation));
    }
    return relation;
  }

  private static Map optionsOf(LogicalPlan table) {
    LogicalPlan found = table;
    while (found instanceof SubqueryAlias) {
      found = ((SubqueryAlias) found).child();
    }
    if (found instanceof UnresolvedRelation) {
      return ((UnresolvedRelation) found).options().asCaseSensitiveMap();
    }
    return found instanceof DataSourceV2Relation
        ? ((DataSourceV2Relation) found).options().asCaseSensitiveMap()
        : new java.util.HashMap();
  }

  private static boolean flag(TreeNode plan, String name) {
    for (int i = 0; i < plan.productArity(); i++) {
      if (plan.productElementName(i).equals(name)) {
        return ((Boolean) plan.productElement(i)).booleanValue();
      }
    }
    return false;
  }

  /** Return a copy of a write for another table, which no longer says that Spark changes the schema. */
  private static TreeNode replaced(TreeNode plan, DataSourceV2Relation table) {
    Object[] parts = new Object[plan.productArity()];
    for (int i = 0; i < parts.length; i++) {
      String name = plan.productElementName(i);
      parts[i] = name.equals("table")
          ? table
          : name.equals("withSchemaEvolution") ? Boolean.FALSE : plan.productElement(i);
    }
    return plan.makeCopy(parts);
  }

  private static boolean stars(Seq actions) {
    List given = CollectionConverters.asJava(actions);
    for (int i = 0; i < given.size(); i++) {
      if (given.get(i) instanceof UpdateStarAction || given.get(i) instanceof InsertStarAction) {
        return true;
      }
    }
    return false;
  }

  private static void addAssigned(Seq actions, List names) {
    List given = CollectionConverters.asJava(actions);
    for (int i = 0; i < given.size(); i++) {
      Seq assignments = given.get(i) instanceof UpdateAction
          ? ((UpdateAction) given.get(i)).assignments()
          : given.get(i) instanceof InsertAction ? ((InsertAction) given.get(i)).assignments() : null;
      List assigned = assignments == null ? new ArrayList() : CollectionConverters.asJava(assignments);
      for (int j = 0; j < assigned.size(); j++) {
        Expression key = ((Assignment) assigned.get(j)).key();
        if (key instanceof UnresolvedAttribute) {
          names.add(((String) ((UnresolvedAttribute) key).nameParts().last()).toLowerCase());
        }
      }
    }
  }

  private static StructType only(StructType columns, List names) {
    ArrayList found = new ArrayList();
    StructField[] fields = columns.fields();
    for (int i = 0; i < fields.length; i++) {
      if (names.contains(fields[i].name().toLowerCase())) {
        found.add(fields[i]);
      }
    }
    return new StructType((StructField[]) found.toArray(new StructField[0]));
  }

  /** Return the actions with an assignment for each column of the source instead of a star. */
  private static Seq explicit(Seq actions, DataSourceV2Relation target, LogicalPlan source) {
    List given = CollectionConverters.asJava(actions);
    ArrayList found = new ArrayList();
    for (int i = 0; i < given.size(); i++) {
      Option condition = ((MergeAction) given.get(i)).condition();
      if (given.get(i) instanceof UpdateStarAction) {
        found.add(new UpdateAction(condition, assignments(target, source), false));
      } else if (given.get(i) instanceof InsertStarAction) {
        found.add(new InsertAction(condition, assignments(target, source)));
      } else {
        found.add(given.get(i));
      }
    }
    return CollectionConverters.asScala(found).toSeq();
  }

  private static Seq assignments(DataSourceV2Relation target, LogicalPlan source) {
    List wanted = CollectionConverters.asJava(target.output());
    List values = CollectionConverters.asJava(source.output());
    ArrayList found = new ArrayList();
    for (int i = 0; i < values.size(); i++) {
      for (int j = 0; j < wanted.size(); j++) {
        if (((Attribute) wanted.get(j)).name().equalsIgnoreCase(((Attribute) values.get(i)).name())) {
          found.add(new Assignment((Expression) wanted.get(j), (Expression) values.get(i)));
        }
      }
    }
    return CollectionConverters.asScala(found).toSeq();
  }
}
