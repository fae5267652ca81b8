package paimon.python;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;

/** Expressions of Spark's connector interface as JSON: one text instead of a call from Python for each node. */
class Trees {
  static String json(Object tree) {
    try {
      return new ObjectMapper().writeValueAsString(tree);
    } catch (java.io.IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  static Object of(Expression expression) {
    LinkedHashMap node = new LinkedHashMap();
    if (expression instanceof NamedReference) {
      node.put("column", ((NamedReference) expression).fieldNames());
    } else if (expression instanceof Literal) {
      Literal literal = (Literal) expression;
      node.put("type", literal.dataType().typeName());
      node.put("value", text(literal.value()));
    } else if (expression instanceof Cast) {
      Cast cast = (Cast) expression;
      node.put("op", "CAST");
      node.put("type", cast.dataType().typeName());
      node.put("args", list(new Expression[] {cast.expression()}));
    } else {
      boolean known = expression instanceof GeneralScalarExpression;
      node.put("op", known ? ((GeneralScalarExpression) expression).name() : "?");
      node.put("args", list(expression.children()));
    }
    return node;
  }

  static Object of(Aggregation aggregation) {
    ArrayList functions = new ArrayList();
    AggregateFunc[] asked = aggregation.aggregateExpressions();
    for (int i = 0; i < asked.length; i++) {
      functions.add(of(asked[i]));
    }
    LinkedHashMap node = new LinkedHashMap();
    node.put("functions", functions);
    node.put("groups", list(aggregation.groupByExpressions()));
    return node;
  }

  private static Object of(AggregateFunc function) {
    LinkedHashMap node = new LinkedHashMap();
    String name = "?";
    if (function instanceof CountStar) {
      name = "count(*)";
    } else if (function instanceof Count && !((Count) function).isDistinct()) {
      name = "count";
    } else if (function instanceof Min) {
      name = "min";
    } else if (function instanceof Max) {
      name = "max";
    }
    node.put("name", name);
    node.put("args", list(function.children()));
    return node;
  }

  private static List list(Expression[] expressions) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < expressions.length; i++) {
      found.add(of(expressions[i]));
    }
    return found;
  }

  private static String text(Object value) {
    if (value == null) {
      return null;
    }
    return value instanceof byte[] ? HexFormat.of().formatHex((byte[]) value) : value.toString();
  }
}
