package paimon.python;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;

/**
 * The body of a SQL function, or the default of a parameter, with full names of its tables and functions.
 *
 * Spark would look for them in the current database of the query, and among its temporary views, instead of the
 * database that was current when the function was created.
 */
class FullNames extends AbstractFunction0 {
  private static final String CONFIG = "sqlConfig.";
  private static final Set OF_SPARK = new HashSet(Arrays.asList(new Object[] {"builtin", "session"}));

  private final SparkSession session;
  private final String text;
  private Boolean isQuery;
  private final Map properties;
  private final List context;
  private final TreeMap prefixes = new TreeMap();
  private final TreeMap functions = new TreeMap();

  /**
   * @param given the parts of a function, see described_function in functions.py
   * @param text the body, or the default of a parameter
   * @param isQuery true: the text is a query, false: an expression, null: another engine has not said it
   */
  FullNames(SparkSession session, Map given, String text, Boolean isQuery) {
    this.session = session;
    this.text = text;
    this.isQuery = isQuery;
    this.properties = (Map) given.get("properties");
    this.context = ownContext(session, (List) given.get("context"), (String) given.get("catalog"));
  }

  /** Return a catalog and a namespace; a catalog that the session lacks is the function's own, under another name. */
  private static List ownContext(SparkSession session, List context, String catalog) {
    ArrayList found = new ArrayList(context);
    if (!session.sessionState().catalogManager().isCatalogRegistered((String) context.get(0))) {
      found.set(0, catalog);
    }
    return found;
  }

  /** Return true if the text is a query, false if it is an expression. REQUIRES: `completed` has been called. */
  boolean isQuery() {
    return isQuery.booleanValue();
  }

  /**
   * Return the text with other names of the functions that are in a catalog of this connector.
   *
   * @param prefix the beginning of the other names; a number follows
   * @param calls receives the call of a function, with its full name, under its other name
   */
  String renamed(String prefix, Map calls) {
    completed();
    StringBuilder found = new StringBuilder(text);
    Iterator positions = functions.descendingMap().entrySet().iterator();
    while (positions.hasNext()) {
      Map.Entry entry = (Map.Entry) positions.next();
      int start = ((Integer) entry.getKey()).intValue();
      int end = text.indexOf('(', start);  // a name with a parenthesis in quotes fails to parse
      String name = prefix + calls.size();
      calls.put(name, entry.getValue());
      found.replace(start, end, name);
    }
    return found.toString();
  }

