package paimon.python;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.rpc.IsolatedThreadSafeRpcEndpoint;
import org.apache.spark.rpc.RpcAddress;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.UnsafeExternalRowSorter;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators;
import org.apache.spark.util.collection.unsafe.sort.RecordComparator;
import scala.Function1;
import scala.PartialFunction;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * The directories of the partitions of one job. Python names each directory once, because only the engine knows how a
 * value is spelled. A task in the JVM of the driver finds the object by the id of the job; a task in another JVM asks
 * the driver through Spark's RPC.
 */
class NativePartitions {
  private static final ConcurrentHashMap JOBS = new ConcurrentHashMap();

  private final Object handler;
  private final RpcEndpointRef driver;
  private final ConcurrentHashMap directories = new ConcurrentHashMap();
  private RpcEnv environment = null;
  private RpcEndpointRef served = null;

  private NativePartitions(Object handler, RpcEndpointRef driver) {
    this.handler = handler;
    this.driver = driver;
  }

  /** Name directories for the tasks of a job in the JVM of the driver. */
  static void begin(String job, Object handler) {
    JOBS.put(job, new NativePartitions(handler, null));
  }

  /** Name directories also for tasks in other JVMs; return the address that they ask, as host and port. */
  static String serve(String job) {
    NativePartitions partitions = (NativePartitions) JOBS.get(job);
    partitions.environment = environment();
    PartitionNames names = new PartitionNames(partitions.environment, partitions);
    partitions.served = partitions.environment.setupEndpoint(endpoint(job), names);
    return partitions.environment.address().hostPort();
  }

  static void end(String job) {
    NativePartitions partitions = (NativePartitions) JOBS.remove(job);
    if (partitions.served != null) {
      partitions.environment.stop(partitions.served);
    }
  }

  /** Return the directories of a job for a task. `address`: the driver's, for a task in another JVM. */
  static NativePartitions of(String job, String address) {
    NativePartitions partitions = (NativePartitions) JOBS.get(job);
    if (partitions != null) {
      return partitions;
    }
    int colon = address.lastIndexOf(':');
    RpcAddress driver = new RpcAddress(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
    return new NativePartitions(null, environment().setupEndpointRef(driver, endpoint(job)));
  }

  private static String endpoint(String job) {
    return "paimon-" + job;
  }

  /**
   * Return the RPC environment of this JVM.
   *
   * Methods of SparkEnv name classes that PySpark does not include since Spark 4.3, so neither Janino nor reflection can
   * look at the class. A method handle looks at one method.
   */
  private static RpcEnv environment() {
    try {
      Class type = Class.forName("org.apache.spark.SparkEnv");
      MethodHandles.Lookup lookup = MethodHandles.publicLookup();
      Object env = lookup.findStatic(type, "get", MethodType.methodType(type)).invokeWithArguments(new Object[0]);
      MethodHandle rpc = lookup.findVirtual(type, "rpcEnv", MethodType.methodType(RpcEnv.class));
      return (RpcEnv) rpc.invokeWithArguments(new Object[] {env});
    } catch (Throwable error) {
      throw new IllegalStateException(error);
    }
  }

  /** Return the directory of a partition; empty if only the engine can write it. */
  String directory(String values) {
    String known = (String) directories.get(values);
    if (known == null) {
      known =
          driver == null
              ? (String) Bridge.call(handler, "directory", new Object[] {values})
              : (String) driver.askSync(values, ClassTag$.MODULE$.apply(String.class));
      directories.put(values, known);
    }
    return known;
  }
}

/** The driver's end: it answers the values of a partition with its directory, in a thread of its own. */
class PartitionNames implements IsolatedThreadSafeRpcEndpoint {
  private final RpcEnv environment;
  private final NativePartitions partitions;

  PartitionNames(RpcEnv environment, NativePartitions partitions) {
    this.environment = environment;
    this.partitions = partitions;
  }

  public RpcEnv rpcEnv() {
    return environment;
  }

  public PartialFunction receiveAndReply(RpcCallContext call) {
    return new PartitionName(partitions, call);
  }
}

/** The answer to one call of a task. */
class PartitionName extends AbstractPartialFunction {
  private final NativePartitions partitions;
  private final RpcCallContext call;

  PartitionName(NativePartitions partitions, RpcCallContext call) {
    this.partitions = partitions;
    this.call = call;
  }

  public boolean isDefinedAt(Object values) {
    return values instanceof String;
  }

  public Object applyOrElse(Object values, Function1 otherwise) {
    if (!isDefinedAt(values)) {
      return otherwise.apply(values);
    }
    try {
      call.reply(partitions.directory((String) values));
    } catch (Throwable error) {
      call.sendFailure(new IllegalStateException(String.valueOf(error)));  // the error itself may not serialize
    }
    return BoxedUnit.UNIT;
  }
}

/** A partition of a task, or the whole table: the directory of its files and the open file. */
class NativeTarget {
  /** The values of the partition as a JSON array of texts in Base64, and null; null: the table has no partitions. */
  final String values;
  final String directory;
  /** The number of the partition in its task, in order of arrival. */
  final long number;
  /** True if rows go to the file as they arrive; false: they are sorted by partition first. */
  boolean direct = false;
  /** False if rows are waiting to be sorted. */
  boolean isNew = true;
  /** The most bytes of a row group of its files. */
  long groupBytes;
  NativeFile open = null;
  /** The values of the partition, as the tasks find it; null: the table has no partitions. */
  UnsafeRow key = null;

