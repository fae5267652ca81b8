package paimon.python;

import java.io.ByteArrayInputStream;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.streaming.runtime.MemoryStreamInputPartition;
import org.apache.spark.sql.execution.streaming.runtime.MemoryStreamReaderFactory$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A scan that reports its rows and bytes before it runs, and whose files the runtime filters of a join prune.
 *
 * The rows come from an inner scan, which is created when needed from the source that Python returns. The rows of a
 * stream come from the Python data source.
 */
class PaimonScan implements SupportsReportStatistics, SupportsReportPartitioning, SupportsRuntimeV2Filtering {
  private static final String ALL = "[]";
  private final Object handler;
  private final Expression[] filters;
  private final SparkSession session;
  private final StructType schema;
  private final StructType whole;
  private final String[] partitionColumns;
  private final String description;
  private final boolean divided;
  private final boolean masked;
  private final boolean local;
  private final boolean shredded;
  /** True if the columns have structs of extracted paths instead of variants. */
  private final boolean extracts;
  private final BucketedTasks bucketed;
  private String trees = ALL;
  private Tagged known;
  private Scan source;
  /** The scan of the stream, after `toMicroBatchStream`; null: a batch is read. */
  private Scan streamed;
  private String keys;
  private Batch batch;
  private String size;
  private Statistics statistics;
  /** The number of live rows of each mask, after `mask`; null: the scan has no masks. */
  private long[] liveRows;

  /**
   * @param scan the handler, its description, and the source of the scan without runtime filters, if Python sent it
   * @param filters the filters of the query, for Spark's own scan, which evaluates them again
   */
  PaimonScan(Tagged scan, Expression[] filters) {
    this.handler = scan.value;
    this.filters = filters;
    known = scan.source;
    session = SparkSession.active();
    Map found = (Map) Trees.parsed(scan.description);
    schema = Trees.struct((String) found.get("columns"));
    whole = Trees.struct((String) found.get("whole"));
    partitionColumns = (String[]) ((List) found.get("partitions")).toArray(new String[0]);
    description = (String) found.get("text");
    divided = Boolean.TRUE.equals(found.get("divided"));  // absent for a system table
    masked = Boolean.TRUE.equals(found.get("masked"));
    local = Boolean.TRUE.equals(found.get("local"));
    shredded = Boolean.TRUE.equals(found.get("shredded"));
    extracts = false;
    Map bucketing = (Map) found.get("bucketing");
    bucketed = bucketing == null ? null : new BucketedTasks(bucketing, whole);
  }

  /** @param columns the types of some columns, which have structs of extracted paths instead of variants, by name */
  private PaimonScan(PaimonScan scan, Map columns, String paths) {
    handler = scan.handler;
    filters = scan.filters;
    known = scan.known;
    session = scan.session;
    schema = withTypes(scan.schema, columns);
    whole = scan.whole;
    partitionColumns = scan.partitionColumns;
    description = scan.description + ", variant paths " + paths;
    divided = false;
    masked = false;
    local = false;
    shredded = true;
    extracts = true;
    bucketed = scan.bucketed;
    size = scan.size;
    liveRows = scan.liveRows;
  }

  private static StructType withTypes(StructType columns, Map types) {
    StructField[] fields = (StructField[]) columns.fields().clone();
    for (int i = 0; i < fields.length; i++) {
      DataType type = (DataType) types.get(fields[i].name());
      if (type != null) {
        fields[i] = new StructField(fields[i].name(), type, fields[i].nullable(), fields[i].metadata());
      }
    }
    return new StructType(fields);
  }

  /** True if Spark's own scan reads the files, and they may have shredded variants. */
  boolean isShredded() {
    return shredded;
  }

  /** This scan with structs of extracted paths instead of variants. See PaimonVariantRule. */
  PaimonScan extracting(Map columns, String paths) {
    return new PaimonScan(this, columns, paths);
  }

  private synchronized Scan source() {
    if (source == null) {
      boolean isKnown = known != null && trees.equals(ALL);
      Tagged found = isKnown ? known : (Tagged) Bridge.call(handler, "source", new Object[] {trees});
      known = null;  // a list of files may be large
      keys = found.keys;
      source = source(found);
    }
    return source;
  }

  private Scan source(Tagged found) {
    if (extracts && !found.kind.equals("native")) {
      throw new IllegalStateException("a scan of variant paths became a scan of the kind " + found.kind);
    }
    switch (found.kind) {
      case "native":
        Map described = withLiveFiles((Map) Trees.parsed((String) found.value));
        return NativeFiles.of(session, described, schema, filters);
      case "rows":
        return new RowsScan((byte[]) found.value, schema);
      case "tasks":
        return new PlannedTasks(session, (byte[]) found.value, schema);
      case "source":
        return (Scan) found.value;
      default:
        throw new IllegalStateException("no source of the kind " + found.kind);
    }
  }

