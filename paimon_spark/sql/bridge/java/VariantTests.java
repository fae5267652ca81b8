package paimon.python;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.VariantType;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Filters on values in variants, with columns in the place of the values, so that Spark translates them.
 *
 * The name of such a column has the names of the column of variants and of its fields, the path, and the type, as JSON.
 */
class VariantTests {
  private static final String PREFIX = "\0variant_get";

  private VariantTests() {}

  /** The filter with names for the values at constant paths; the same object if it tests no such values. */
  static Expression named(Expression expression) {
    if (expression instanceof VariantGet) {
      return named((VariantGet) expression, expression);
    }
    if (expression instanceof Cast && ((Cast) expression).child() instanceof VariantGet) {  // such as v:a::int
      VariantGet get = (VariantGet) ((Cast) expression).child();
      return get.targetType() instanceof VariantType ? named(get, expression) : expression;
    }
    List children = CollectionConverters.asJava((Seq) expression.children());
    ArrayList found = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < children.size(); i++) {
      found.add(named((Expression) children.get(i)));
      changed |= found.get(i) != children.get(i);
    }
    return changed ? (Expression) expression.withNewChildren(CollectionConverters.asScala(found).toSeq()) : expression;
  }

  /** The name for a value of the type of an expression, or the expression if its values cannot be compared. */
  private static Expression named(VariantGet get, Expression expression) {
    DataType type = expression.dataType();
    ArrayList parts = new ArrayList();
    Expression inside = get.child();
    while (inside instanceof GetStructField) {
      parts.add(0, ((GetStructField) inside).childSchema().fields()[((GetStructField) inside).ordinal()].name());
      inside = ((GetStructField) inside).child();
    }
    String path = inside instanceof Attribute && isComparable(type) ? VariantPaths.path(get) : null;
    if (path == null) {
      return expression;
    }
    parts.add(0, ((Attribute) inside).name());
    String name = PREFIX + Trees.json(new Object[] {parts, path, type.sql()});
    return new AttributeReference(
        name, type, true, Metadata.empty(), NamedExpression$.MODULE$.newExprId(), (Seq) Nil$.MODULE$);
  }

  /** True for types whose values Python compares as Spark does. */
  private static boolean isComparable(DataType type) {
    return type instanceof NumericType
        || type instanceof BooleanType
        || type instanceof DateType
        || type instanceof StringType && type.sql().equals("STRING");
  }
}
