package paimon.python;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.Paths;
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
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
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
  final Path path;
  final ParquetWriter encoder;
  final long[] nulls;
  final boolean[] nan;
  long rows = 0;

  NativeFile(Path path, ParquetWriter encoder, int columns) {
    this.path = path;
    this.encoder = encoder;
    nulls = new long[columns];
    nan = new boolean[columns];
  }
}

/**
 * A task that writes its rows to files of a table, and returns their descriptions as JSON.
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

  private final SerializableConfiguration configuration;
  private final String plan;
  private final byte[] footer;
  private final long memory;
  private transient Map parsed;
  private transient MessageType columns;
  private transient NativeColumn[] all;
  private transient int[] checked;
  private transient ArrayList files;
  private transient ArrayList described;
  private transient NativeFile open;

  /**
   * @param configuration the settings of the encoder
   * @param plan the plan of the files, as JSON
   * @param footer the footer of a file with the columns of the table
   * @param memory the most bytes of an encoded row group, at least 1 MB
   */
  NativeWriteTask(SerializableConfiguration configuration, String plan, byte[] footer, long memory) {
    this.memory = Math.max(LEAST_GROUP_BYTES, memory);
    this.configuration = configuration;
    this.plan = plan;
    this.footer = footer;
  }

  public Object apply(Object context, Object rows) {
    long start = System.nanoTime();
    try {
      prepare();
      String refused = write((TaskContext) context, (Iterator) rows);
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

  private void prepare() throws IOException {
    parsed = (Map) Trees.parsed(plan);
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
    open = null;
  }

  /** Write all rows. Return the reason if the table cannot hold one of them, or a file cannot be written, else null. */
  private String write(TaskContext context, Iterator rows) {
    long size = ((Number) parsed.get("size")).longValue();
    long most = ((Number) parsed.get("rows")).longValue();
    long uncheckedRows = 0;
    long uncheckedBytes = 0;
    while (rows.hasNext()) {
      InternalRow row = (InternalRow) rows.next();
      try {
        if (open == null) {
          open = newFile();
        }
        String refused = checked.length == 0 ? null : check(row);
        if (refused != null) {
          return refused;
        }
        open.encoder.write(row);
        open.rows++;
        uncheckedRows++;
        if (row instanceof UnsafeRow) {
          uncheckedBytes += ((UnsafeRow) row).getSizeInBytes();
        }
        if (uncheckedRows >= CHECKED_ROWS || uncheckedBytes >= CHECKED_BYTES || open.rows >= most) {
          uncheckedRows = 0;
          uncheckedBytes = 0;
          context.killTaskIfInterrupted();
          if (open.rows >= most || open.encoder.getDataSize() >= size) {
            finish(context);
          }
        }
      } catch (IOException error) {
        return String.valueOf(error);
      }
    }
    try {
      if (open != null) {
        finish(context);
      }
      return null;
    } catch (IOException error) {
      return String.valueOf(error);
    }
  }

  /** Count NULLs and find NaN. Return the reason if the table cannot hold the row, else null. */
  private String check(InternalRow row) {
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

  private NativeFile newFile() throws IOException {
    Path directory;
    try {
      directory = Paths.get((String) parsed.get("directory"));
      Files.createDirectory(directory);
    } catch (FileAlreadyExistsException exists) {
      directory = Paths.get((String) parsed.get("directory"));
    } catch (InvalidPathException error) {
      throw new IOException(error);  // Java lacks the characters of the path in this locale
    }
    String name = parsed.get("prefix") + UUID.randomUUID().toString().substring(19) + parsed.get("suffix");
    Path path = directory.resolve(name);
    NativeEncoder builder = new NativeEncoder(new LocalOutputFile(path), columns);
    builder.withConf(configuration.value());
    builder.withCompressionCodec(CompressionCodecName.valueOf((String) parsed.get("codec")));
    builder.withRowGroupSize(Math.min(memory, ((Number) parsed.get("group")).longValue()));
    builder.withRowGroupRowCountLimit(((Number) parsed.get("group_rows")).intValue());
    builder.withPageSize(((Number) parsed.get("page")).intValue());
    builder.withDictionaryPageSize(((Number) parsed.get("dictionary")).intValue());
    builder.withPageWriteChecksumEnabled(true);
    List plain = (List) parsed.get("plain");
    for (int i = 0; i < plain.size(); i++) {
      builder.withDictionaryEncoding((String) plain.get(i), false);
    }
    files.add(path);
    return new NativeFile(path, builder.build(), all.length);
  }

  /** Close the open file, and describe it. */
  private void finish(TaskContext context) throws IOException {
    NativeFile file = open;
    open = null;
    file.encoder.close();
    LinkedHashMap description = new LinkedHashMap();
    description.put("name", file.path.getFileName().toString());
    description.put("size", Long.valueOf(Files.size(file.path)));
    description.put("rows", Long.valueOf(file.rows));
    ArrayList statistics = new ArrayList();
    List blocks = file.encoder.getFooter().getBlocks();
    for (int i = 0; i < all.length; i++) {
      statistics.add(statistics(all[i], blocks, file.nulls[i], file.nan[i]));
    }
    description.put("columns", statistics);
    described.add(description);
    context.taskMetrics().outputMetrics().setBytesWritten(
        context.taskMetrics().outputMetrics().bytesWritten() + Files.size(file.path));
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
    NativeFile unfinished = open;
    open = null;
    if (unfinished != null) {
      try {
        unfinished.encoder.close();
      } catch (Throwable ignored) {
        // the file is deleted
      }
    }
    for (int i = 0; files != null && i < files.size(); i++) {
      try {
        Files.deleteIfExists((Path) files.get(i));
      } catch (IOException ignored) {
        // orphan removal deletes the file
      }
    }
  }
}