  /** The description of a native scan, without the files whose masks have no live row. */
  private Map withLiveFiles(Map described) {
    if (liveRows != null) {
      Map indexes = (Map) ((Map) described.get("masked")).get("indexes");
      described.put("files", PositionMask.liveFiles((Map) described.get("files"), indexes, liveRows));
    }
    return described;
  }

  public StructType readSchema() {
    return schema;
  }

  public String description() {
    return description;
  }

  /** The buckets of the scan, if Spark uses them. */
  public Partitioning outputPartitioning() {
    return bucketed == null ? new UnknownPartitioning(0) : bucketed.partitioning();
  }

  /** Two scans that together return the rows of this scan; null: it is not divided. See PaimonDivideRule. */
  PaimonScan[] parts() {
    Tagged[] parts = divided ? replacements() : null;
    return parts == null
        ? null
        : new PaimonScan[] {new PaimonScan(parts[0], filters), new PaimonScan(parts[1], filters)};
  }

  /** A scan with two more columns, which `mask` needs; null: this scan has no masks. See PaimonDivideRule. */
  PaimonScan masked() {
    return masked ? new PaimonScan(replacements()[0], filters) : null;
  }

  /** The condition on the rows of a scan that `masked` returned; the arguments are its two additional columns. */
  synchronized Expression mask(Attribute position, Attribute file) {
    PositionMask mask = PositionMask.of(handler);
    liveRows = mask.liveRows;
    return mask.condition(position, file);
  }

  private Tagged[] replacements() {
    return (Tagged[]) Bridge.call(handler, "parts", new Object[0]);
  }

  /** The rows that the driver has read, if a query may compute its result from them; else null. See PaimonLocalRule. */
  InternalRow[] localRows() {
    Scan rows = local ? source() : null;
    return rows instanceof RowsScan ? ((RowsScan) rows).rows() : null;
  }

  /** The explanation of the scan, for EXPLAIN; null: no explanation. */
  public String explained() {
    return (String) Bridge.call(handler, "explain", new Object[0]);
  }

  /** The same batch for every copy of a plan node. */
  public synchronized Batch toBatch() {
    if (batch == null) {
      batch = new PaimonBatch(source().toBatch(), description + trees, bucketed, keys);
    }
    return batch;
  }

  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    Scan found = (Scan) Bridge.call(handler, "stream_source", new Object[0]);
    synchronized (this) {
      streamed = found;
    }
    return found.toMicroBatchStream(checkpoint);
  }

  /** The scan that reads the rows: of a stream that of the stream, without planning a batch of the whole table. */
  private synchronized Scan reading() {
    return streamed == null ? source() : streamed;
  }

  public Scan.ColumnarSupportMode columnarSupportMode() {
    return reading().columnarSupportMode();
  }

  public CustomMetric[] supportedCustomMetrics() {
    return reading().supportedCustomMetrics();
  }

  public NamedReference[] filterAttributes() {
    NamedReference[] found = new NamedReference[partitionColumns.length];
    for (int i = 0; i < found.length; i++) {
      found[i] = Expressions.column(Trees.quoted(partitionColumns[i]));
    }
    return found;
  }

  public synchronized void filter(Predicate[] predicates) {
    ArrayList described = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      described.add(Trees.of(predicates[i]));
    }
    trees = Trees.json(described);
    source = null;
    batch = null;
  }

  public synchronized Statistics estimateStatistics() {
    if (statistics == null) {
      if (size == null) {
        size = (String) Bridge.call(handler, "statistics", new Object[0]);
      }
      statistics = new PaimonStatistics(size, schema, whole);
    }
    return statistics;
  }

  public boolean equals(Object other) {
    return other instanceof PaimonScan
        && description.equals(((PaimonScan) other).description)
        && trees.equals(((PaimonScan) other).trees)
        && schema.equals(((PaimonScan) other).schema);
  }

  public int hashCode() {
    return description.hashCode();
  }
}

/** A few rows, which one task gets with its partition: Spark's classes, which executors have. */
class RowsScan implements Scan, Batch {
  private final UnsafeRow[] rows;
  private final StructType schema;

  /** @param stream the rows as a stream in Arrow's IPC format */
  RowsScan(byte[] stream, StructType schema) {
    this.schema = schema;
    scala.collection.Iterator batches =
        ArrowConverters$.MODULE$.getBatchesFromStream(Channels.newChannel(new ByteArrayInputStream(stream)));
    scala.collection.Iterator iterator =
        ArrowConverters$.MODULE$.fromBatchIterator(batches, schema, "UTC", true, false, null);
    UnsafeProjection projection = UnsafeProjection$.MODULE$.create(schema);
    ArrayList copies = new ArrayList();
    while (iterator.hasNext()) {
      copies.add(projection.apply((InternalRow) iterator.next()).copy());  // Arrow's memory ends with the iterator
    }
    rows = (UnsafeRow[]) copies.toArray(new UnsafeRow[0]);
  }

