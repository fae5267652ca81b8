package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison$;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.util.package$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.ExpressionColumnNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** An analysed DELETE, UPDATE or MERGE INTO, as columns and DataFrames for Python. */
public class RowLevelPlan {
  private final LogicalPlan plan;
  private final DataSourceV2Relation target;
  private final AttributeSet used;

  /**
   * Args: plan: with an assignment for each column; target: its table; used: the columns that the statement names.
   */
  RowLevelPlan(LogicalPlan plan, DataSourceV2Relation target, AttributeSet used) {
    this.plan = plan;
    this.target = target;
    this.used = used;
  }

  /** Return the options of `t WITH (...)`. */
  public java.util.Map options() {
    return target.options().asCaseSensitiveMap();
  }

  /**
   * Return the names of the metadata columns of the target that the statement uses.
   *
   * Spark reads the target with all of them if it uses one.
   */
  public String[] metadataColumns() {
    List output = CollectionConverters.asJava(target.output());
    ArrayList found = new ArrayList();
    for (int i = 0; i < output.size(); i++) {
      Attribute column = (Attribute) output.get(i);
      if (isMetadata(column) && used.contains(column)) {
        found.add(column.name());
      }
    }
    return (String[]) found.toArray(new String[0]);
  }

  /** Throw an exception if a statement gives a metadata column a value. */
  static void checkAssigned(LogicalPlan plan) {
    ArrayList open = new ArrayList(CollectionConverters.asJava(plan.expressions()));
    while (!open.isEmpty()) {
      Expression part = (Expression) open.remove(open.size() - 1);
      open.addAll(CollectionConverters.asJava(part.children()));
      if (part instanceof Assignment && ((Assignment) part).key() instanceof Attribute) {
        Attribute column = (Attribute) ((Assignment) part).key();
        if (isMetadata(column)) {
          throw new UnsupportedOperationException(
              "the metadata column " + column.name() + " cannot be given a value: it says where a row is stored");
        }
      }
    }
  }

  /** Return the condition of the statement; null: the statement has no condition. */
  public Column condition() {
    if (plan instanceof DeleteFromTable) {
      return column(((DeleteFromTable) plan).condition());
    }
    if (plan instanceof UpdateTable) {
      return column(((UpdateTable) plan).condition());
    }
    return column(((MergeIntoTable) plan).mergeCondition());
  }

  /** Return the condition of DELETE as a list of one tree, with constants computed; null for a condition without one. */
  public String trees() {
    LogicalPlan filter = new Filter(((DeleteFromTable) plan).condition(), target);
    filter = UnwrapCastInBinaryComparison$.MODULE$.apply(ConstantFolding$.MODULE$.apply(filter));
    ArrayList conditions = new ArrayList();
    conditions.add(((Filter) filter).condition());
    return PaimonScanBuilder.trees(conditions);
  }

  /** Return the source of MERGE INTO as a DataFrame. */
  public Dataset source(SparkSession session) {
    return frame(session, ((MergeIntoTable) plan).sourceTable());
  }

  /** Return True for MERGE WITH SCHEMA EVOLUTION. */
  public boolean evolves() {
    return ((MergeIntoTable) plan).withSchemaEvolution();
  }

  /**
   * Return the clauses of MERGE INTO, in their order, as a JSON list.
   *
   * Each has the rows ("matched", "not matched", "not matched by source"), the action ("update", "delete", "insert"),
   * and the names of the columns that get a value (null: no column). If the value is a column of the source, the clause
   * also has its position.
   */
  public String clauses() {
    MergeIntoTable merge = (MergeIntoTable) plan;
    ArrayList found = new ArrayList();
    add("matched", merge.matchedActions(), found);
    add("not matched", merge.notMatchedActions(), found);
    add("not matched by source", merge.notMatchedBySourceActions(), found);
    return Trees.json(found);
  }

  /** Return the condition of a clause of MERGE INTO; null: the clause has no condition. */
  public Column condition(int clause) {
    return column(action(clause).condition());
  }

  /** Return the names of the columns that UPDATE gives a value, as a JSON list. */
  public String assigned() {
    return Trees.json(names(assignments(0)));
  }

