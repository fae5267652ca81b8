package paimon.python;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.HashMap;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Spark exceptions whose constructors need Scala collections. */
public class PaimonErrors {
  /** Return the syntax error for a text. */
  public static ParseException syntax(String text, int line, int column, String near) {
    HashMap parameters = new HashMap();
    parameters.put("error", near);
    parameters.put("hint", "");
    return new ParseException(
        Option.apply(text), origin(line, column), "PARSE_SYNTAX_ERROR",
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters)));
  }

  /** Return the error for a missing table, which, unlike NoSuchTableException, ends Spark's search for it. */
  public static AnalysisException noTable(String name, String current) {
    HashMap parameters = new HashMap();
    parameters.put("relationName", name);
    parameters.put("searchPath", "[" + current + "]");
    return new AnalysisException(
        "TABLE_OR_VIEW_NOT_FOUND",
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters)));
  }

  /** Return the error for a view whose query reads the view again. */
  public static AnalysisException recursive(String view, String cycle) {
    HashMap parameters = new HashMap();
    parameters.put("viewIdent", view);
    parameters.put("newPath", cycle);
    return new AnalysisException(
        "RECURSIVE_VIEW",
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters)));
  }

  /** Return the error for a view in a statement that supports only tables. */
  public static AnalysisException noView(String operation, String view) {
    HashMap parameters = new HashMap();
    parameters.put("operation", operation);
    parameters.put("viewName", "`" + view + "`");
    return new AnalysisException(
        "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters)));
  }

  /** Return a position. The fields after line and column, whose number differs between versions of Spark, are empty. */
  private static Origin origin(int line, int column) {
    Constructor[] constructors = Origin.class.getConstructors();
    Object[] arguments = new Object[constructors[0].getParameterCount()];
    Arrays.fill(arguments, Option.empty());
    arguments[0] = Option.apply(Integer.valueOf(line));
    arguments[1] = Option.apply(Integer.valueOf(column));
    try {
      return (Origin) constructors[0].newInstance(arguments);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
