package paimon.python;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Lets Spark's own scan read files with deleted rows, below a filter that drops these rows, and divides a scan if only
 * some files need a merge.
 *
 * The rule runs last in the optimizer, when the columns and filters of a scan are known. A scan with a runtime filter
 * of a join is not divided, because the filter prunes partitions. The rule does not affect the result of a scan.
 * PaimonLocalRule and PaimonVariantRule run with it.
 */
class PaimonDivideRule extends Rule {
  /** Add the three rules to a session and the sessions cloned from it. null or a second call changes nothing. */
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
    rules.add(new PaimonVariantRule());  // after masks have become filters
    methods.extraOptimizations_$eq(CollectionConverters.asScala(rules).toSeq());
  }

  public TreeNode apply(TreeNode plan) {
    return replaced((LogicalPlan) plan, true);
  }

  /** @param divides false: a runtime filter of a join is above */
  private static LogicalPlan replaced(LogicalPlan plan, boolean divides) {
    if (plan instanceof DataSourceV2ScanRelation) {
      DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) plan;
      if (!(relation.scan() instanceof PaimonScan)) {
        return plan;
      }
      PaimonScan[] parts = divides ? ((PaimonScan) relation.scan()).parts() : null;
      return parts == null ? masked(relation) : union(relation, parts);
    }
    divides = divides && !(plan instanceof Filter && isOfJoin(((Filter) plan).condition()));
    List children = CollectionConverters.asJava((Seq) plan.children());
    ArrayList found = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < children.size(); i++) {
      LogicalPlan child = (LogicalPlan) children.get(i);
      found.add(replaced(child, divides));
      changed |= found.get(i) != child;
    }
    return changed ? (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(found).toSeq()) : plan;
  }

  /** Return a filter of deleted rows over Spark's own scan of the files, or the relation if it has no masks. */
  private static LogicalPlan masked(DataSourceV2ScanRelation relation) {
    PaimonScan scan = ((PaimonScan) relation.scan()).masked();
    if (scan == null) {
      return relation;
    }
    StructField[] fields = scan.readSchema().fields();
    Attribute position = attribute(fields[fields.length - 2]);
    Attribute file = attribute(fields[fields.length - 1]);
    ArrayList columns = new ArrayList(CollectionConverters.asJava((Seq) relation.output()));
    columns.add(position);
    columns.add(file);
    LogicalPlan live = new Filter(scan.mask(position, file), copy(relation, scan, columns));
    return new Project((Seq) relation.output(), live);
  }

  private static Attribute attribute(StructField field) {
    return new AttributeReference(
        field.name(),
        field.dataType(),
        field.nullable(),
        Metadata.empty(),
        NamedExpression$.MODULE$.newExprId(),
        CollectionConverters.asScala(new ArrayList()).toSeq());
  }

  static boolean isOfJoin(Expression condition) {
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
    LogicalPlan first = masked((DataSourceV2ScanRelation) copy(relation, parts[0], columns));
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
