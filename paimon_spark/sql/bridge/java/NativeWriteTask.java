package paimon.python;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction2;

/** The columns of a table's files, as Spark's encoder writes them: names, ids and types are those of the engine. */
class NativeColumns extends ParquetWriteSupport {
  private final MessageType columns;

  NativeColumns(MessageType columns) {
    this.columns = columns;
  }

  public WriteSupport.WriteContext init(Configuration configuration) {
    HashMap metadata = new HashMap(super.init(configuration).getExtraMetaData());
    metadata.remove(ParquetReadSupport.SPARK_METADATA_KEY());
    return new WriteSupport.WriteContext(columns, metadata);
  }
}

/** A builder of an encoder of Spark's rows. */
class NativeEncoder extends ParquetWriter.Builder {
  private final MessageType columns;

  NativeEncoder(OutputFile file, MessageType columns) {
    super(file);
    this.columns = columns;
  }

  protected ParquetWriter.Builder self() {
    return this;
  }

  protected WriteSupport getWriteSupport(Configuration configuration) {
    return new NativeColumns(columns);
  }
}

/** The checks and the statistics of a column: see the class ColumnPlan of the engine. */
class NativeColumn {
  final boolean required;
  /** The most characters of a text; 0: no limit. */
  final int characters;
  /** The most bytes of a binary value; 0: no limit. */
  final int bytes;
  /** float, double, nested or other. */
  final String kind;
  /** True if the metadata of a file has the smallest and the largest value. */
  final boolean bounded;
  /** The most bytes of a bound that the driver needs; 0: all. */
  final int boundBytes;
  /** The index of the stored column, if the column is not nested. */
  final int leaf;

  NativeColumn(Map column) {
    required = ((Boolean) column.get("required")).booleanValue();
    characters = ((Number) column.get("characters")).intValue();
    bytes = ((Number) column.get("bytes")).intValue();
    kind = (String) column.get("kind");
    bounded = ((Boolean) column.get("bounded")).booleanValue();
    boundBytes = ((Number) column.get("bound_bytes")).intValue();
    leaf = ((Number) column.get("leaf")).intValue();
  }

  /** True if each value must be looked at. */
  boolean isChecked() {
    return required || characters > 0 || bytes > 0 || isCounted() || holdsFloats();
  }

  /** True if the statistics of the stored columns do not say how many values are NULL. */
  boolean isCounted() {
    return kind.equals("nested");
  }

  boolean holdsFloats() {
    return bounded && (kind.equals("float") || kind.equals("double"));
  }
}

/** A file of a task: its encoder, the number of NULLs of each column, and the columns with NaN. */
class NativeFile {
  final String path;
  final String name;
  final ParquetWriter encoder;
  final long[] nulls;
  final boolean[] nan;
  long rows = 0;
  /** The rows, and their bytes, since the last check of the size of the file. */
  long uncheckedRows = 0;
  long uncheckedBytes = 0;

  NativeFile(String path, String name, ParquetWriter encoder, int columns) {
    this.path = path;
    this.name = name;
    this.encoder = encoder;
    nulls = new long[columns];
    nan = new boolean[columns];
  }
}

/**
 * A task that writes its rows to files of a table, and returns their descriptions as JSON.
 *
 * Partitions whose rows arrive in long runs have an encoder each, up to a number of them. Rows of the others are sorted
 * by partition, and written by one encoder after the other when all rows have arrived: to switch between encoders costs
 * more than the sort.
 *
 * The result has "files" and the "seconds" of the task, or "refused" with a reason if the table cannot hold a row or a
 * file cannot be written. A task that refuses or fails deletes its files. Only the results of the attempts that Spark
 * accepts reach the driver, so each row is committed once.
 */
class NativeWriteTask extends AbstractFunction2 implements Serializable {
  /** The most rows, and the most bytes of rows, between two checks of the size of a file. */
  private static final int CHECKED_ROWS = 1000;

  private static final long CHECKED_BYTES = 4 << 20;
  private static final long LEAST_GROUP_BYTES = 1 << 20;
  /** The memory of an open encoder for each stored column, in addition to its rows. */
  private static final long COLUMN_BYTES = 128 << 10;

