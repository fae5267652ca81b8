package paimon.python;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts the query of a view in the place of its name in a query, in the way of Spark's own views.
 *
 * Before version 4.3, Spark looks for views in its own catalog only.
 */
public class PaimonViewRule extends Rule {
  /** The names of the catalogs with views that Spark does not look for. */
  private static final Map CATALOGS = new ConcurrentHashMap();

  /** The queries of the views, from FIRST_LEVEL on, inside which this thread resolves a view, as texts. */
  private static final ThreadLocal ABOVE = new ThreadLocal();

  private static final int FIRST_LEVEL = 6;

  /** Spark resolves so many views with the same query inside each other only if a view reads itself. */
  private static final int MOST_TIMES = 2;

  private static final Pattern RELATION = Pattern.compile("UnresolvedRelation \\[([^\\]]*)\\]");

  private final SparkSession session;

  PaimonViewRule(SparkSession session) {
    this.session = session;
  }

  /** Look for the views of a catalog, or no longer. */
  public static void lookInto(String catalog, boolean hasViews) {
    if (hasViews) {
      CATALOGS.put(catalog, Boolean.TRUE);
    } else {
      CATALOGS.remove(catalog);
    }
  }

  public TreeNode apply(TreeNode plan) {
    checkNotRecursive(plan);
    return CATALOGS.isEmpty() ? plan : ((LogicalPlan) plan).resolveOperatorsUp(new Views(session));
  }

  /**
   * Throw RECURSIVE_VIEW for the query of a view that is inside itself, which Spark would resolve without end.
   *
   * Spark refuses to define such a view; other engines and renames may leave one. Spark applies this rule to the query of
   * each view, so the texts of all levels above are known. A text of a subquery that is resolved already may be among
   * them, so one repetition proves nothing.
   */
  private static void checkNotRecursive(TreeNode plan) {
    int level = AnalysisContext.get().nestedViewDepth() - FIRST_LEVEL;
    if (level < 0) {
      if (ABOVE.get() != null) {
        ABOVE.remove();
      }
      return;
    }
    String text = plan.toString().replaceAll("#[0-9]+", "");
    ArrayList above = ABOVE.get() == null ? new ArrayList() : new ArrayList((List) ABOVE.get());
    while (above.size() > level) {
      above.remove(above.size() - 1);
    }
    if (Collections.frequency(above, text) > MOST_TIMES) {
      ABOVE.remove();
      ArrayList cycle = new ArrayList();
      for (int i = above.lastIndexOf(text); i < above.size(); i++) {
        cycle.add(relations((String) above.get(i)));
      }
      cycle.add(relations(text));
      Bridge.throwUnchecked(PaimonErrors.recursive(relations(text), String.join(" -> ", cycle)));
    }
    above.add(text);
    ABOVE.set(above);
  }

  /** Return the names of the relations in the text of a query. */
  private static String relations(String query) {
    Matcher found = RELATION.matcher(query);
    ArrayList names = new ArrayList();
    while (found.find()) {
      names.add("`" + found.group(1).replace(", ", "`.`") + "`");
    }
    return String.join(", ", names);
  }

  /** Return the full name of a view that a relation may name; null: it names none. */
  static String[] nameOfView(SparkSession session, UnresolvedRelation relation) {
    List parts = new ArrayList(CollectionConverters.asJava(relation.multipartIdentifier()));
    if (relation.isStreaming()
        || !relation.options().isEmpty()
        || session.sessionState().catalog().isTempView(relation.multipartIdentifier())) {
      return null;
    }
    CatalogManager manager = session.sessionState().catalogManager();
    if (parts.size() == 1 || !manager.isCatalogRegistered((String) parts.get(0))) {
      List current = new ArrayList(CollectionConverters.asJava(AnalysisContext.get().catalogAndNamespace()));
      if (current.isEmpty()) {
        current.add(manager.currentCatalog().name());
        current.addAll(java.util.Arrays.asList(manager.currentNamespace()));
      }
      parts.addAll(0, parts.size() == 1 ? current : current.subList(0, 1));
    }
    boolean canBe = parts.size() == 3 && CATALOGS.containsKey(parts.get(0));
    return canBe ? (String[]) parts.toArray(new String[0]) : null;
  }

