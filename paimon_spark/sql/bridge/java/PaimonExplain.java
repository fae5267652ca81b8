package paimon.python;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.ExecutableDuringAnalysis;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.ExplainMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** EXPLAIN of a Spark statement, which appends the writer and the explanations of Paimon scans to the plan. */
public class PaimonExplain extends ExplainCommand {
  public PaimonExplain(LogicalPlan plan, ExplainMode mode) {
    super(plan, mode);
  }

  /** Replace Spark's EXPLAIN with ours; return any other statement unchanged. */
  static LogicalPlan of(LogicalPlan plan) {
    if (!plan.getClass().equals(ExplainCommand.class)) {
      return plan;
    }
    ExplainCommand found = (ExplainCommand) plan;
    if (found.logicalPlan() instanceof ExecutableDuringAnalysis) {
      return plan;  // a CALL, which Spark alone can analyse without running it
    }
    return new PaimonExplain(found.logicalPlan(), found.mode());
  }

  public Seq run(org.apache.spark.sql.SparkSession session) {
    String text;
    LogicalPlan optimized;
    String writer = null;
    PaimonLocalRule.EXPLAINS.set(Boolean.TRUE);
    try {
      QueryExecution execution =
          ((org.apache.spark.sql.classic.SparkSession) session)
              .sessionState()
              .executePlan(logicalPlan(), CommandExecutionMode$.MODULE$.SKIP());
      text = execution.explainString(mode());
      optimized = execution.optimizedPlan();
      writer = writer(optimized);
    } catch (Exception error) {
      return super.run(session);  // the rows report the error
    } finally {
      PaimonLocalRule.EXPLAINS.remove();
    }
    if (writer != null) {
      text = text.trim() + "\n\n== Paimon Write ==\n" + writer;
    }
    LinkedHashSet explained = new LinkedHashSet();
    collect(optimized, explained);
    if (!explained.isEmpty()) {
      text = text.trim() + "\n\n== Paimon Scans ==\n" + String.join("\n\n", explained);
    }
    ArrayList rows = new ArrayList();
    rows.add(RowFactory.create(new Object[] {text}));
    return CollectionConverters.asScala(rows).toSeq();
  }

  /** Return the writer of a statement that writes rows; null for other statements. */
  private static String writer(LogicalPlan plan) {
    if (plan instanceof PaimonCommand) {
      return ((PaimonCommand) plan).explained();
    }
    Option write = Option.empty();
    if (plan instanceof AppendData) {
      write = ((AppendData) plan).write();
    } else if (plan instanceof OverwriteByExpression) {
      write = ((OverwriteByExpression) plan).write();
    }
    return write.isDefined() && write.get() instanceof PaimonWrite ? ((PaimonWrite) write.get()).explained() : null;
  }

  /** Add the explanations of the scans of a plan and of its subqueries; equal scans are explained once. */
  private static void collect(LogicalPlan plan, LinkedHashSet found) {
    Iterator leaves = CollectionConverters.asJava((Seq) plan.collectLeaves()).iterator();
    while (leaves.hasNext()) {
      Object leaf = leaves.next();
      if (leaf instanceof DataSourceV2ScanRelation && ((DataSourceV2ScanRelation) leaf).scan() instanceof PaimonScan) {
        String text = ((PaimonScan) ((DataSourceV2ScanRelation) leaf).scan()).explained();
        if (text != null) {
          found.add(text);
        }
      }
    }
    Iterator others = CollectionConverters.asJava((Seq) plan.subqueriesAll()).iterator();
    while (others.hasNext()) {
      collect((LogicalPlan) others.next(), found);
    }
  }

  /** Spark binds the parameters of the statement. */
  public LogicalPlan withTransformedSupervisedPlan(Function1 transformer) {
    return new PaimonExplain((LogicalPlan) transformer.apply(logicalPlan()), mode());
  }

  public String nodeName() {
    return "ExplainCommand";
  }
}
