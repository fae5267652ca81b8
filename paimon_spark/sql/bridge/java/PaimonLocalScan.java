package paimon.python;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Rows that Python has computed from metadata; times are Spark's internal numbers. */
class PaimonLocalScan implements LocalScan {
  private final StructType schema;
  private final InternalRow[] rows;
  private final String description;

  private PaimonLocalScan(StructType schema, InternalRow[] rows, String description) {
    this.schema = schema;
    this.rows = rows;
    this.description = description;
  }

  static PaimonLocalScan of(String json) {
    Map given = (Map) Trees.parsed(json);
    StructType schema = (StructType) DataType.fromJson((String) given.get("schema"));
    List listed = (List) given.get("rows");
    InternalRow[] rows = new InternalRow[listed.size()];
    for (int i = 0; i < rows.length; i++) {
      Object[] values = new Object[schema.length()];
      for (int c = 0; c < values.length; c++) {
        Object value = ((List) listed.get(i)).get(c);
        values[c] = value == null ? null : parsed(schema.fields()[c].dataType(), (String) value);
      }
      rows[i] = new GenericInternalRow(values);
    }
    return new PaimonLocalScan(schema, rows, (String) given.get("description"));
  }

  static Object parsed(DataType type, String text) {
    String name = type.typeName();
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.fromString(UTF8String.fromString(text)).toPrecision(
          decimal.precision(), decimal.scale(), Decimal.ROUND_HALF_UP(), false, null);
    } else if (name.equals("byte")) {
      return Byte.valueOf(text);
    } else if (name.equals("short")) {
      return Short.valueOf(text);
    } else if (name.equals("integer") || name.equals("date")) {
      return Integer.valueOf(text);
    } else if (name.equals("long") || name.startsWith("timestamp")) {
      return Long.valueOf(text);
    } else if (name.equals("boolean")) {
      return Boolean.valueOf(text);
    } else if (name.equals("string")) {
      return UTF8String.fromString(text);
    }
    throw new IllegalArgumentException("values of type " + name + " are not computed from metadata");
  }

  public StructType readSchema() {
    return schema;
  }

  public String description() {
    return description;
  }

  public InternalRow[] rows() {
    return rows;
  }
}
