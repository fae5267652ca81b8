package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.AlterColumnSpec;
import org.apache.spark.sql.catalyst.plans.logical.AlterColumns;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.VarcharType;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * ALTER COLUMN ... TYPE with STRING, CHAR or VARCHAR on a Paimon table. Spark sees these columns as STRING of any
 * length: it ignores a change to STRING and refuses other changes. The engine knows the length and decides.
 *
 * SetTableProperties is a small Spark command that alters a table; only its infrastructure is inherited.
 */
public class PaimonAlter extends SetTableProperties {
  private static final DataType LONGEST = DataType.fromJson("\"varchar(" + Integer.MAX_VALUE + ")\"");
  private final Seq changes;

  PaimonAlter(LogicalPlan table, Seq changes) {
    super(table, NativeFiles.scalaMap(new HashMap()));
    this.changes = changes;
  }

  public Seq changes() {
    return changes;
  }

  public LogicalPlan withNewChildInternal(LogicalPlan table) {
    return new PaimonAlter(table, changes);
  }

  public LogicalPlan clone() {
    return new PaimonAlter(table(), changes);
  }

  public TreeNode makeCopy(Object[] arguments) {
    return new PaimonAlter((LogicalPlan) arguments[0], changes);
  }

  /** Return a parsed plan with VARCHAR of the greatest length for STRING, so that Spark sees a change. */
  static LogicalPlan marked(LogicalPlan plan) {
    if (!(plan instanceof AlterColumns) || !isOurs(((AlterColumns) plan).table())) {
      return plan;
    }
    List specs = CollectionConverters.asJava(((AlterColumns) plan).specs());
    ArrayList found = new ArrayList();
    for (int i = 0; i < specs.size(); i++) {
      AlterColumnSpec spec = (AlterColumnSpec) specs.get(i);
      Option type = spec.newDataType();
      boolean text = type.isDefined() && type.get() == StringType$.MODULE$;
      found.add(text ? replaced((TreeNode) spec, type, new Some(LONGEST)) : spec);
    }
    Seq marked = CollectionConverters.asScala(found).toSeq();
    return (LogicalPlan) replaced((TreeNode) plan, ((AlterColumns) plan).specs(), marked);
  }

  /** Replace Spark's resolved alteration of text columns with ours. */
  static LogicalPlan of(AlterColumns plan) {
    LogicalPlan table = plan.table();
    if (!(table instanceof ResolvedTable) || !(((ResolvedTable) table).table() instanceof PaimonTable)) {
      return plan;
    }
    List specs = CollectionConverters.asJava(plan.specs());
    boolean texts = false;
    for (int i = 0; i < specs.size(); i++) {
      if (!((Expression) specs.get(i)).resolved()) {
        return plan;
      }
      Option type = ((AlterColumnSpec) specs.get(i)).newDataType();
      texts |= type.isDefined() && (type.get() instanceof VarcharType || type.get() instanceof CharType);
    }
    if (texts && specs.size() > 1) {  // Spark would no longer check the other changes for loss of values
      throw new UnsupportedOperationException(
          "ALTER COLUMN with STRING, CHAR or VARCHAR changes one column of a Paimon table: use one statement per column");
    }
    return texts ? new PaimonAlter(table, plan.changes()) : plan;
  }

  private static boolean isOurs(LogicalPlan table) {
    if (!(table instanceof UnresolvedTable)) {
      return false;
    }
    List parts = CollectionConverters.asJava(((UnresolvedTable) table).multipartIdentifier());
    if (parts.size() > 1 && Bridge.HANDLERS.containsKey(parts.get(0))) {
      return true;
    }
    CatalogManager manager =
        ((org.apache.spark.sql.classic.SparkSession) SparkSession.active()).sessionState().catalogManager();
    boolean named = parts.size() > 1 && manager.isCatalogRegistered((String) parts.get(0));
    return !named && Bridge.HANDLERS.containsKey(manager.currentCatalog().name());
  }

  private static TreeNode replaced(TreeNode node, Object old, Object other) {
    Object[] fields = new Object[((scala.Product) node).productArity()];
    for (int i = 0; i < fields.length; i++) {
      Object field = ((scala.Product) node).productElement(i);
      fields[i] = field == old ? other : field;
    }
    return node.makeCopy(fields);
  }
}
