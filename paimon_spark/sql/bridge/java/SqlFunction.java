package paimon.python;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A SQL function of a catalog while Spark analyses a query. Spark counts the arguments when it replaces the call. */
public class SqlFunction extends PaimonFunction {
  private final Map parts;

  /** @param json the parts of the function, see SqlFunctions.call */
  public SqlFunction(String json) {
    this((Map) Trees.parsed(json), new DataType[0]);
  }

  private SqlFunction(Map parts, DataType[] arguments) {
    super((String) parts.get("name"), arguments, DataType.fromJson((String) parts.get("returns")), 0, null);
    this.parts = parts;
  }

  public BoundFunction bind(StructType given) {
    StructField[] fields = given.fields();
    DataType[] types = new DataType[fields.length];
    for (int i = 0; i < types.length; i++) {
      types[i] = fields[i].dataType();
    }
    return new SqlFunction(parts, types);
  }

  public String description() {
    Object comment = parts.get("comment");
    return comment == null ? "a SQL function" : (String) comment;
  }

  public boolean isDeterministic() {
    return ((Boolean) parts.get("deterministic")).booleanValue();
  }

  /** Spark looks for this method in the class of a function itself. */
  public Object produceResult(InternalRow row) {
    return super.produceResult(row);
  }

  Expression call(List arguments) {
    return SqlFunctions.call(parts, arguments);
  }
}
