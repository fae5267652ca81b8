package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The partitioning of a bucketed scan, and its tasks with their keys: the partition and the bucket. */
class BucketedTasks {
  private final Map described;
  private final DataType[] types;

  /** @param described the partition columns, the bucket key, the number of buckets and the number of keys */
  BucketedTasks(Map described, StructType columns) {
    this.described = described;
    List names = (List) described.get("partitions");
    types = new DataType[names.size() + 1];
    for (int i = 0; i < names.size(); i++) {
      types[i] = columns.fields()[columns.fieldIndex((String) names.get(i))].dataType();
    }
    types[names.size()] = DataTypes.IntegerType;
  }

  Partitioning partitioning() {
    List names = (List) described.get("partitions");
    Expression[] keys = new Expression[types.length];
    for (int i = 0; i < names.size(); i++) {
      keys[i] = Expressions.identity(Trees.quoted((String) names.get(i)));
    }
    int buckets = ((Number) described.get("buckets")).intValue();
    String[] column = new String[] {Trees.quoted((String) described.get("column"))};
    keys[names.size()] = Expressions.bucket(buckets, column);
    return new KeyGroupedPartitioning(keys, ((Number) described.get("keys")).intValue());
  }

  /**
   * Return tasks with keys that read the same rows. Tasks that read files of several buckets are divided.
   *
   * @param keys a JSON object, the key of each file by its URI, for tasks of Spark's scan of files; or a JSON array, the
   *     key of each task
   */
  InputPartition[] keyed(InputPartition[] tasks, String keys) {
    Object parsed = Trees.parsed(keys);
    if (parsed instanceof Map) {
      return ofFiles(tasks, (Map) parsed);
    }
    List given = (List) parsed;
    // the Python data source has a task even if there is nothing to read; this task has no key
    InputPartition[] found = new InputPartition[given.isEmpty() ? 0 : tasks.length];
    for (int i = 0; i < found.length; i++) {
      found[i] = new BucketedTask(tasks[i], row((List) given.get(i)));
    }
    return found;
  }

  private InputPartition[] ofFiles(InputPartition[] tasks, Map keys) {
    HashMap byPath = new HashMap();
    for (Iterator entries = keys.entrySet().iterator(); entries.hasNext(); ) {
      Map.Entry entry = (Map.Entry) entries.next();
      byPath.put(new Path((String) entry.getKey()), entry.getValue());
    }
    LinkedHashMap filesOf = new LinkedHashMap();
    for (int i = 0; i < tasks.length; i++) {
      PartitionedFile[] files = ((FilePartition) tasks[i]).files();
      for (int f = 0; f < files.length; f++) {
        Object key = byPath.get(files[f].toPath());
        ArrayList group = (ArrayList) filesOf.get(key);
        if (group == null) {
          group = new ArrayList();
          filesOf.put(key, group);
        }
        group.add(files[f]);
      }
    }
    ArrayList found = new ArrayList();
    for (Iterator groups = filesOf.entrySet().iterator(); groups.hasNext(); ) {
      Map.Entry group = (Map.Entry) groups.next();
      PartitionedFile[] files = (PartitionedFile[]) ((List) group.getValue()).toArray(new PartitionedFile[0]);
      found.add(new BucketedTask(new FilePartition(found.size(), files), row((List) group.getKey())));
    }
    return (InputPartition[]) found.toArray(new InputPartition[0]);
  }

  private InternalRow row(List values) {
    Object[] parsed = new Object[types.length];
    for (int i = 0; i < parsed.length; i++) {
      String text = (String) values.get(i);
      parsed[i] = text == null ? null : PaimonLocalScan.parsed(types[i], text);
    }
    return new GenericInternalRow(parsed);
  }
}

/** A task with its key. Executors receive the task alone, which is of a class of Spark. */
class BucketedTask implements InputPartition, HasPartitionKey {
  private final InputPartition task;
  private final InternalRow key;

  BucketedTask(InputPartition task, InternalRow key) {
    this.task = task;
    this.key = key;
  }

  public InternalRow partitionKey() {
    return key;
  }

  public String[] preferredLocations() {
    return task.preferredLocations();
  }

  public Object writeReplace() {
    return task;
  }
}
