package paimon.python;

import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The changes of a table, since Spark 4.2. The engine leaves out rows that only moved between files, and names the two
 * rows of an update; Spark merges the changes of a key.
 */
public class PaimonChangelog implements Changelog {
  private final Description description;
  private final NamedReference[] keys;
  private final Object handler;

  /**
   * @param description a text: see Description
   * @param keys the names of the columns that identify a row, as JSON; empty: no columns do
   */
  public PaimonChangelog(String description, String keys, Object handler) {
    this.description = Description.of(description);
    this.handler = handler;
    List names = (List) Trees.parsed(keys);
    this.keys = new NamedReference[names.size()];
    for (int i = 0; i < this.keys.length; i++) {
      this.keys[i] = Expressions.column(Trees.quoted((String) names.get(i)));
    }
  }

  /** The request for changes, as JSON: the bounds, the deduplication mode, and true to name updates. */
  static String described(ChangelogContext context) {
    ChangelogRange range = context.range();
    LinkedHashMap found = new LinkedHashMap();
    if (range instanceof ChangelogRange.VersionRange) {
      ChangelogRange.VersionRange versions = (ChangelogRange.VersionRange) range;
      found.put("start", versions.startingVersion());
      found.put("end", versions.endingVersion().orElse(null));
    } else if (range instanceof ChangelogRange.TimestampRange) {
      ChangelogRange.TimestampRange times = (ChangelogRange.TimestampRange) range;
      found.put("start_micros", Long.valueOf(times.startingTimestamp()));
      found.put("end_micros", times.endingTimestamp().orElse(null));
    }
    if (!found.isEmpty()) {  // all changes have no bounds, and Spark refuses the question
      found.put("with_start", Boolean.valueOf(range.startingBoundInclusive()));
      found.put("with_end", Boolean.valueOf(range.endingBoundInclusive()));
    }
    found.put("mode", context.deduplicationMode().name());
    found.put("updates", Boolean.valueOf(context.computeUpdates()));
    return Trees.json(found);
  }

  public String name() {
    return description.name;
  }

  public Column[] columns() {
    return description.columns;
  }

  public boolean containsCarryoverRows() {
    return false;
  }

  public boolean containsIntermediateChanges() {
    return keys.length > 0;
  }

  public boolean representsUpdateAsDeleteAndInsert() {
    return false;
  }

  public NamedReference[] rowId() {
    return keys;
  }

  public NamedReference rowVersion() {
    throw new UnsupportedOperationException(name() + " has no versions of rows");
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new PaimonScanBuilder(handler, options, false);
  }
}
