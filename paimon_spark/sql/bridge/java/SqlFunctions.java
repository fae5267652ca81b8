package paimon.python;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.SQLFunctionExpression;
import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction;
import org.apache.spark.sql.catalyst.catalog.CatalogFunction;
import org.apache.spark.sql.catalyst.catalog.SQLFunction;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.catalog.UserDefinedFunction$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** The SQL functions of catalogs. Spark checks a definition, and Spark puts the body in the place of a call. */
public class SqlFunctions {
  /** The prefix of the properties in which Spark describes a SQL function; it has no prefix for others. */
  private static final String PREFIX = "sqlFunction.";

  /** More levels of calls are a sign of functions that call each other without end. */
  private static final int MOST_LEVELS = 20;

  /** The parser settings of a definition: the parser of Python has rewritten its text for their defaults. */
  private static final String[] PARSER_SETTINGS = {
    "spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.parser.escapedStringLiterals"
  };

  /** The keys of the default in the metadata of a parameter. */
  private static final String[] DEFAULTS = {"default", "CURRENT_DEFAULT"};

  /** The beginning of the names of the temporary functions that stand for others. See also functions.py. */
  private static final String CALL = "paimon_call_";

  /** The catalog, database and name of the function that this thread defines; null: it defines none. */
  private static final ThreadLocal DEFINED = new ThreadLocal();

  private SqlFunctions() {}

  /** Return true if a name without a database is of a function of Spark or of a temporary function. */
  public static boolean isOfSession(SparkSession session, String name) {
    SessionCatalog catalog = session.sessionState().catalog();
    return catalog.lookupBuiltinOrTempFunction(name).isDefined()
        || catalog.lookupBuiltinOrTempTableFunction(name).isDefined();
  }

  /**
   * Let Spark check a definition, and return its parts as JSON; null: it defines a table function.
   *
   * Spark keeps a checked definition in its own catalog, or as a temporary function: here, of a clone of the session.
   *
   * @param text a statement that defines the temporary function `name[2]`
   * @param name the catalog, database and name of the function; its body may not call it
   */
  public static String checked(SparkSession session, String text, String[] name) {
    SparkSession clone = session.cloneSession();
    CatalogManager current = session.sessionState().catalogManager();
    clone.sessionState().catalogManager().setCurrentCatalog(current.currentCatalog().name());
    clone.sessionState().catalogManager().setCurrentNamespace(current.currentNamespace());
    for (int i = 0; i < PARSER_SETTINGS.length; i++) {
      clone.sessionState().conf().setConfString(PARSER_SETTINGS[i], "false");
    }
    LogicalPlan command = parsed(clone, text);
    DEFINED.set(name);
    try {
      clone.sql(withCalls(clone, command, text, name[0]));
    } finally {
      DEFINED.remove();
    }
    SessionCatalog catalog = clone.sessionState().catalog();
    Option table = catalog.lookupBuiltinOrTempTableFunction(name[2]);
    if (table.isDefined() && SQLFunction.isSQLFunction(((ExpressionInfo) table.get()).getClassName())) {
      return null;
    }
    ExpressionInfo found = (ExpressionInfo) catalog.lookupBuiltinOrTempFunction(name[2]).get();
    if (!SQLFunction.isSQLFunction(found.getClassName())) {
      throw new UnsupportedOperationException(
          "function " + name[2] + " cannot be created: Spark has a function of this name; use another name");
    }
    SQLFunction function = function(clone, (Map) Trees.parsed(found.getUsage()), name[1], name[2]);
    return described(function, command, name[2]);
  }

  private static LogicalPlan parsed(SparkSession session, String text) {
    try {
      return session.sessionState().sqlParser().parsePlan(text);
    } catch (ParseException error) {
      Bridge.throwUnchecked(error);
      return null;
    }
  }

  /**
   * Return a definition in which temporary functions stand for the functions of catalogs that its body calls.
   *
   * Spark looks for calls without end among the functions of its own catalog, and raises an error for other catalogs.
   * See `checkNotDefined`.
   */
  private static String withCalls(SparkSession session, LogicalPlan command, String text, String catalog) {
    CatalogManager current = session.sessionState().catalogManager();
    ArrayList context = new ArrayList(Arrays.asList(current.currentNamespace()));
    context.add(0, current.currentCatalog().name());
    LinkedHashMap given = new LinkedHashMap();
    given.put("properties", new LinkedHashMap());
    given.put("context", context);
    given.put("catalog", catalog);
    Object query = element(command, "queryText");
    String body = (String) (query == null ? element(command, "exprText") : query);
    LinkedHashMap calls = new LinkedHashMap();
    String renamed = new FullNames(session, given, body, Boolean.valueOf(query != null)).renamed(CALL, calls);
    Iterator names = calls.entrySet().iterator();
    while (names.hasNext()) {
      Map.Entry entry = (Map.Entry) names.next();
      String name = (String) entry.getKey();
      Call call = new Call((TreeNode) entry.getValue());
      session.sessionState().functionRegistry().createOrReplaceTempFunction(name, call, "scala_udf");
    }
    return text.substring(0, text.lastIndexOf(body)) + renamed;
  }

  /** Return the value of an option among the parts of a statement; null: the statement does not have it. */
  private static Object element(LogicalPlan command, String name) {
    for (int i = 0; i < command.productArity(); i++) {
      if (command.productElementName(i).equals(name)) {
        return value((Option) command.productElement(i));
      }
    }
    throw new UnsupportedOperationException("this version of Spark does not say the " + name + " of a function");
  }

