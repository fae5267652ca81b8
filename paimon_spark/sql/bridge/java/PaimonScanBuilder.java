package paimon.python;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The pushdowns of a scan, from which Python builds the scan.
 *
 * Filters arrive as Spark's own expressions. A native scan uses them unchanged; Python gets them as trees. Spark
 * evaluates a filter again unless Python reports that partitions alone decide it.
 */
class PaimonScanBuilder
    implements SupportsPushDownRequiredColumns,
        SupportsPushDownCatalystFilters,
        SupportsPushDownAggregates,
        SupportsPushDownLimit,
        SupportsPushDownTopN {
  private final Object handler;
  private final CaseInsensitiveStringMap options;
  private final boolean mayDecide;
  private StructType columns;
  private Expression[] filters = new Expression[0];
  private Predicate[] translated = new Predicate[0];
  private String trees = "[]";
  private int limit = -1;
  private String order;
  private String refused;
  private PaimonLocalScan answer;

  PaimonScanBuilder(Object handler, CaseInsensitiveStringMap options) {
    this(handler, options, true);
  }

  /** @param mayDecide false if the table has no partitions, whose values could decide a filter */
  PaimonScanBuilder(Object handler, CaseInsensitiveStringMap options, boolean mayDecide) {
    this.handler = handler;
    this.options = options;
    this.mayDecide = mayDecide;
  }

  public void pruneColumns(StructType required) {
    columns = required;
  }

  public Seq pushFilters(Seq offered) {
    List given = CollectionConverters.asJava(offered);
    filters = (Expression[]) given.toArray(new Expression[0]);
    ArrayList predicates = new ArrayList();
    for (int i = 0; i < filters.length; i++) {
      Option found = translated(filters[i]);
      if (found.isDefined() && isPrintable(found.get())) {
        predicates.add(found.get());
      }
    }
    translated = (Predicate[]) predicates.toArray(new Predicate[0]);
    trees = trees(given);
    if (!mayDecide) {
      return offered;
    }
    String decided = (String) Bridge.call(handler, "decided_filters", new Object[] {trees});
    ArrayList remaining = new ArrayList();
    for (int i = 0; i < filters.length; i++) {
      if (decided.charAt(i) != '1') {
        remaining.add(filters[i]);
      }
    }
    return CollectionConverters.asScala(remaining).toSeq();
  }

  /** Spark's filters as trees; null for a filter without a tree. */
  static String trees(List filters) {
    ArrayList described = new ArrayList();
    for (int i = 0; i < filters.size(); i++) {
      Option found = translated(VariantTests.named((Expression) filters.get(i)));
      described.add(found.isDefined() ? Trees.of((Predicate) found.get()) : null);
    }
    return Trees.json(described);
  }

  /** Spark's translation of a filter; empty if Spark cannot express it, or if its translation fails. */
  private static Option translated(Expression filter) {
    if (!filter.deterministic()) {
      return Option.empty();
    }
    try {
      return DataSourceV2Strategy$.MODULE$.translateFilterV2(filter);
    } catch (AssertionError failed) { // see PaimonTranslationRule
      return Option.empty();
    }
  }

  /** False if the text of a filter, which Spark logs, fails: in Spark 4.1, that of a NULL of type BINARY. */
  private static boolean isPrintable(Object filter) {
    try {
      return filter.toString() != null;
    } catch (AssertionError failed) {
      return false;
    }
  }

  /** The filters for Spark's log and EXPLAIN. */
  public Predicate[] pushedFilters() {
    return translated;
  }

  public boolean supportCompletePushDown(Aggregation aggregation) {
    return pushAggregation(aggregation);
  }

  public boolean pushAggregation(Aggregation aggregation) {
    if (answer == null && Trees.areOfMetadata(aggregation)) {
      String asked = Trees.json(Trees.of(aggregation));
      if (asked.equals(refused)) {  // Spark asks a second time
        return false;
      }
      Object[] arguments = new Object[] {trees, asked, Trees.of(options), Sessions.ownSettings()};
      String found = (String) Bridge.call(handler, "aggregate", arguments);
      answer = found == null ? null : PaimonLocalScan.of(found);
      refused = asked;
    }
    return answer != null;
  }

  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  /** Spark sorts the rows itself; the first order prunes files without any of the first rows. */
  public boolean pushTopN(SortOrder[] orders, int rows) {
    order = orders.length == 0 ? null : Trees.json(Trees.of(orders[0], rows));
    return order != null;
  }

  public boolean isPartiallyPushed() {
    return true;
  }

  public Scan build() {
    if (answer != null) {
      return answer;
    }
    String required = columns == null ? null : columns.json();
    String given = Trees.of(options);
    String settings = Sessions.ownSettings();
    Object[] arguments = new Object[] {required, trees, Integer.valueOf(limit), order, given, settings};
    Tagged found = (Tagged) Bridge.call(handler, "scan", arguments);
    switch (found.kind) {
      case "local":
        return PaimonLocalScan.of((String) found.value);
      case "scan":
        return new PaimonScan(found, filters);
      default:
        throw new IllegalStateException("no scan of the kind " + found.kind);
    }
  }
}
