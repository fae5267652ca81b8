package paimon.python;

import java.math.BigDecimal;
import java.util.HexFormat;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsAtomicPartitionManagement;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** A table with partition columns. Python sees a partition as an array of texts of its internal values, or null. */
public class PartitionedTable extends PaimonTable implements SupportsAtomicPartitionManagement {
  private final StructType keys;
  private final Object handler;

  public PartitionedTable(String description, Object handler) {
    super(description, handler);
    this.keys = Description.of(description).partitions;
    this.handler = handler;
  }

  public StructType partitionSchema() {
    return keys;
  }

  public void createPartitions(InternalRow[] partitions, Map[] properties) {
    for (int i = 0; i < partitions.length; i++) {
      if (!properties[i].isEmpty()) {
        replacePartitionMetadata(partitions[i], properties[i]);
      }
    }
    Bridge.call(handler, "create_partitions", new Object[] {texts(partitions)});
  }

  public boolean dropPartitions(InternalRow[] partitions) {
    return ((Boolean) Bridge.call(handler, "drop_partitions", new Object[] {texts(partitions)})).booleanValue();
  }

  public boolean purgePartition(InternalRow partition) {
    return dropPartition(partition);
  }

  public boolean purgePartitions(InternalRow[] partitions) {
    return dropPartitions(partitions);
  }

  public boolean truncatePartition(InternalRow partition) {
    return truncatePartitions(new InternalRow[] {partition});
  }

  public boolean truncatePartitions(InternalRow[] partitions) {
    return ((Boolean) Bridge.call(handler, "truncate_partitions", new Object[] {texts(partitions)})).booleanValue();
  }

  public void replacePartitionMetadata(InternalRow partition, Map properties) {
    Bridge.call(handler, "set_partition_properties", new Object[] {texts(keys, partition)});
  }

  public Map loadPartitionMetadata(InternalRow partition) {
    return (Map) Bridge.call(handler, "load_partition", new Object[] {texts(keys, partition)});
  }

  /** The partitions that have these values in these columns. */
  public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
    StructType given = new StructType();
    for (int i = 0; i < names.length; i++) {
      given = given.add(keys.apply(names[i]));
    }
    Object[] found = (Object[]) Bridge.call(handler, "list_partitions", new Object[] {names, texts(given, values)});
    InternalRow[] rows = new InternalRow[found.length];
    for (int i = 0; i < found.length; i++) {
      rows[i] = row((Object[]) found[i]);
    }
    return rows;
  }

  private String[][] texts(InternalRow[] partitions) {
    String[][] found = new String[partitions.length][];
    for (int i = 0; i < partitions.length; i++) {
      found[i] = texts(keys, partitions[i]);
    }
    return found;
  }

  private String[] texts(StructType columns, InternalRow values) {
    StructField[] fields = columns.fields();
    String[] texts = new String[fields.length];
    for (int i = 0; i < fields.length; i++) {
      texts[i] = values.isNullAt(i) ? null : text(values.get(i, fields[i].dataType()));
    }
    return texts;
  }

  private InternalRow row(Object[] texts) {
    StructField[] fields = keys.fields();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      values[i] = texts[i] == null ? null : value((String) texts[i], fields[i].dataType());
    }
    return new GenericInternalRow(values);
  }

  private static String text(Object value) {
    return value instanceof byte[] ? HexFormat.of().formatHex((byte[]) value) : String.valueOf(value);
  }

  private static Object value(String text, DataType type) {
    if (type instanceof StringType) {
      return UTF8String.fromString(text);
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf(text);
    }
    if (type instanceof BinaryType) {
      return HexFormat.of().parseHex(text);
    }
    boolean time = type.typeName().startsWith("time(");
    if (time || type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
      return Long.valueOf(text);
    }
    if (type instanceof ShortType) {
      return Short.valueOf(text);
    }
    if (type instanceof ByteType) {
      return Byte.valueOf(text);
    }
    if (type instanceof BooleanType) {
      return Boolean.valueOf(text);
    }
    if (type instanceof FloatType) {
      return Float.valueOf(text);
    }
    if (type instanceof DoubleType) {
      return Double.valueOf(text);
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.apply(
          new scala.math.BigDecimal(new BigDecimal(text)), decimal.precision(), decimal.scale());
    }
    throw new UnsupportedOperationException("a partition column of type " + type.sql() + " cannot be listed");
  }
}
