package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.datasources.v2.FileScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.orc.OrcScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScanBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Some;
import scala.collection.immutable.Seq;
import scala.collection.mutable.LinkedHashMap;
import scala.jdk.javaapi.CollectionConverters;

/** Spark's own scans of the files of a table. Executors receive only Spark's own classes. */
public class NativeFiles {
  /** 1582-10-15, in days since 1970. */
  private static final int FIRST_GREGORIAN_DAY = -141427;
  /** 1900-01-01, in microseconds since 1970. */
  private static final long STANDARD_TIME = -2208988800000000L;

  private NativeFiles() {}

  /**
   * Spark's scan of files.
   *
   * @param described "format": "parquet" or "orc"; "local": true if all files are on local disks; "files": bytes by path;
   *     "columns" of the files that a query can ask for and those "required", as Spark's JSON; "options" of Spark's data
   *     source; "pushes": true if filters may leave out row groups; "masked": null, or the names of the columns
   *     "position" and "file" to add, and "indexes" by path for the column "file"
   * @param types the columns of the scan, with structs of extracted paths instead of variants: see PaimonVariantRule
   * @param filters conditions for the reader to leave out row groups by; Spark evaluates them again
   */
  static Scan of(SparkSession spark, Map described, StructType types, Expression[] filters) {
    StructType columns = Trees.struct((String) described.get("columns"));
    Map options = (Map) described.get("options");
    CaseInsensitiveStringMap given = new CaseInsensitiveStringMap(options);
    StructType required = withTypes(Trees.struct((String) described.get("required")), types);
    Map masked = (Map) described.get("masked");
    if (masked != null) {
      columns = columns.add((String) masked.get("position"), LongType$.MODULE$, true);
      required = required.add((String) masked.get("position"), LongType$.MODULE$, true);
      required = required.add((String) masked.get("file"), IntegerType$.MODULE$, false);
    }
    KnownFiles index = KnownFiles.of(spark, options, columns, (Map) described.get("files"), masked);
    boolean orc = described.get("format").equals("orc");
    boolean local = ((Boolean) described.get("local")).booleanValue() && !orc;
    FileScanBuilder builder =
        orc
            ? (FileScanBuilder) new OrcScanBuilder(spark, index, columns, columns, given)
            : local
                ? (FileScanBuilder) new LocalScanBuilder(spark, index, columns, given)
                : (FileScanBuilder) new ParquetScanBuilder(spark, index, columns, columns, given);
    builder.pruneColumns(required);
    ArrayList pushed = new ArrayList();
    boolean pushes = ((Boolean) described.get("pushes")).booleanValue();
    for (int i = 0; pushes && i < filters.length; i++) {
      if (!namesFloats(filters[i]) && !hasOldMoment(filters[i]) && !(orc && hasNull(filters[i]))) {
        pushed.add(filters[i]);
      }
    }
    builder.pushFilters(CollectionConverters.asScala(pushed).toSeq());
    Scan scan = ((ScanBuilder) builder).build();
    return local ? new LocalFiles(spark, scan, columns) : scan;
  }

  private static StructType withTypes(StructType required, StructType types) {
    StructField[] fields = (StructField[]) required.fields().clone();
    for (int i = 0; i < fields.length; i++) {
      fields[i] = types.apply(fields[i].name());
    }
    return new StructType(fields);
  }

  static scala.collection.immutable.Map scalaMap(Map options) {
    return (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(
        CollectionConverters.asScala(options));
  }

  /** The readers treat -0.0 and 0.0 as different numbers when they prune row groups. */
  private static boolean namesFloats(Expression filter) {
    scala.collection.Iterator columns = filter.references().iterator();
    while (columns.hasNext()) {
      String type = ((Attribute) columns.next()).dataType().json();
      if (type.contains("float") || type.contains("double")) {
        return true;
      }
    }
    return false;
  }

  /**
   * Spark converts a time in a filter to Java's old calendar and back. This shifts the days from 1582-10-05 to
   * 1582-10-14, and ambiguous times in the zones of old dates, so row groups with matching rows would be pruned.
   */
  private static boolean hasOldMoment(Expression filter) {
    List values = values(filter);
    for (int i = 0; i < values.size(); i++) {
      Literal value = (Literal) values.get(i);
      if (isOld(value.dataType(), value.value())) {
        return true;
      }
    }
    return false;
  }

  /** Spark's reader of ORC fails for a NULL in a list of values. */
  private static boolean hasNull(Expression filter) {
    List values = values(filter);
    for (int i = 0; i < values.size(); i++) {
      if (((Literal) values.get(i)).value() == null) {
        return true;
      }
    }
    return false;
  }

  /** The values that a filter names. */
  private static List values(Expression filter) {
    ArrayList found = new ArrayList();
    ArrayList open = new ArrayList();
    open.add(filter);
    while (!open.isEmpty()) {
      Expression part = (Expression) open.remove(open.size() - 1);
      open.addAll(CollectionConverters.asJava(part.children()));
      if (part instanceof Literal) {
        found.add(part);
      }
      if (part instanceof InSet) {
        scala.collection.Iterator values = ((InSet) part).hset().iterator();
        while (values.hasNext()) {
          found.add(new Literal(values.next(), ((InSet) part).child().dataType()));
        }
      }
    }
    return found;
  }

  private static boolean isOld(DataType type, Object value) {
    if (value == null) {
      return false;
    }
    if (type instanceof DateType) {
      return ((Integer) value).intValue() < FIRST_GREGORIAN_DAY;
    }
    boolean isTime = type instanceof TimestampType || type instanceof TimestampNTZType;
    return isTime && ((Long) value).longValue() < STANDARD_TIME;
  }
}

/** The files of a table with their sizes, so that Spark lists no directory. */
class KnownFiles extends PartitioningAwareFileIndex {
  private final Seq roots;
  private final LinkedHashMap files = new LinkedHashMap();