  NativeTarget(String values, String directory, long number) {
    this.values = values;
    this.directory = directory;
    this.number = number;
  }
}

/** Finds the partition of each row of a task. Partitions are compared by their bytes, as in the engine. */
class NativeRouter {
  private static final long MOST = 1L << 22;
  /** The least average number of rows of a partition in a row, for which a sort does not pay. */
  private static final long LEAST_RUN = 64;

  private final NativePartitions directories;
  private final DataType[] types;
  private final UnsafeProjection projection;
  private final HashMap targets = new HashMap();
  private NativeTarget last = null;
  private long rows = 0;
  private long runs = 0;

  NativeRouter(NativePartitions directories, StructType columns, List positions) {
    this.directories = directories;
    types = new DataType[positions.size()];
    ArrayList references = new ArrayList();
    for (int i = 0; i < types.length; i++) {
      int position = ((Number) positions.get(i)).intValue();
      types[i] = columns.apply(position).dataType();
      references.add(new BoundReference(position, types[i], true));
    }
    projection = UnsafeProjection.create((Seq) CollectionConverters.asScala(references).toSeq());
  }

  /** Return the partition of a row; null if only the engine can write it. */
  NativeTarget target(InternalRow row) {
    UnsafeRow key = projection.apply(row);
    rows++;
    if (last != null && last.key.equals(key)) {
      return last;
    }
    runs++;
    NativeTarget found = (NativeTarget) targets.get(key);
    if (found == null) {
      String values = values(key);
      String directory = targets.size() < MOST ? directories.directory(values) : "";
      if (directory.isEmpty()) {
        return null;
      }
      found = new NativeTarget(values, directory, targets.size());
      found.key = key.copy();
      targets.put(found.key, found);
    }
    last = found;
    return found;
  }

  /** Return true if the rows so far arrived in long runs of one partition. */
  boolean isGrouped() {
    return runs <= 1 || rows >= LEAST_RUN * runs;
  }

  /** Return the values of a partition, in Parquet's plain encoding. */
  private String values(UnsafeRow key) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < types.length; i++) {
      found.add(key.isNullAt(i) ? null : Base64.getEncoder().encodeToString(value(key, i, types[i])));
    }
    return Trees.json(found);
  }

  private static byte[] value(UnsafeRow key, int i, DataType type) {
    if (type instanceof StringType) {
      return key.getUTF8String(i).getBytes();
    }
    if (type instanceof BinaryType) {
      return key.getBinary(i);
    }
    if (type instanceof BooleanType) {
      return new byte[] {(byte) (key.getBoolean(i) ? 1 : 0)};
    }
    if (type instanceof ByteType) {
      return little(4, key.getByte(i));
    }
    if (type instanceof ShortType) {
      return little(4, key.getShort(i));
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return little(4, key.getInt(i));
    }
    if (type instanceof FloatType) {
      return little(4, Float.floatToIntBits(key.getFloat(i)));
    }
    if (type instanceof DoubleType) {
      return little(8, Double.doubleToLongBits(key.getDouble(i)));
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      if (decimal.precision() > 18) {
        return key.getDecimal(i, decimal.precision(), decimal.scale()).toJavaBigDecimal().unscaledValue().toByteArray();
      }
      return little(8, key.getDecimal(i, decimal.precision(), decimal.scale()).toUnscaledLong());
    }
    return little(8, key.getLong(i));
  }

  private static byte[] little(int bytes, long value) {
    ByteBuffer buffer = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    if (bytes == 4) {
      buffer.putInt((int) value);
    } else {
      buffer.putLong(value);
    }
    return buffer.array();
  }
}

/**
 * Rows of many partitions, which are sorted by partition and spilled to local disk if memory is short. The rows of a
 * partition keep their order: the number of the partition and the number of the row are one sort key.
 */
class NativeSorter extends UnsafeExternalRowSorter.PrefixComputer implements Supplier {
  private static final int ROW_BITS = 40;

  private final TaskContext context;
  private final StructType columns;
  private final UnsafeExternalRowSorter.PrefixComputer.Prefix prefix =
      new UnsafeExternalRowSorter.PrefixComputer.Prefix();
  private UnsafeProjection projection = null;
  private UnsafeExternalRowSorter rows = null;
  private long number = 0;

  NativeSorter(TaskContext context, StructType columns) {
    this.context = context;
    this.columns = columns;
  }

  void add(InternalRow row, NativeTarget target) throws IOException {
    if (rows == null) {
      long page = context.taskMemoryManager().pageSizeBytes();
      rows =
          UnsafeExternalRowSorter.createWithRecordComparator(columns, this, PrefixComparators.LONG, this, page, true);
    }
    prefix.value = (target.number << ROW_BITS) | number;
    number++;
    if (row instanceof UnsafeRow) {
      rows.insertRow((UnsafeRow) row);
      return;
    }
    if (projection == null) {
      projection = UnsafeProjection.create(columns);
    }
    rows.insertRow(projection.apply(row));
  }

  /** Return the rows in the order of their partitions; null: there are none. */
  Iterator sorted() throws IOException {
    return rows == null ? null : rows.sort();
  }

  public UnsafeExternalRowSorter.PrefixComputer.Prefix computePrefix(InternalRow row) {
    return prefix;
  }

  public Object get() {
    return new SameOrder();
  }
}

/** No two sort keys are equal, so the rows themselves are never compared. */
class SameOrder extends RecordComparator {
  public int compare(Object left, long leftOffset, int leftLength, Object right, long rightOffset, int rightLength) {
    return 0;
  }
}
