package paimon.python;

import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** A procedure: Spark binds and folds the arguments, Python gets their values and returns rows. */
public class PaimonProcedure implements UnboundProcedure, BoundProcedure {
  private final String name;
  private final String description;
  private final ProcedureParameter[] parameters;
  private final StructType result;
  private final Object handler;

  public PaimonProcedure(
      String name, String description, ProcedureParameter[] parameters, StructType result, Object handler) {
    this.name = name;
    this.description = description;
    this.parameters = parameters;
    this.result = result;
    this.handler = handler;
  }

  public String name() {
    return name;
  }

  public String description() {
    return description;
  }

  /** Bind, or throw Python's error: Spark would hide the reason why a procedure cannot be loaded. */
  public BoundProcedure bind(StructType arguments) {
    if (parameters == null) {
      Bridge.call(handler, "refuse", new Object[0]);
    }
    return this;
  }

  public boolean isDeterministic() {
    return false;
  }

  public ProcedureParameter[] parameters() {
    return parameters;
  }

  public Iterator call(InternalRow arguments) {
    Object[] values = new Object[parameters.length];
    for (int i = 0; i < parameters.length; i++) {
      Object value = arguments.isNullAt(i) ? null : arguments.get(i, parameters[i].dataType());
      values[i] = value instanceof UTF8String ? value.toString() : value;
    }
    Object[] rows = (Object[]) Bridge.call(handler, "call", values);
    InternalRow[] found = new InternalRow[rows.length];
    for (int i = 0; i < rows.length; i++) {
      found[i] = row((Object[]) rows[i]);
    }
    return Collections.singletonList(new PaimonRows(found, result)).iterator();
  }

  private InternalRow row(Object[] values) {
    StructField[] fields = result.fields();
    Object[] found = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      Object value = values[i];
      if (value instanceof String) {
        value = UTF8String.fromString((String) value);
      } else if (value instanceof Number && fields[i].dataType().equals(DataTypes.LongType)) {
        value = Long.valueOf(((Number) value).longValue());  // py4j converts small numbers to Integer
      }
      found[i] = value;
    }
    return new GenericInternalRow(found);
  }
}

/** The rows that a procedure returned. */
class PaimonRows implements LocalScan {
  private final InternalRow[] rows;
  private final StructType columns;

  PaimonRows(InternalRow[] rows, StructType columns) {
    this.rows = rows;
    this.columns = columns;
  }

  public InternalRow[] rows() {
    return rows;
  }

  public StructType readSchema() {
    return columns;
  }

  public String description() {
    return "rows of a procedure";
  }
}