  private static String described(SQLFunction function, LogicalPlan command, String name) {
    LinkedHashMap parts = new LinkedHashMap();
    Option parameters = function.inputParam();
    parts.put("parameters", (parameters.isDefined() ? (StructType) parameters.get() : new StructType()).json());
    parts.put("returns", new StructType().add(name, function.getScalarFuncReturnType()).json());
    parts.put("expression", element(command, "exprText"));
    parts.put("query", element(command, "queryText"));
    parts.put("comment", value(function.comment()));
    parts.put("deterministic", value(function.deterministic()));
    parts.put("contains_sql", value(function.containsSQL()));
    parts.put("properties", CollectionConverters.asJava(function.properties()));
    return Trees.json(parts);
  }

  private static Object value(Option option) {
    return option.isDefined() ? option.get() : null;
  }

  /** Throw an exception if this thread defines the function that Spark looks for. */
  static void checkNotDefined(String catalog, Identifier function) {
    String[] defined = (String[]) DEFINED.get();
    if (defined != null
        && defined[0].equals(catalog)
        && Arrays.equals(function.namespace(), new String[] {defined[1]})
        && defined[2].equals(function.name())) {
      String name = catalog + "." + defined[1] + "." + defined[2];
      throw new UnsupportedOperationException("function " + name + " calls itself, which is not possible in SQL");
    }
  }

  /**
   * Return the expression that Spark replaces with the body of a function.
   *
   * @param given the parts of the function, see described_function in functions.py
   */
  static Expression call(Map given, List arguments) {
    String name = given.get("catalog") + "." + given.get("database") + "." + given.get("name");
    SQLFunction function = parsed((SparkSession) SparkSession.active(), given);
    DataType type = function.getScalarFuncReturnType();
    return new SQLFunctionExpression(name, function, PaimonFunctions.seq(arguments), Option.apply(type));
  }

  /** Throw an exception if a plan has calls inside the bodies of too many functions. */
  static void checkLevels(LogicalPlan plan) {
    if (plan.containsPattern(TreePattern$.MODULE$.SQL_FUNCTION_EXPRESSION())) {
      checkLevels(plan, 0);
    }
  }

  private static void checkLevels(TreeNode node, int level) {
    int inside = node instanceof SQLScalarFunction ? level + 1 : level;
    if (inside > MOST_LEVELS) {
      throw new UnsupportedOperationException(
          "function " + ((SQLScalarFunction) node).function().name() + " is called inside the bodies of " + MOST_LEVELS
              + " functions: functions may not call each other in a circle");
    }
    ArrayList parts = new ArrayList(CollectionConverters.asJava(node.children()));
    if (node instanceof LogicalPlan) {
      parts.addAll(CollectionConverters.asJava(((LogicalPlan) node).expressions()));
    }
    for (int i = 0; i < parts.size(); i++) {
      checkLevels((TreeNode) parts.get(i), inside);
    }
  }

  private static SQLFunction parsed(SparkSession session, Map given) {
    LinkedHashMap usage = new LinkedHashMap((Map) given.get("properties"));
    StructField[] parameters = Trees.struct((String) given.get("parameters")).fields();
    for (int i = 0; i < parameters.length; i++) {
      parameters[i] = completed(session, given, parameters[i]);
    }
    if (parameters.length > 0) {
      usage.put(PREFIX + "inputParam", new StructType(parameters).toDDL());
    }
    usage.put(PREFIX + "returnType", DataType.fromJson((String) given.get("returns")).sql());
    FullNames body = new FullNames(session, given, (String) given.get("text"), (Boolean) given.get("is_query"));
    String text = body.completed();
    usage.put(PREFIX + (body.isQuery() ? "query" : "expression"), text);
    usage.put(PREFIX + "deterministic", given.get("deterministic").toString());
    if (given.get("contains_sql") != null) {
      usage.put(PREFIX + "containsSQL", given.get("contains_sql").toString());
    }
    usage.put(PREFIX + "isTableFunc", "false");
    return function(session, usage, (String) given.get("database"), (String) given.get("name"));
  }

  /** Return the function that the properties of its entry in Spark's own catalog describe. */
  private static SQLFunction function(SparkSession session, Map properties, String database, String name) {
    FunctionIdentifier identifier = new FunctionIdentifier(name, Option.apply(database));
    scala.collection.immutable.Map map =
        (scala.collection.immutable.Map) Map$.MODULE$.from(CollectionConverters.asScala(properties));
    Seq resources = UserDefinedFunction$.MODULE$.propertiesToFunctionResources(map, identifier);
    CatalogFunction entry = new CatalogFunction(identifier, PREFIX, resources);
    return SQLFunction.fromCatalogFunction(entry, session.sessionState().sqlParser());
  }

  /** Return a parameter whose default has full names. */
  private static StructField completed(SparkSession session, Map given, StructField parameter) {
    Metadata metadata = parameter.metadata();
    MetadataBuilder found = new MetadataBuilder().withMetadata(metadata);
    for (int i = 0; i < DEFAULTS.length; i++) {
      if (metadata.contains(DEFAULTS[i])) {
        FullNames names = new FullNames(session, given, metadata.getString(DEFAULTS[i]), Boolean.FALSE);
        found.putString(DEFAULTS[i], names.completed());
      }
    }
    return new StructField(parameter.name(), parameter.dataType(), parameter.nullable(), found.build());
  }
}

/** Calls a function of a catalog in the place of a temporary function. */
class Call extends AbstractFunction1 {
  private final TreeNode function;

  Call(TreeNode function) {
    this.function = function;
  }

  public Object apply(Object arguments) {
    return function.withNewChildren((Seq) arguments);
  }
}