  /** @param sizes bytes by path */
  KnownFiles(SparkSession spark, Map options, StructType columns, Map sizes) {
    super(spark, NativeFiles.scalaMap(options), new Some(columns), NoopCache$.MODULE$);
    ArrayList paths = new ArrayList();
    Iterator names = sizes.keySet().iterator();
    while (names.hasNext()) {
      String name = (String) names.next();
      Path path = new Path(name);
      paths.add(path);
      files.put(path, new FileStatus(((Number) sizes.get(name)).longValue(), false, 1, 128L << 20, 0L, path));
    }
    roots = CollectionConverters.asScala(paths).toSeq();
  }

  /**
   * Return the files of a scan.
   *
   * @param masked the name of the column "file", which has the value of a file in "indexes" or -1; null: no such column
   */
  static KnownFiles of(SparkSession spark, Map options, StructType columns, Map sizes, Map masked) {
    return masked == null
        ? new KnownFiles(spark, options, columns, sizes)
        : new NumberedFiles(spark, options, columns, sizes, masked);
  }

  public Seq rootPaths() {
    return roots;
  }

  public LinkedHashMap leafFiles() {
    return files;
  }

  public scala.collection.immutable.Map leafDirToChildrenFiles() {
    return NativeFiles.scalaMap(new HashMap());
  }

  public PartitionSpec partitionSpec() {
    return PartitionSpec.emptySpec();
  }

  public void refresh() {}

  public boolean equals(Object other) {
    return other instanceof KnownFiles && roots.equals(((KnownFiles) other).roots);
  }

  public int hashCode() {
    return roots.hashCode();
  }
}

/** Files, with a partition column that holds the index of the file's mask if any file has a mask: see PositionMask. */
class NumberedFiles extends KnownFiles {
  private static final Integer UNMASKED = Integer.valueOf(-1);
  private final StructType partitions;
  private final TreeMap byIndex = new TreeMap();

  /** @param masked see KnownFiles.of; null: no file has a mask */
  NumberedFiles(SparkSession spark, Map options, StructType columns, Map sizes, Map masked) {
    super(spark, options, columns, sizes);
    StructType none = new StructType();
    partitions = masked == null ? none : none.add((String) masked.get("file"), IntegerType$.MODULE$, false);
    Map indexes = masked == null ? new HashMap() : (Map) masked.get("indexes");
    for (Iterator names = sizes.keySet().iterator(); names.hasNext(); ) {
      String name = (String) names.next();
      Object index = indexes.containsKey(name) ? indexes.get(name) : UNMASKED;
      if (!byIndex.containsKey(index)) {
        byIndex.put(index, new ArrayList());
      }
      FileStatus status = (FileStatus) leafFiles().apply(new Path(name));
      ((ArrayList) byIndex.get(index)).add(new FileStatusWithMetadata(status, NativeFiles.scalaMap(new HashMap())));
    }
  }

  public PartitionSpec partitionSpec() {
    return new PartitionSpec(partitions, CollectionConverters.asScala(new ArrayList()).toSeq());
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    ArrayList directories = new ArrayList();
    for (Iterator entries = byIndex.entrySet().iterator(); entries.hasNext(); ) {
      Map.Entry entry = (Map.Entry) entries.next();
      Seq files = CollectionConverters.asScala((ArrayList) entry.getValue()).toSeq();
      Object[] values = partitions.length() == 0 ? new Object[0] : new Object[] {entry.getKey()};
      directories.add(new PartitionDirectory(new GenericInternalRow(values), files));
    }
    return CollectionConverters.asScala(directories).toSeq();
  }

  public boolean equals(Object other) {
    return other instanceof NumberedFiles
        && super.equals(other)
        && byIndex.keySet().equals(((NumberedFiles) other).byIndex.keySet());
  }

  public int hashCode() {
    return super.hashCode();
  }
}
