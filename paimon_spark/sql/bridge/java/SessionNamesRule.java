package paimon.python;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Keeps Spark's own tables from taking the name of a Paimon table in spark_catalog.
 *
 * Spark creates and renames its own tables without asking the catalog whose class extends them.
 */
class SessionNamesRule extends Rule {
  private static final String NAME = "spark_catalog";
  private final SparkSession session;

  SessionNamesRule(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    if (!Bridge.HANDLERS.containsKey(NAME)) {
      return plan;
    }
    if (plan instanceof CreateTable && ((CreateTable) plan).name() instanceof UnresolvedIdentifier) {
      return created(plan, ((UnresolvedIdentifier) ((CreateTable) plan).name()).nameParts());
    }
    if (plan instanceof CreateTableAsSelect && ((CreateTableAsSelect) plan).name() instanceof UnresolvedIdentifier) {
      return created(plan, ((UnresolvedIdentifier) ((CreateTableAsSelect) plan).name()).nameParts());
    }
    if (plan instanceof RenameTable && ((RenameTable) plan).child() instanceof UnresolvedTableOrView) {
      Identifier from = named(((UnresolvedTableOrView) ((RenameTable) plan).child()).multipartIdentifier());
      Identifier to = named(((RenameTable) plan).newName());
      if (from != null && to != null && !isOurs(from) && isOurs(to)) {
        Bridge.throwUnchecked(new TableAlreadyExistsException(to));
      }
    }
    return plan;
  }

  /** Return a statement that finds the Paimon table of its name, if there is one. */
  private TreeNode created(TreeNode plan, Seq parts) {
    Identifier table = named(parts);
    if (table == null || !isOurs(table)) {
      return plan;
    }
    for (int i = 0; i < plan.productArity(); i++) {
      if (plan.productElementName(i).equals("tableSpec")) {
        TreeNode specification = (TreeNode) plan.productElement(i);
        return with(plan, "tableSpec", with(specification, "provider", Option.apply("paimon")));
      }
    }
    return plan;
  }

  /** Return a copy of a node with another value of one of its parameters. */
  static TreeNode with(TreeNode node, String name, Object value) {
    Object[] parts = new Object[node.productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = node.productElementName(i).equals(name) ? value : node.productElement(i);
    }
    return node.makeCopy(parts);
  }

  private static boolean isOurs(Identifier table) {
    Object handler = Bridge.HANDLERS.get(NAME);
    Object[] database = new Object[] {table.namespace()};
    return ((Boolean) Bridge.call(handler, "database_exists", database)).booleanValue()
        && ((Boolean) Bridge.call(handler, "table_exists", new Object[] {table})).booleanValue();
  }

  /** Return the identifier of a table in spark_catalog; null: the name belongs to another catalog. */
  private Identifier named(Seq parts) {
    List names = CollectionConverters.asJava(parts);
    CatalogManager manager = session.sessionState().catalogManager();
    int first = 0;
    if (names.size() > 1 && manager.isCatalogRegistered((String) names.get(0))) {
      if (!names.get(0).equals(NAME)) {
        return null;
      }
      first = 1;
    } else if (!manager.currentCatalog().name().equals(NAME)) {
      return null;
    }
    int last = names.size() - 1;
    if (last - first > 1) {
      return null;
    }
    String[] database = last == first ? manager.currentNamespace() : new String[] {(String) names.get(first)};
    return database.length == 1 ? new Named(database, (String) names.get(last)) : null;
  }
}

class SessionNamesRuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new SessionNamesRule((SparkSession) session);
  }
}

/** An identifier: Janino cannot call the static method of Spark's interface that makes one. */
class Named implements Identifier {
  private final String[] namespace;
  private final String name;

  Named(String[] namespace, String name) {
    this.namespace = namespace;
    this.name = name;
  }

  public String[] namespace() {
    return namespace;
  }

  public String name() {
    return name;
  }

  public String toString() {
    return namespace[0] + "." + name;
  }
}