  private final SerializableConfiguration configuration;
  private final String plan;
  private final byte[] footer;
  private final StructType rowType;
  private final int slots;
  private final String driver;
  private transient long memory;
  private transient Map parsed;
  private transient NativeStore store;
  private transient MessageType columns;
  private transient NativeColumn[] all;
  private transient int[] checked;
  private transient ArrayList files;
  private transient ArrayList described;
  private transient ArrayList direct;
  private transient ArrayList unfinished;
  private transient long targetBytes;
  private transient long targetRows;

  /**
   * @param configuration the settings of the encoder
   * @param plan the plan of the files, as JSON
   * @param footer the footer of a file with the columns of the table
   * @param rowType the columns of the rows
   * @param slots the most tasks that run in one JVM at a time; 0: one for each processor
   * @param driver the address of the driver, for partitions; null: tasks run in the JVM of the driver
   */
  NativeWriteTask(
      SerializableConfiguration configuration,
      String plan,
      byte[] footer,
      StructType rowType,
      int slots,
      String driver) {
    this.slots = slots;
    this.driver = driver;
    this.rowType = rowType;
    this.configuration = configuration;
    this.plan = plan;
    this.footer = footer;
  }

  public Object apply(Object context, Object rows) {
    long start = System.nanoTime();
    try {
      String refused = prepare();
      if (refused == null) {
        refused = write((TaskContext) context, (Iterator) rows);
      }
      LinkedHashMap result = new LinkedHashMap();
      if (refused == null) {
        result.put("files", described);
        result.put("seconds", Double.valueOf((System.nanoTime() - start) / 1e9));
      } else {
        discard();
        result.put("refused", refused);
      }
      return Trees.json(result);
    } catch (Throwable error) {
      discard();
      Bridge.throwUnchecked(error);
      return null;
    }
  }

  /** Read the plan. Return the reason if this JVM does not reach the table, else null. */
  private String prepare() throws IOException {
    parsed = (Map) Trees.parsed(plan);
    try {
      store = NativeStore.of((String) parsed.get("root"), configuration.value());
    } catch (IOException error) {
      return String.valueOf(error);
    }
    int tasks = slots > 0 ? slots : Runtime.getRuntime().availableProcessors();
    memory = Math.max(LEAST_GROUP_BYTES, Runtime.getRuntime().maxMemory() / 4 / tasks);
    columns =
        new ParquetMetadataConverter()
            .fromParquetMetadata(Util.readFileMetaData(new ByteArrayInputStream(footer)))
            .getFileMetaData()
            .getSchema();
    List described = (List) parsed.get("columns");
    all = new NativeColumn[described.size()];
    int[] found = new int[all.length];
    int number = 0;
    for (int i = 0; i < all.length; i++) {
      all[i] = new NativeColumn((Map) described.get(i));
      if (all[i].isChecked()) {
        found[number++] = i;
      }
    }
    checked = Arrays.copyOf(found, number);
    files = new ArrayList();
    this.described = new ArrayList();
    direct = new ArrayList();
    unfinished = new ArrayList();
    targetBytes = ((Number) parsed.get("size")).longValue();
    targetRows = ((Number) parsed.get("rows")).longValue();
    return null;
  }

  /** Write all rows. Return the reason if the table cannot hold one of them, or a file cannot be written, else null. */
  private String write(TaskContext context, Iterator rows) {
    List positions = (List) parsed.get("partition");
    NativeRouter router = null;
    NativeTarget table = null;
    if (positions.isEmpty()) {
      table = new NativeTarget(null, (String) parsed.get("directory"), 0);
      table.groupBytes = memory;
      table.direct = true;
      direct.add(table);
    } else {
      router = new NativeRouter(NativePartitions.of((String) parsed.get("job"), driver), rowType, positions);
    }
    NativeSorter sorter = new NativeSorter(context, rowType);
    long sortedRows = 0;
    while (rows.hasNext()) {
      InternalRow row = (InternalRow) rows.next();
      try {
        NativeTarget target = router == null ? table : router.target(row);
        if (target == null) {
          return "only the engine writes the partition of a row";
        }
        if (target.direct || (target.isNew && router.isGrouped() && opens(target))) {
          String refused = write(context, target, row);
          if (refused != null) {
            return refused;
          }
        } else {
          target.isNew = false;
          sorter.add(row, target);
          if (++sortedRows % CHECKED_ROWS == 0) {
            context.killTaskIfInterrupted();
          }
        }
      } catch (IOException error) {
        return String.valueOf(error);
      }
    }
    try {
      for (int i = 0; i < direct.size(); i++) {
        finish(context, (NativeTarget) direct.get(i));
      }
      return writeSorted(context, router, sorter.sorted());
    } catch (IOException error) {
      return String.valueOf(error);
    }
  }