  /**
   * Return the rows with the new values of a clause, or of UPDATE, as further columns.
   *
   * @param names a JSON object: the name of the further column, by the column that gets the value
   * @param decision the column with the number of the clause that decides about a row; null: every row gets the values
   */
  public Dataset withValues(SparkSession session, Dataset rows, int clause, String names, String decision) {
    LogicalPlan child = rows.queryExecution().analyzed();
    ArrayList projected = new ArrayList(CollectionConverters.asJava(child.output()));
    Expression applies = null;
    for (int i = 0; i < projected.size(); i++) {
      Attribute column = (Attribute) projected.get(i);
      if (column.name().equals(decision)) {
        applies = new EqualTo(column, new Literal(Integer.valueOf(clause), DataTypes.IntegerType));
      }
    }
    Map wanted = (Map) Trees.parsed(names);
    List given = assignments(clause);
    for (int i = 0; i < given.size(); i++) {
      Assignment assignment = (Assignment) given.get(i);
      String name = (String) wanted.get(((Attribute) assignment.key()).name());
      if (name == null) {
        continue;
      }
      Expression value = assignment.value();
      if (applies != null) {
        value = new If(applies, value, new Literal(null, value.dataType()));
      }
      projected.add(new Alias(value, name, NamedExpression$.MODULE$.newExprId(), empty(), Option.empty(), empty()));
    }
    return frame(session, new Project(CollectionConverters.asScala(projected).toSeq(), child));
  }

  /** Return the DataFrame with the target's columns under the identities that the statement's columns refer to. */
  public Dataset bind(SparkSession session, Dataset rows) {
    LogicalPlan child = rows.queryExecution().analyzed();
    List output = CollectionConverters.asJava(child.output());
    HashMap wanted = new HashMap();
    Iterator columns = CollectionConverters.asJava(target.output()).iterator();
    while (columns.hasNext()) {
      Attribute column = (Attribute) columns.next();
      wanted.put(column.name(), column);
    }
    ArrayList projected = new ArrayList();
    for (int i = 0; i < output.size(); i++) {
      Attribute column = (Attribute) output.get(i);
      Attribute known = (Attribute) wanted.get(column.name());
      projected.add(
          known == null
              ? (NamedExpression) column
              : new Alias(column, known.name(), known.exprId(), known.qualifier(), Option.empty(), empty()));
    }
    return frame(session, new Project(CollectionConverters.asScala(projected).toSeq(), child));
  }

  private void add(String rows, Seq actions, List found) {
    List given = CollectionConverters.asJava(actions);
    for (int i = 0; i < given.size(); i++) {
      MergeAction action = (MergeAction) given.get(i);
      boolean updates = action instanceof UpdateAction;
      if (!updates && !(action instanceof DeleteAction) && !(action instanceof InsertAction)) {
        throw new UnsupportedOperationException("MERGE INTO with " + action.nodeName() + " on a Paimon table");
      }
      Object names = action instanceof DeleteAction ? null : names(assignments(action));
      String kind = names == null ? "delete" : updates ? "update" : "insert";
      Object positions = names == null ? new HashMap() : positions(assignments(action));
      found.add(new Object[] {rows, kind, names, positions});
    }
  }

  private MergeAction action(int clause) {
    MergeIntoTable merge = (MergeIntoTable) plan;
    ArrayList all = new ArrayList(CollectionConverters.asJava(merge.matchedActions()));
    all.addAll(CollectionConverters.asJava(merge.notMatchedActions()));
    all.addAll(CollectionConverters.asJava(merge.notMatchedBySourceActions()));
    return (MergeAction) all.get(clause);
  }

  /** Return the assignments of a clause of MERGE INTO, or of UPDATE, as `changing` does. */
  private List assignments(int clause) {
    return plan instanceof UpdateTable ? changing(((UpdateTable) plan).assignments(), false) : assignments(action(clause));
  }

  private List assignments(MergeAction action) {
    return action instanceof InsertAction
        ? changing(((InsertAction) action).assignments(), true)
        : changing(((UpdateAction) action).assignments(), false);
  }