  InternalRow[] rows() {
    return rows;
  }

  public StructType readSchema() {
    return schema;
  }

  public Batch toBatch() {
    return this;
  }

  public InputPartition[] planInputPartitions() {
    return new InputPartition[] {new MemoryStreamInputPartition(rows)};
  }

  public PartitionReaderFactory createReaderFactory() {
    return MemoryStreamReaderFactory$.MODULE$;
  }
}

/** Batches of equal scans are equal, so that Spark reads a table once for a query that names it twice. */
class PaimonBatch implements Batch {
  private final Batch source;
  private final String key;
  private final BucketedTasks bucketed;
  private final String keys;
  private InputPartition[] partitions;
  private PartitionReaderFactory factory;

  /** @param keys the keys of the files or tasks of a bucketed scan; null: it is not bucketed */
  PaimonBatch(Batch source, String key, BucketedTasks bucketed, String keys) {
    this.source = source;
    this.key = key;
    this.bucketed = bucketed;
    this.keys = keys;
  }

  public synchronized InputPartition[] planInputPartitions() {
    if (partitions == null) {
      InputPartition[] tasks = source.planInputPartitions();
      partitions = keys == null ? tasks : bucketed.keyed(tasks, keys);
    }
    return partitions;
  }

  /** Cached, because Spark calls this several times per query, and each factory of a file scan broadcasts settings. */
  public synchronized PartitionReaderFactory createReaderFactory() {
    if (factory == null) {
      factory = source.createReaderFactory();
    }
    return factory;
  }

  public boolean equals(Object other) {
    return other instanceof PaimonBatch && key.equals(((PaimonBatch) other).key);
  }

  public int hashCode() {
    return key.hashCode();
  }
}

class PaimonStatistics implements Statistics {
  private static final int ROW_OVERHEAD = 8;
  private final Map given;
  private final StructType schema;
  private final StructType whole;

  PaimonStatistics(String json, StructType schema, StructType whole) {
    given = (Map) Trees.parsed(json);
    this.schema = schema;
    this.whole = whole;
  }

  static OptionalLong number(Object value) {
    return value == null ? OptionalLong.empty() : OptionalLong.of(((Number) value).longValue());
  }

  public OptionalLong sizeInBytes() {
    double share = (ROW_OVERHEAD + schema.defaultSize()) / (double) (ROW_OVERHEAD + whole.defaultSize());
    return OptionalLong.of(Math.max(1L, (long) (((Number) given.get("bytes")).longValue() * Math.min(1.0, share))));
  }

  public OptionalLong numRows() {
    return number(given.get("rows"));
  }

  public Map columnStats() {
    Map columns = (Map) given.get("columns");
    HashMap found = new HashMap();
    for (Iterator names = columns.keySet().iterator(); names.hasNext(); ) {
      String name = (String) names.next();
      scala.Option index = schema.getFieldIndex(name);
      if (index.isDefined()) {
        DataType type = schema.fields()[((Integer) index.get()).intValue()].dataType();
        if (estimates(type)) {
          NamedReference column = Expressions.column(Trees.quoted(name));
          found.put(column, new PaimonColumnStatistics((Map) columns.get(name), type));
        }
      }
    }
    return found;
  }

  /** Spark estimates filters on these types, and fails on a range of any other type that has statistics. */
  private static boolean estimates(DataType type) {
    return type instanceof NumericType
        || type.equals(DataTypes.BooleanType)
        || type.equals(DataTypes.DateType)
        || type.equals(DataTypes.TimestampType)
        || type.equals(DataTypes.StringType)
        || type.equals(DataTypes.BinaryType);
  }
}

class PaimonColumnStatistics implements ColumnStatistics {
  private final Map given;
  private final DataType type;

  PaimonColumnStatistics(Map given, DataType type) {
    this.given = given;
    this.type = type;
  }

  private Optional value(String name) {
    Object text = given.get(name);
    return text == null ? Optional.empty() : Optional.of(PaimonLocalScan.parsed(type, (String) text));
  }

  public OptionalLong distinctCount() {
    return PaimonStatistics.number(given.get("distinct_count"));
  }

  public Optional min() {
    return value("min");
  }

  public Optional max() {
    return value("max");
  }

  public OptionalLong nullCount() {
    return PaimonStatistics.number(given.get("null_count"));
  }

  public OptionalLong avgLen() {
    return PaimonStatistics.number(given.get("avg_len"));
  }

  public OptionalLong maxLen() {
    return PaimonStatistics.number(given.get("max_len"));
  }
}
