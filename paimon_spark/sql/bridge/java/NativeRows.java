package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union$;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The rows of a table's Parquet files as a DataFrame that knows the file and the position of each row. */
public class NativeRows {
  private NativeRows() {}

  /**
   * Return the rows of these files, read by Spark; the column _metadata has file_path and row_index.
   *
   * @param files a JSON object: bytes by path
   * @param columns the columns of the rows
   * @param options options of Spark's data source
   * @param handler its method "matching" takes the trees of filters and returns the paths of the files that may have such
   *     rows; its methods "masks" and "read_masks" are those of PositionMask
   * @param local true if all files are on local disks
   * @param masked a JSON object: the names of the columns "position" and "file" to add, and "indexes", the index of each
   *     file's mask by path; null: no file has deleted rows
   */
  public static Dataset of(
      SparkSession session,
      String files,
      boolean local,
      StructType columns,
      Map options,
      Object handler,
      String masked) {
    Map described = masked == null ? null : (Map) Trees.parsed(masked);
    String position = described == null ? null : (String) described.get("position");
    StructType stored = described == null ? columns : columns.add(position, LongType$.MODULE$, true);
    PositionMask mask = described == null ? null : PositionMask.of(handler);
    Map sizes = (Map) Trees.parsed(files);
    if (mask != null) {
      sizes = PositionMask.liveFiles(sizes, (Map) described.get("indexes"), mask.liveRows);
    }
    MatchingFiles index = new MatchingFiles(session, options, stored, sizes, described, handler);
    HadoopFsRelation relation =
        new HadoopFsRelation(
            index,
            index.partitionSpec().partitionColumns(),
            stored,
            Option.empty(),
            local ? new LocalParquet() : new ParquetFileFormat(),
            NativeFiles.scalaMap(options),
            session);
    org.apache.spark.sql.classic.SparkSession classic = (org.apache.spark.sql.classic.SparkSession) session;
    Dataset rows = (Dataset) classic.baseRelationToDataFrame((BaseRelation) relation);
    if (described == null) {
      return rows;
    }
    LogicalPlan plan = rows.queryExecution().analyzed();
    Attribute file = attribute(plan, (String) described.get("file"));
    Expression live = mask.condition(attribute(plan, position), file);
    return Dataset$.MODULE$.ofRows(classic, new Filter(live, plan));
  }

  /**
   * Return rows without those that newer rows replace, and the newer rows.
   *
   * @param rows the older rows
   * @param keys a JSON array: the names of the columns of the key
   * @param replaced the keys of the newer rows, as a stream in Arrow's IPC format
   * @param added the newer rows that are not deletes, as a stream in Arrow's IPC format
   * @param columns the columns of the rows
   */
  public static Dataset withNewer(Dataset rows, String keys, byte[] replaced, byte[] added, StructType columns) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    List names = (List) Trees.parsed(keys);
    StructType type = new StructType();
    for (int i = 0; i < names.size(); i++) {
      type = type.add(columns.apply((String) names.get(i)));
    }
    LogicalPlan newerKeys = PaimonLocalRule.local(new RowsScan(replaced, type));
    Expression same = null;
    for (int i = 0; i < names.size(); i++) {
      Attribute newer = (Attribute) newerKeys.output().apply(i);
      Expression equal = new EqualTo(attribute(plan, (String) names.get(i)), newer);
      same = same == null ? equal : new And(same, equal);
    }
    JoinHint hint = new JoinHint(Option.empty(), new Some(new HintInfo(new Some(BROADCAST$.MODULE$))));
    LogicalPlan kept = new Join(plan, newerKeys, LeftAnti$.MODULE$, new Some(same), hint);
    ArrayList output = new ArrayList();
    String[] all = columns.fieldNames();
    for (int i = 0; i < all.length; i++) {
      output.add(attribute(plan, all[i]));
    }
    kept = new Project(CollectionConverters.asScala(output).toSeq(), kept);
    LogicalPlan newer = PaimonLocalRule.local(new RowsScan(added, columns));
    return Dataset$.MODULE$.ofRows(
        (org.apache.spark.sql.classic.SparkSession) rows.sparkSession(), Union$.MODULE$.apply(kept, newer));
  }

  /** Return true if the JVM has a file system and credentials for a directory. */
  public static boolean reaches(SparkSession session, String directory) {
    Path path = new Path(directory);
    try {
      path.getFileSystem(((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConf())
          .getFileStatus(path);
      return true;
    } catch (Exception error) {
      return false;
    }
  }

  private static Attribute attribute(LogicalPlan plan, String name) {
    List output = CollectionConverters.asJava(plan.output());
    for (int i = 0; i < output.size(); i++) {
      if (((Attribute) output.get(i)).name().equals(name)) {
        return (Attribute) output.get(i);
      }
    }
    throw new IllegalStateException("no column " + name);
  }

  /** The paths as _metadata.file_path has them: a JSON object, the given path by Spark's. */
  public static String shown(String files) {
    HashMap found = new HashMap();
    java.util.Iterator names = ((Map) Trees.parsed(files)).keySet().iterator();
    while (names.hasNext()) {
      String name = (String) names.next();
      found.put(SparkPath.fromPath(new Path(name)).urlEncoded(), name);
    }
    return Trees.json(found);
  }
}

/** The files of a table, pruned by the filters of a query. */
class MatchingFiles extends NumberedFiles {
  private final Object handler;

  MatchingFiles(SparkSession session, Map options, StructType columns, Map sizes, Map masked, Object handler) {
    super(session, options, columns, sizes, masked);
    this.handler = handler;
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    Seq all = super.listFiles(partitionFilters, dataFilters);
    if (dataFilters.isEmpty()) {
      return all;
    }
    String trees = PaimonScanBuilder.trees(CollectionConverters.asJava(dataFilters));
    HashSet matching = new HashSet();
    List names = (List) Trees.parsed((String) Bridge.call(handler, "matching", new Object[] {trees}));
    for (int i = 0; i < names.size(); i++) {
      matching.add(new Path((String) names.get(i)));
    }
    ArrayList found = new ArrayList();
    List directories = CollectionConverters.asJava(all);
    for (int i = 0; i < directories.size(); i++) {
      PartitionDirectory directory = (PartitionDirectory) directories.get(i);
      ArrayList chosen = new ArrayList();
      List files = CollectionConverters.asJava(directory.files());
      for (int f = 0; f < files.size(); f++) {
        if (matching.contains(((FileStatusWithMetadata) files.get(f)).getPath())) {
          chosen.add(files.get(f));
        }
      }
      found.add(new PartitionDirectory(directory.values(), CollectionConverters.asScala(chosen).toSeq()));
    }
    return CollectionConverters.asScala(found).toSeq();
  }
}
