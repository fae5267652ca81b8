package paimon.python;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.AbstractSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Replaces a scan of a few rows, from metadata or read by the driver, with the rows, and computes the query from them.
 *
 * Spark runs a job for a projection or a filter of such a scan, which takes longer than the rest of the query. It runs
 * no job for local rows alone.
 */
class PaimonLocalRule extends Rule {
  /** Set in a thread that explains a statement: its plan keeps the scans of the driver, which describe themselves. */
  static final ThreadLocal EXPLAINS = new ThreadLocal();

  public TreeNode apply(TreeNode plan) {
    LogicalPlan local = withRows((LogicalPlan) plan);
    for (LogicalPlan last = (LogicalPlan) plan; local != last; ) {
      last = local;
      local = (LogicalPlan) ConvertToLocalRelation$.MODULE$.apply(last);  // one node above the rows at a time
    }
    return local;
  }

  private static LogicalPlan withRows(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation) {
      InternalRow[] rows = rows(((DataSourceV2ScanRelation) plan).scan());
      return rows == null ? plan : local(((DataSourceV2ScanRelation) plan).output(), rows);
    }
    if (plan instanceof Filter && PaimonDivideRule.isOfJoin(((Filter) plan).condition())) {
      return plan;
    }
    List children = CollectionConverters.asJava((Seq) plan.children());
    ArrayList replaced = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < children.size(); i++) {
      LogicalPlan child = (LogicalPlan) children.get(i);
      replaced.add(withRows(child));
      changed |= replaced.get(i) != child;
    }
    return changed ? (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(replaced).toSeq()) : plan;
  }

  private static InternalRow[] rows(Scan scan) {
    if (scan instanceof PaimonLocalScan) {
      return ((PaimonLocalScan) scan).rows();
    }
    return scan instanceof PaimonScan && EXPLAINS.get() == null ? ((PaimonScan) scan).localRows() : null;
  }

  /** Return rows that the driver has read as a plan with columns of its own. */
  static LogicalPlan local(RowsScan scan) {
    return local(DataTypeUtils$.MODULE$.toAttributes(scan.readSchema()), scan.rows());
  }

  /** Versions of Spark differ in the last fields of a local relation, which keep their defaults. */
  private static LogicalPlan local(Seq output, InternalRow[] rows) {
    LocalRelation empty = LocalRelation$.MODULE$.apply(output);
    Object[] fields = new Object[empty.productArity()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = empty.productElement(i);
    }
    fields[1] = new LocalRows(rows);
    return (LogicalPlan) empty.makeCopy(fields);
  }
}

/**
 * Rows of a local relation, whose `map` computes the rows when they are first needed.
 *
 * Spark's rules look for expressions in every field of a node, also in its rows: they map the rows to themselves, and
 * drop the result. For a hundred thousand rows, this takes longer than the query.
 */
class LocalRows extends AbstractSeq {
  private Object[] rows;
  private LocalRows source;
  private Function1 function;
  private final int length;

  LocalRows(InternalRow[] rows) {
    this.rows = rows;
    length = rows.length;
  }

  private LocalRows(LocalRows source, Function1 function) {
    this.source = source;
    this.function = function;
    length = source.length;
  }

  public Object map(Function1 function) {
    return new LocalRows(this, function);
  }

  public Object apply(int number) {
    return values()[number];
  }

  public Object apply(Object number) {
    return values()[((Integer) number).intValue()];
  }

  public int length() {
    return length;
  }

  public int knownSize() {
    return length;
  }

  public Iterator iterator() {
    return CollectionConverters.asScala(Arrays.asList(values()).iterator());
  }

  private synchronized Object[] values() {
    if (rows == null) {
      Object[] given = source.values();
      Object[] mapped = new Object[length];
      for (int i = 0; i < length; i++) {
        mapped[i] = function.apply(given[i]);
      }
      rows = mapped;
      source = null;
      function = null;
    }
    return rows;
  }
}
