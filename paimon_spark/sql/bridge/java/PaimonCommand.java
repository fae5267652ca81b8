package paimon.python;

import java.util.ArrayList;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.execution.command.ResetCommand;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A statement that Python runs, once, in the session that executes it. EXPLAIN shows it and runs nothing.
 *
 * ResetCommand is a small Spark command that no rule transforms; only its infrastructure is inherited.
 */
public class PaimonCommand extends ResetCommand {
  private final String title;
  private final Object handler;
  private final String method;
  private final Object argument;
  private final StructType schema;
  private final Seq attributes;
  private final LogicalPlan shown;

  /**
   * @param method a method of the handler that takes the session and the argument, and returns an array of rows, which
   *     are arrays
   * @param schema the columns of the rows
   * @param shown a plan for EXPLAIN, or null
   */
  public PaimonCommand(
      String title, Object handler, String method, Object argument, StructType schema, LogicalPlan shown) {
    super(Option.empty());
    this.title = title;
    this.handler = handler;
    this.method = method;
    this.argument = argument;
    this.schema = schema;
    this.attributes = DataTypeUtils$.MODULE$.toAttributes(schema);
    this.shown = shown;
  }

  public Seq run(SparkSession session) {
    Object[] found = (Object[]) Bridge.call(handler, method, new Object[] {session, argument});
    ArrayList rows = new ArrayList();
    for (int i = 0; i < found.length; i++) {
      Object[] values = (Object[]) ((Object[]) found[i]).clone();
      for (int j = 0; j < values.length; j++) {
        if (values[j] instanceof Number && schema.fields()[j].dataType().equals(DataTypes.LongType)) {
          values[j] = Long.valueOf(((Number) values[j]).longValue());
        }
      }
      rows.add(RowFactory.create(values));
    }
    return CollectionConverters.asScala(rows).toSeq();
  }

  /** Return the writer of the rows of a dynamic overwrite, for EXPLAIN; null for other statements. */
  String explained() {
    if (!(argument instanceof OverwritePlan)) {
      return null;
    }
    OverwritePlan write = (OverwritePlan) argument;
    return (String) Bridge.call(handler, "explain_write", new Object[] {write.columns(), write.options()});
  }

  public Seq output() {
    return attributes;
  }

  public Seq innerChildren() {
    ArrayList plans = new ArrayList();
    if (shown != null) {
      plans.add(shown);
    }
    return CollectionConverters.asScala(plans).toSeq();
  }

  public LogicalPlan clone() {
    return this;
  }

  public TreeNode makeCopy(Object[] arguments) {
    return this;
  }

  public String nodeName() {
    return title;
  }

  public String simpleString(int maxFields) {
    return title;
  }

  public boolean equals(Object other) {
    return this == other;
  }

  public int hashCode() {
    return System.identityHashCode(this);
  }
}