  /** Return a view with its resolved query. `json`: see ViewedCatalog. */
  static LogicalPlan resolved(SparkSession session, String[] name, String json) {
    LogicalPlan found = session.sessionState().catalog().getRelation(described(name, (Map) Trees.parsed(json)), options());
    View view = (View) ((SubqueryAlias) found).child();
    LogicalPlan resolved = (LogicalPlan) resolveViews(session.sessionState().analyzer().ResolveRelations(), view);
    return SubqueryAlias$.MODULE$.apply(PaimonFunctions.seq(java.util.Arrays.asList(name)), resolved);
  }

  private static CaseInsensitiveStringMap options() {
    return CaseInsensitiveStringMap.empty();
  }

  /** Call a method of Spark's rule that has no public name. Its options, if it takes them, are of the relation. */
  private static Object resolveViews(Object rule, View view) {
    Method[] methods = rule.getClass().getMethods();
    try {
      for (int i = 0; i < methods.length; i++) {
        if (methods[i].getName().endsWith("resolveViews")) {
          return methods[i].getParameterCount() == 1
              ? methods[i].invoke(rule, new Object[] {view})
              : methods[i].invoke(rule, new Object[] {view, options()});
        }
      }
    } catch (InvocationTargetException error) {
      Bridge.throwUnchecked(error.getCause());
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
    throw new UnsupportedOperationException("this version of Spark cannot read views of a catalog: use Spark 4.3");
  }

  /** Return a view as Spark's own catalog describes it. */
  private static CatalogTable described(String[] name, Map given) {
    TreeMap properties = new TreeMap((Map) given.get("properties"));
    List context = new ArrayList((List) given.get("namespace"));
    context.add(0, given.get("catalog"));
    putAll(properties, "view.catalogAndNamespace.numParts", "view.catalogAndNamespace.part.", context);
    putAll(properties, "view.query.out.numCols", "view.query.out.col.", (List) given.get("columns"));
    properties.put("view.schemaMode", given.get("mode"));
    Iterator settings = ((Map) given.get("configs")).entrySet().iterator();
    while (settings.hasNext()) {
      Map.Entry entry = (Map.Entry) settings.next();
      properties.put("view.sqlConfig." + entry.getKey(), entry.getValue());
    }
    TableIdentifier identifier =
        new TableIdentifier(name[2], Option.apply(name[1]), Option.apply(name[0]));
    StructType schema = Trees.struct((String) given.get("schema"));
    Constructor constructor = CatalogTable.class.getConstructors()[0];
    Object[] first = new Object[] {
      identifier, CatalogTableType$.MODULE$.VIEW(), CatalogStorageFormat$.MODULE$.empty(), schema
    };
    Object[] values = new Object[constructor.getParameterCount()];
    try {
      for (int i = 0; i < values.length; i++) {
        values[i] = i < first.length
            ? first[i]
            : CatalogTable$.class
                .getMethod("apply$default$" + (i + 1), new Class[0])
                .invoke(CatalogTable$.MODULE$, new Object[0]);
      }
      CatalogTable plain = (CatalogTable) constructor.newInstance(values);
      for (int i = 0; i < values.length; i++) {
        if (plain.productElementName(i).equals("properties")) {
          values[i] = Map$.MODULE$.from(CollectionConverters.asScala((Map) properties));
        } else if (plain.productElementName(i).equals("viewText")) {
          values[i] = Option.apply(given.get("query"));
        }
      }
      return (CatalogTable) constructor.newInstance(values);
    } catch (ReflectiveOperationException error) {
      throw new UnsupportedOperationException("this version of Spark cannot read views of a catalog: " + error);
    }
  }

  private static void putAll(Map properties, String number, String prefix, List values) {
    properties.put(number, String.valueOf(values.size()));
    for (int i = 0; i < values.size(); i++) {
      properties.put(prefix + i, values.get(i));
    }
  }
}

class Views extends AbstractPartialFunction {
  private final SparkSession session;

  Views(SparkSession session) {
    this.session = session;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof UnresolvedRelation
        && PaimonViewRule.nameOfView(session, (UnresolvedRelation) node) != null;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    String[] name = node instanceof UnresolvedRelation
        ? PaimonViewRule.nameOfView(session, (UnresolvedRelation) node)
        : null;
    if (name == null) {
      return otherwise.apply(node);
    }
    String parts = Trees.json(new String[] {name[1], name[2]});
    String json = (String) Bridge.call(Bridge.HANDLERS.get(name[0]), "load_view", new Object[] {parts});
    return json == null ? node : PaimonViewRule.resolved(session, name, json);
  }
}

class ViewRuleBuilder extends AbstractFunction1 {
  public Object apply(Object session) {
    return new PaimonViewRule((SparkSession) session);
  }
}
