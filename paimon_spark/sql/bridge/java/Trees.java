package paimon.python;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Expressions of Spark's connector interface as JSON, and Java's collections: one text instead of a call for each node. */
public class Trees {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final String UNKNOWN = "?";

  static String json(Object tree) {
    try {
      return MAPPER.writeValueAsString(tree);
    } catch (java.io.IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** Return the name of a column as Spark parses it in an expression. */
  static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  static Object parsed(String json) {
    try {
      return MAPPER.readValue(json, Object.class);
    } catch (java.io.IOException error) {
      throw new IllegalArgumentException(error);
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
      node.put("op", known ? ((GeneralScalarExpression) expression).name() : UNKNOWN);
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

  static Object of(SortOrder order, int rows) {
    LinkedHashMap node = new LinkedHashMap();
    node.put("by", of(order.expression()));
    node.put("descending", Boolean.valueOf(order.direction() == SortDirection.DESCENDING));
    node.put("nulls_first", Boolean.valueOf(order.nullOrdering() == NullOrdering.NULLS_FIRST));
    node.put("rows", Integer.valueOf(rows));
    return node;
  }

  /** Return true if metadata may have the results of all functions of an aggregation. */
  static boolean areOfMetadata(Aggregation aggregation) {
    AggregateFunc[] asked = aggregation.aggregateExpressions();
    for (int i = 0; i < asked.length; i++) {
      if (name(asked[i]).equals(UNKNOWN)) {
        return false;
      }
    }
    return true;
  }

  private static Object of(AggregateFunc function) {
    LinkedHashMap node = new LinkedHashMap();
    node.put("name", name(function));
    node.put("args", list(function.children()));
    return node;
  }

  private static String name(AggregateFunc function) {
    if (function instanceof CountStar) {
      return "count(*)";
    }
    if (function instanceof Count && !((Count) function).isDistinct()) {
      return "count";
    }
    if (function instanceof Min) {
      return "min";
    }
    return function instanceof Max ? "max" : UNKNOWN;
  }

  static StructType struct(String json) {
    return (StructType) DataType.fromJson(json);
  }

  /** The options of a statement. */
  static String of(CaseInsensitiveStringMap options) {
    return json(options.asCaseSensitiveMap());
  }

  /** The database and the name of a table. */
  public static String parts(Identifier identifier) {
    ArrayList names = new ArrayList(java.util.Arrays.asList(identifier.namespace()));
    names.add(identifier.name());
    return json(names);
  }

  /** The texts of a map, as a JSON object. */
  public static String texts(java.util.Map values) {
    return json(values);
  }

  /** An ArrayList or a HashMap, for Python. */
  public static Object collection(String json) {
    return parsed(json);
  }

  /** An array, for Python. */
  public static String[] strings(String json) {
    return (String[]) ((List) parsed(json)).toArray(new String[0]);
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
