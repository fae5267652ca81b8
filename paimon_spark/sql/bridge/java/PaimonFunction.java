package paimon.python;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A function of the catalog while Spark analyses a query. It is never evaluated: PaimonFunctionRule replaces it. */
public class PaimonFunction implements UnboundFunction, ScalarFunction {
  private final String name;
  private final DataType[] arguments;
  private final DataType result;
  final int constants;
  final Object handler;

  /** @param constants the number of arguments, from the first on, that must be constants */
  public PaimonFunction(String name, DataType[] arguments, DataType result, int constants, Object handler) {
    this.name = name;
    this.arguments = arguments;
    this.result = result;
    this.constants = constants;
    this.handler = handler;
  }

  public BoundFunction bind(StructType given) {
    StructField[] fields = given.fields();
    DataType[] types = new DataType[fields.length];
    for (int i = 0; i < types.length; i++) {
      types[i] = fields[i].dataType();
    }
    return new PaimonFunction(name, types, result, constants, handler);
  }

  public String name() {
    return name;
  }

  /** Spark compares the bucketing of two scans by this name. Equal values of different types have different hashes. */
  public String canonicalName() {
    StringBuilder found = new StringBuilder("paimon." + name);
    for (int i = 0; i < arguments.length; i++) {
      found.append(" ").append(arguments[i].sql());
    }
    return found.toString();
  }

  public String description() {
    return "a function of Paimon";
  }

  public DataType[] inputTypes() {
    return arguments;
  }

  public DataType resultType() {
    return result;
  }

  /** Operators of a plan go to executors with the partitioning of their scan, which executors do not use. Public: Janino
   * renames private methods. */
  public Object writeReplace() {
    return null;
  }

  public Object produceResult(InternalRow row) {
    throw new UnsupportedOperationException(name);
  }
}