  /** Return the position in the source by the name of a column, where its value is a column of the source. */
  private Map positions(List assignments) {
    HashMap known = new HashMap();
    List output = CollectionConverters.asJava(((MergeIntoTable) plan).sourceTable().output());
    for (int i = 0; i < output.size(); i++) {
      known.put(((Attribute) output.get(i)).exprId(), Integer.valueOf(i));
    }
    HashMap found = new HashMap();
    for (int i = 0; i < assignments.size(); i++) {
      Assignment assignment = (Assignment) assignments.get(i);
      boolean plain = assignment.value() instanceof Attribute;
      Object position = plain ? known.get(((Attribute) assignment.value()).exprId()) : null;
      if (position != null) {
        found.put(((Attribute) assignment.key()).name(), position);
      }
    }
    return found;
  }

  private static List names(List assignments) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < assignments.size(); i++) {
      found.add(((Attribute) ((Assignment) assignments.get(i)).key()).name());
    }
    return found;
  }

  /** Return the assignments of the table's columns. Unless `whole`, a column that keeps its value is left out. */
  private List changing(Seq assignments, boolean whole) {
    List given = CollectionConverters.asJava(assignments);
    ArrayList found = new ArrayList();
    for (int i = 0; i < given.size(); i++) {
      Assignment assignment = (Assignment) given.get(i);
      if (isMetadata((Attribute) assignment.key())) {
        continue;  // Spark completes the assignments by all columns with which it reads the table
      }
      if (whole || !assignment.key().semanticEquals(assignment.value()) && !equated(assignment)) {
        found.add(assignment);
      }
    }
    return found;
  }

  /** Return True if ON says that the column equals its new value already. */
  private boolean equated(Assignment assignment) {
    if (!(plan instanceof MergeIntoTable)) {
      return false;
    }
    Expression value = assignment.value();
    while (value instanceof Alias || value instanceof AssertNotNull || isLengthCheck(value) || keepsText(value)) {
      value = (Expression) value.children().head();
    }
    ArrayList open = new ArrayList();
    open.add(((MergeIntoTable) plan).mergeCondition());
    while (!open.isEmpty()) {
      Expression part = (Expression) open.remove(open.size() - 1);
      if (part instanceof And) {
        open.add(((And) part).left());
        open.add(((And) part).right());
      } else if (part instanceof EqualTo || part instanceof EqualNullSafe) {
        Expression left = (Expression) part.children().head();
        Expression right = (Expression) part.children().last();
        if (left.semanticEquals(assignment.key()) && right.semanticEquals(value)
            || right.semanticEquals(assignment.key()) && left.semanticEquals(value)) {
          return true;
        }
      }
    }
    return false;
  }

  /** Return True for the cast of a text to its own type. */
  private static boolean keepsText(Expression value) {
    DataType text = DataTypes.StringType;
    return value instanceof Cast && value.dataType().equals(text) && ((Cast) value).child().dataType().equals(text);
  }

  /** Return True for Spark's check of the length of a CHAR or VARCHAR value, and for the cast of its result. */
  private static boolean isLengthCheck(Expression value) {
    if (value instanceof Cast) {
      return isLengthCheck(((Cast) value).child());
    }
    return value instanceof StaticInvoke
        && ((StaticInvoke) value).staticObject().getSimpleName().startsWith("CharVarcharCodegenUtils");
  }

  private static boolean isMetadata(Attribute column) {
    return column.metadata().contains(package$.MODULE$.METADATA_COL_ATTR_KEY());
  }

  private static Dataset frame(SparkSession session, LogicalPlan plan) {
    return Dataset$.MODULE$.ofRows((org.apache.spark.sql.classic.SparkSession) session, plan);
  }

  private static Column column(Option expression) {
    return expression.isEmpty() ? null : column((Expression) expression.get());
  }

  private static Column column(Expression expression) {
    return new Column(ExpressionColumnNode.apply(expression));
  }

  private static Seq empty() {
    return CollectionConverters.asScala(new ArrayList()).toSeq();
  }
}