  /** Open a partition for rows as they arrive, unless too many are open; row groups of later ones are smaller. */
  private boolean opens(NativeTarget target) {
    long room = Math.max(4 * LEAST_GROUP_BYTES, columns.getPaths().size() * COLUMN_BYTES);
    long most = Math.min(((Number) parsed.get("open")).longValue(), Math.max(1, memory / room));
    if (direct.size() >= most) {
      return false;
    }
    target.groupBytes = Math.max(LEAST_GROUP_BYTES, memory / (4 * (direct.size() + 1)));
    target.direct = true;
    direct.add(target);
    return true;
  }

  /** Write rows that are sorted by partition, with one open file. Return as write does. */
  private String writeSorted(TaskContext context, NativeRouter router, Iterator rows) throws IOException {
    NativeTarget last = null;
    while (rows != null && rows.hasNext()) {
      InternalRow row = (InternalRow) rows.next();
      NativeTarget target = router.target(row);
      if (target != last) {
        if (last != null) {
          finish(context, last);
        }
        target.groupBytes = memory;
        last = target;
      }
      String refused = write(context, target, row);
      if (refused != null) {
        return refused;
      }
    }
    if (last != null) {
      finish(context, last);
    }
    return null;
  }

  /** Write a row. Return the reason if the table cannot hold it, else null. */
  private String write(TaskContext context, NativeTarget target, InternalRow row) throws IOException {
    if (target.open == null) {
      target.open = newFile(target);
    }
    NativeFile open = target.open;
    String refused = checked.length == 0 ? null : check(row, open);
    if (refused != null) {
      return refused;
    }
    open.encoder.write(row);
    open.rows++;
    open.uncheckedRows++;
    if (row instanceof UnsafeRow) {
      open.uncheckedBytes += ((UnsafeRow) row).getSizeInBytes();
    }
    boolean full = open.rows >= targetRows;
    if (full || open.uncheckedRows >= CHECKED_ROWS || open.uncheckedBytes >= CHECKED_BYTES) {
      open.uncheckedRows = 0;
      open.uncheckedBytes = 0;
      context.killTaskIfInterrupted();
      if (full || open.encoder.getDataSize() >= targetBytes) {
        finish(context, target);
      }
    }
    return null;
  }

  /** Count NULLs and find NaN. Return the reason if the table cannot hold the row, else null. */
  private String check(InternalRow row, NativeFile open) {
    for (int i = 0; i < checked.length; i++) {
      int n = checked[i];
      NativeColumn column = all[n];
      if (row.isNullAt(n)) {
        if (column.required) {
          return "NULL in column " + n;
        }
        open.nulls[n]++;
      } else if (column.characters > 0) {
        if (row.getUTF8String(n).numBytes() > column.characters
            && row.getUTF8String(n).numChars() > column.characters) {
          return "a text of column " + n + " is too long";
        }
      } else if (column.bytes > 0) {
        if (row.getBinary(n).length > column.bytes) {
          return "a value of column " + n + " is too long";
        }
      } else if (column.bounded && !open.nan[n]) {
        if (column.kind.equals("float")) {
          open.nan[n] = Float.isNaN(row.getFloat(n));
        } else if (column.kind.equals("double")) {
          open.nan[n] = Double.isNaN(row.getDouble(n));
        }
      }
    }
    return null;
  }

