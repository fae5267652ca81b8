package paimon.python;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BitwiseAnd;
import org.apache.spark.sql.catalyst.expressions.BitwiseGet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GetArrayItem;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.ShiftRight;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.ByteType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The masks of a scan: the rows that no deletion vector deletes and no merge supersedes.
 *
 * The condition on rows is an expression of Spark's own classes, which executors have: `file < 0 OR
 * getbit(masks[file][position >> 6], position & 63) = 1`. Each such file has a mask with one bit for each row. The masks
 * are a literal of the plan. A position outside of the mask of its file is an error.
 */
public class PositionMask {
  private static final DataType MASK = new ArrayType(LongType$.MODULE$, false);
  private static final DataType MASKS = new ArrayType(MASK, false);

  /** Masks by key, least recently used first. */
  private static final LinkedHashMap CACHE = new LinkedHashMap(16, 0.75f, true);
  private static long cachedBytes = 0;

  private final Object[] arrays;
  /** The number of live rows of each mask. */
  final long[] liveRows;

  private PositionMask(Object[] arrays, List rows) {
    this.arrays = arrays;
    liveRows = new long[arrays.length];
    for (int i = 0; i < arrays.length; i++) {
      liveRows[i] = liveRows((UnsafeArrayData) arrays[i], ((Number) rows.get(i)).longValue());
    }
  }

  /** The masks of a handler, from the cache or from Python. */
  static PositionMask of(Object handler) {
    Map described = (Map) Trees.parsed((String) Bridge.call(handler, "masks", new Object[0]));
    return new PositionMask(arrays(handler, described), (List) described.get("rows"));
  }

  /**
   * Return the condition on two columns of a scan.
   *
   * @param position the position of the row in its file
   * @param file the index of the file's mask; negative: all rows of the file are returned
   */
  Expression condition(Attribute position, Attribute file) {
    Expression masks = new Literal(value(), MASKS);
    Expression checked = new AssertNotNull(position, CollectionConverters.asScala(new ArrayList()).toSeq());
    Expression mask = new GetArrayItem(masks, file, true);
    Expression word = new GetArrayItem(mask, new ShiftRight(checked, number(6)), true);
    Expression low = new BitwiseAnd(checked, new Literal(Long.valueOf(63), LongType$.MODULE$));
    Expression bit = new BitwiseGet(word, new Cast(low, IntegerType$.MODULE$, Option.empty()));
    Expression lives = new EqualTo(bit, new Literal(Byte.valueOf((byte) 1), ByteType$.MODULE$));
    return new Or(new LessThan(file, number(0)), lives);
  }

  /**
   * Return the files of a scan without the files that have no live row.
   *
   * @param sizes bytes by path
   * @param indexes the index of a file's mask by path
   * @param liveRows the number of live rows of each mask
   */
  static Map liveFiles(Map sizes, Map indexes, long[] liveRows) {
    LinkedHashMap live = new LinkedHashMap(sizes);
    for (Iterator paths = sizes.keySet().iterator(); paths.hasNext(); ) {
      Object path = paths.next();
      Number index = (Number) indexes.get(path);
      if (index != null && liveRows[index.intValue()] == 0) {
        live.remove(path);
      }
    }
    return live;
  }

  /** Return true if the cache has all masks with these keys, a JSON array. */
  public static boolean holds(String keys) {
    synchronized (CACHE) {
      return CACHE.keySet().containsAll((List) Trees.parsed(keys));
    }
  }

  /** Return the number of live rows of each mask of a handler, as a JSON array. */
  public static String liveRows(Object handler) {
    long[] counts = of(handler).liveRows;
    ArrayList numbers = new ArrayList();
    for (int i = 0; i < counts.length; i++) {
      numbers.add(Long.valueOf(counts[i]));
    }
    return Trees.json(numbers);
  }

  /** Return the number of live rows of a mask; the bits beyond the last row are 1. */
  private static long liveRows(UnsafeArrayData mask, long rows) {
    long count = rows - 64L * mask.numElements();
    for (int word = 0; word < mask.numElements(); word++) {
      count += Long.bitCount(mask.getLong(word));
    }
    return count;
  }

  private static Literal number(int value) {
    return new Literal(Integer.valueOf(value), IntegerType$.MODULE$);
  }

  /** The masks as a value of Spark. */
  private Object value() {
    InternalRow row = new GenericInternalRow(new Object[] {new GenericArrayData(arrays)});
    StructType type = new StructType().add("masks", MASKS, false);
    return ((UnsafeRow) UnsafeProjection$.MODULE$.create(type).apply(row)).copy().getArray(0);
  }

  /** The masks, from the cache or from Python. */
  private static Object[] arrays(Object handler, Map described) {
    List keys = (List) described.get("keys");
    Object[] arrays = new Object[keys.size()];
    ArrayList missing = new ArrayList();
    synchronized (CACHE) {
      for (int i = 0; i < arrays.length; i++) {
        arrays[i] = CACHE.get(keys.get(i));
        if (arrays[i] == null) {
          missing.add(Integer.valueOf(i));
        }
      }
    }
    if (!missing.isEmpty()) {
      byte[] bytes = (byte[]) Bridge.call(handler, "read_masks", new Object[] {Trees.json(missing)});
      ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
      List rows = (List) described.get("rows");
      for (int i = 0; i < missing.size(); i++) {
        int index = ((Integer) missing.get(i)).intValue();
        long[] words = new long[(int) ((((Number) rows.get(index)).longValue() + 63) / 64)];
        buffer.asLongBuffer().get(words);
        buffer.position(buffer.position() + 8 * words.length);
        arrays[index] = UnsafeArrayData.fromPrimitiveArray(words);
        keep(keys.get(index), (UnsafeArrayData) arrays[index], ((Number) described.get("memory")).longValue());
      }
      if (buffer.hasRemaining()) {
        throw new IllegalStateException("masks are followed by " + buffer.remaining() + " bytes");
      }
    }
    return arrays;
  }

  /** Add a mask to the cache, and remove the least recently used masks beyond a number of bytes. */
  private static void keep(Object key, UnsafeArrayData mask, long most) {
    synchronized (CACHE) {
      UnsafeArrayData previous = (UnsafeArrayData) CACHE.put(key, mask);
      cachedBytes += mask.getSizeInBytes() - (previous == null ? 0 : previous.getSizeInBytes());
      Iterator eldest = CACHE.values().iterator();
      while (cachedBytes > most && eldest.hasNext()) {
        cachedBytes -= ((UnsafeArrayData) eldest.next()).getSizeInBytes();
        eldest.remove();
      }
    }
  }
}
