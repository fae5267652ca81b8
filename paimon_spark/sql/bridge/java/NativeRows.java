package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
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
   * @param handler its method "matching" takes the trees of filters and returns the paths of the files that may have such rows
   */
  public static Object of(SparkSession session, String files, StructType columns, Map options, Object handler) {
    scala.collection.immutable.Map given = NativeFiles.scalaMap(options);
    MatchingFiles index = new MatchingFiles(session, options, columns, (Map) Trees.parsed(files), handler);
    HadoopFsRelation relation =
        new HadoopFsRelation(
            index, new StructType(), columns, Option.empty(), new ParquetFileFormat(), given, session);
    return ((org.apache.spark.sql.classic.SparkSession) session).baseRelationToDataFrame((BaseRelation) relation);
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
class MatchingFiles extends KnownFiles {
  private final Object handler;

  MatchingFiles(SparkSession session, Map options, StructType columns, Map sizes, Object handler) {
    super(session, options, columns, sizes);
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