  private NativeFile newFile(NativeTarget target) throws IOException {
    store.createDirectory(target.directory);
    String name = parsed.get("prefix") + UUID.randomUUID().toString().substring(19) + parsed.get("suffix");
    String path = target.directory + "/" + name;
    NativeEncoder builder = new NativeEncoder(store.newFile(path), columns);
    builder.withConf(configuration.value());
    builder.withCompressionCodec(CompressionCodecName.valueOf((String) parsed.get("codec")));
    builder.withRowGroupSize(Math.min(target.groupBytes, ((Number) parsed.get("group")).longValue()));
    builder.withRowGroupRowCountLimit(((Number) parsed.get("group_rows")).intValue());
    builder.withPageSize(((Number) parsed.get("page")).intValue());
    builder.withDictionaryPageSize(((Number) parsed.get("dictionary")).intValue());
    builder.withPageWriteChecksumEnabled(true);
    List plain = (List) parsed.get("plain");
    for (int i = 0; i < plain.size(); i++) {
      builder.withDictionaryEncoding((String) plain.get(i), false);
    }
    files.add(path);
    NativeFile file = new NativeFile(path, name, builder.build(), all.length);
    unfinished.add(file);
    return file;
  }

  /** Close the open file of a partition, if it has one, and describe it. */
  private void finish(TaskContext context, NativeTarget target) throws IOException {
    NativeFile file = target.open;
    if (file == null) {
      return;
    }
    target.open = null;
    unfinished.remove(file);
    file.encoder.close();
    LinkedHashMap description = new LinkedHashMap();
    description.put("partition", target.values);
    description.put("name", file.name);
    long size = store.size(file.path);
    description.put("size", Long.valueOf(size));
    description.put("rows", Long.valueOf(file.rows));
    ArrayList statistics = new ArrayList();
    List blocks = file.encoder.getFooter().getBlocks();
    for (int i = 0; i < all.length; i++) {
      statistics.add(statistics(all[i], blocks, file.nulls[i], file.nan[i]));
    }
    description.put("columns", statistics);
    described.add(description);
    context.taskMetrics().outputMetrics().setBytesWritten(
        context.taskMetrics().outputMetrics().bytesWritten() + size);
    context.taskMetrics().outputMetrics().setRecordsWritten(
        context.taskMetrics().outputMetrics().recordsWritten() + file.rows);
  }

  /** The number of NULLs and, if the column has bounds, the smallest and the largest value in Base64. */
  private static ArrayList statistics(NativeColumn column, List blocks, long nulls, boolean nan) throws IOException {
    ArrayList found = new ArrayList();
    if (column.isCounted()) {
      found.add(Long.valueOf(nulls));
      return found;
    }
    Statistics merged = null;
    long values = 0;
    for (int i = 0; i < blocks.size(); i++) {
      ColumnChunkMetaData chunk =
          (ColumnChunkMetaData) ((BlockMetaData) blocks.get(i)).getColumns().get(column.leaf);
      if (merged == null) {
        merged = chunk.getStatistics().copy();
      } else {
        merged.mergeStatistics(chunk.getStatistics());
      }
      values += chunk.getValueCount();
    }
    found.add(Long.valueOf(merged.getNumNulls()));
    if (column.bounded && !nan && merged.getNumNulls() < values) {
      if (!merged.hasNonNullValue()) {
        throw new IOException("the encoder has no bounds of stored column " + column.leaf);
      }
      found.add(bound(column, merged.getMinBytes()));
      found.add(bound(column, merged.getMaxBytes()));
    }
    return found;
  }

  /** A bound in Base64, cut between two characters if it is longer than the driver needs. */
  private static String bound(NativeColumn column, byte[] value) {
    int length = value.length;
    if (column.boundBytes > 0 && length > column.boundBytes) {
      length = column.boundBytes;
      while ((value[length] & 0xC0) == 0x80) {
        length--;
      }
    }
    return Base64.getEncoder().encodeToString(Arrays.copyOf(value, length));
  }

  /** Delete all files of the task. */
  private void discard() {
    for (int i = 0; unfinished != null && i < unfinished.size(); i++) {
      try {
        ((NativeFile) unfinished.get(i)).encoder.close();
      } catch (Throwable ignored) {
        // the file is deleted
      }
    }
    for (int i = 0; files != null && i < files.size(); i++) {
      try {
        store.delete((String) files.get(i));
      } catch (IOException ignored) {
        // orphan removal deletes the file
      }
    }
  }
}