  /** Return the text, which is parsed with the settings that were in effect when the function was created. */
  String completed() {
    SQLConf settings = new SQLConf();
    Iterator entries = properties.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      String key = (String) entry.getKey();
      if (key.startsWith(CONFIG)) {
        settings.setConfString(key.substring(CONFIG.length()), (String) entry.getValue());
      }
    }
    return (String) SQLConf$.MODULE$.withExistingConf(settings, this);
  }

  public Object apply() {
    try {
      return completed(parsed(session.sessionState().sqlParser()));
    } catch (ParseException error) {
      Bridge.throwUnchecked(error);
      return null;
    }
  }

  private String completed(TreeNode parsed) {
    visit(parsed, new HashSet());
    StringBuilder found = new StringBuilder(text);
    Iterator positions = prefixes.descendingMap().entrySet().iterator();
    while (positions.hasNext()) {
      Map.Entry entry = (Map.Entry) positions.next();
      found.insert(((Integer) entry.getKey()).intValue(), (String) entry.getValue());
    }
    return found.toString();
  }

  private TreeNode parsed(ParserInterface parser) throws ParseException {
    if (isQuery == null) {
      try {
        TreeNode found = (TreeNode) parser.parseExpression(text);
        isQuery = Boolean.FALSE;
        return found;
      } catch (ParseException error) {
        isQuery = Boolean.TRUE;
      }
    }
    return isQuery.booleanValue() ? (TreeNode) parser.parseQuery(text) : (TreeNode) parser.parseExpression(text);
  }

  /** @param scope the names of the common table expressions that a node sees, in lower case */
  private void visit(TreeNode node, Set scope) {
    if (node instanceof UnresolvedRelation) {
      Seq names = ((UnresolvedRelation) node).multipartIdentifier();
      if (names.length() > 1 || !scope.contains(((String) names.head()).toLowerCase(Locale.ROOT))) {
        complete(node, names);
      }
    } else if (node instanceof UnresolvedFunction) {
      Seq names = ((UnresolvedFunction) node).nameParts();
      if (!isOfSpark(names)) {
        int at = complete(node, names);
        List full = new ArrayList(context.subList(0, missing(names)));
        full.addAll(CollectionConverters.asJava(names));
        if (Bridge.HANDLERS.containsKey(full.get(0))) {
          functions.put(Integer.valueOf(at), SessionNamesRule.with(node, "nameParts", PaimonFunctions.seq(full)));
        }
      }
    } else if (node.getClass().getSimpleName().contains("UnresolvedIdentifier")) {
      throw new UnsupportedOperationException("IDENTIFIER is not possible in a SQL function of a catalog: " + text);
    }
    Set inner = node instanceof UnresolvedWith ? visitCommon((UnresolvedWith) node, scope) : scope;
    List parts = parts(node);
    for (int i = 0; i < parts.size(); i++) {
      visit((TreeNode) parts.get(i), inner);
    }
  }

  /** Visit common table expressions: each sees the earlier ones. Return the names that the query sees. */
  private Set visitCommon(UnresolvedWith with, Set scope) {
    Set seen = new HashSet(scope);
    List relations = CollectionConverters.asJava(with.innerChildren());
    for (int i = 0; i < relations.size(); i++) {
      SubqueryAlias relation = (SubqueryAlias) relations.get(i);
      String name = relation.alias().toLowerCase(Locale.ROOT);
      if (with.allowRecursion()) {
        seen.add(name);
      }
      visit(relation, seen);
      seen.add(name);
    }
    return seen;
  }

  private static boolean isOfSpark(Seq names) {
    String first = (String) names.head();
    return names.length() == 1
        ? FunctionRegistry$.MODULE$.builtin().functionExists(new FunctionIdentifier(first))
        : names.length() == 2 && OF_SPARK.contains(first.toLowerCase(Locale.ROOT));
  }

  /** Return the number of parts of the context that a name lacks. */
  private int missing(Seq names) {
    String first = (String) names.head();
    boolean ofCatalog = names.length() > 1 && session.sessionState().catalogManager().isCatalogRegistered(first);
    if (ofCatalog && names.length() == 2) {
      throw new UnsupportedOperationException(
          "the body of a SQL function names " + names.mkString(".") + ", and there is also a catalog " + first
              + ": write the name with its catalog and database: " + text);
    }
    if (ofCatalog || names.length() > context.size()) {
      return 0;
    }
    return names.length() == 1 ? context.size() : 1;
  }

  /** Remember what the name of a table or of a function lacks. Return the position of the name. */
  private int complete(TreeNode node, Seq names) {
    String first = (String) names.head();
    StringBuilder prefix = new StringBuilder();
    for (int i = 0; i < missing(names); i++) {
      prefix.append(Trees.quoted((String) context.get(i))).append(".");
    }
    Option start = node.origin().startIndex();
    int at = start.isDefined() ? text.offsetByCodePoints(0, ((Integer) start.get()).intValue()) : text.length();
    if (!text.startsWith(Trees.quoted(first), at) && !text.regionMatches(true, at, first, 0, first.length())) {
      throw new UnsupportedOperationException(
          "the body of a SQL function names " + names.mkString(".")
              + " in a way that cannot be completed; write the name with its catalog and database: " + text);
    }
    prefixes.put(Integer.valueOf(at), prefix.toString());
    return at;
  }

  /** Return the children of a node, and the expressions and plans inside it, such as the table of a time travel. */
  private static List parts(TreeNode node) {
    ArrayList found = new ArrayList(CollectionConverters.asJava(node.children()));
    if (node instanceof QueryPlan) {
      found.addAll(CollectionConverters.asJava(((QueryPlan) node).expressions()));
    }
    for (int i = 0; i < node.productArity(); i++) {
      if (node.productElement(i) instanceof QueryPlan && !found.contains(node.productElement(i))) {
        found.add(node.productElement(i));
      }
    }
    return found;
  }
}
