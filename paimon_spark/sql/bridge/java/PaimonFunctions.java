package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.ColumnNodeToExpressionConverter$;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/** The table functions of a session, and the arguments of functions. */
public class PaimonFunctions {
  /** The handler of the table functions; its method "changes" returns the input of PaimonTableFunction. */
  static volatile Object handler;

  static volatile String[] names = new String[0];

  /** Set the handler of the table functions, and their names. */
  public static void handleWith(Object handler, String[] names) {
    PaimonFunctions.handler = handler;
    PaimonFunctions.names = names;
  }

  /** Return the table functions as Spark's extensions take them. */
  static List descriptions() {
    ArrayList found = new ArrayList();
    for (int i = 0; i < names.length; i++) {
      FunctionIdentifier identifier = new FunctionIdentifier(names[i]);
      found.add(
          new Tuple3(
              identifier, new ExpressionInfo("paimon.python", names[i]), new PaimonTableFunction(names[i])));
    }
    return found;
  }

  /** Return the value of an argument; throw IllegalArgumentException if it is not a constant. */
  static Object constant(String function, int position, Expression argument) {
    if (!argument.foldable()) {
      throw new IllegalArgumentException(
          function + ": argument " + (position + 1) + " is " + argument.sql() + ", it must be a constant");
    }
    Object value = ((Expression) argument.transformDown(new Replacements())).eval(null);
    return value instanceof UTF8String ? value.toString() : value;
  }

  static Seq seq(List items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}

/** Replaces expressions that Spark evaluates in another form. */
class Replacements extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof RuntimeReplaceable;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    Object found = node;
    while (found instanceof RuntimeReplaceable) {
      found = ((RuntimeReplaceable) found).replacement();
    }
    return found == node ? otherwise.apply(node) : found;
  }
}

/** Replaces a call with a relation: a read with options, or the rows of one tag that another tag lacks. */
class PaimonTableFunction extends AbstractFunction1 {
  private final String name;

  PaimonTableFunction(String name) {
    this.name = name;
  }

  public Object apply(Object arguments) {
    List given = CollectionConverters.asJava((Seq) arguments);
    Object[] values = new Object[given.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = PaimonFunctions.constant(name, i, (Expression) given.get(i));
    }
    Object[] found = (Object[]) Bridge.call(PaimonFunctions.handler, "changes", new Object[] {name, values});
    List parts = (List) found[0];
    if (found[1] != null) {
      SparkSession session = (SparkSession) SparkSession.active();
      return PaimonRelationRule.resolved(session, relation(parts, (Map) found[1]));
    }
    return new Except(at(parts, (String) found[3]), at(parts, (String) found[2]), true);
  }

  private static LogicalPlan relation(List parts, Map options) {
    return new UnresolvedRelation(PaimonFunctions.seq(parts), new CaseInsensitiveStringMap(options), false);
  }

  private static LogicalPlan at(List parts, String tag) {
    return new RelationTimeTravel(relation(parts, new HashMap()), Option.empty(), Option.apply(tag));
  }
}

/** Replaces calls of the catalog's functions with Spark expressions, which Python builds. */
class PaimonFunctionRule extends Rule {
  public TreeNode apply(TreeNode plan) {
    SqlFunctions.checkLevels((LogicalPlan) plan);
    return ((LogicalPlan) plan).resolveExpressions(new PaimonCalls());
  }
}

class PaimonCalls extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof ApplyFunctionExpression
        && ((ApplyFunctionExpression) node).function() instanceof PaimonFunction
        && ((ApplyFunctionExpression) node).childrenResolved();
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    ApplyFunctionExpression call = (ApplyFunctionExpression) node;
    PaimonFunction function = (PaimonFunction) call.function();
    List children = CollectionConverters.asJava(call.children());
    if (function instanceof SqlFunction) {
      return ((SqlFunction) function).call(children);
    }
    Object[] constants = new Object[Math.min(function.constants, children.size())];
    for (int i = 0; i < constants.length; i++) {
      constants[i] = PaimonFunctions.constant(function.name(), i, (Expression) children.get(i));
    }
    Object[] columns = new Object[children.size()];
    String[] types = new String[columns.length];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = ExpressionUtils.column((Expression) children.get(i));
      types[i] = ((Expression) children.get(i)).dataType().sql();
    }
    Object found = Bridge.call(function.handler, "expression", new Object[] {constants, columns, types});
    return ColumnNodeToExpressionConverter$.MODULE$.apply(((Column) found).node());
  }
}
