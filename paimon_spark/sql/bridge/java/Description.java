package paimon.python;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils$;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The metadata of a table for Spark, parsed from one text, because a call to Python for each part takes longer. */
class Description {
  /** The cache, by text: a query loads a table several times, and parsing the text takes longer than sending it. */
  private static final LinkedHashMap KNOWN = new LinkedHashMap();
  private static final int MOST_KNOWN = 256;
  /** The key of the metadata of a text column with its declared type. */
  static final String DECLARED_TYPE = CharVarcharUtils$.MODULE$.CHAR_VARCHAR_TYPE_STRING_METADATA_KEY();
  /** With this setting, Spark neither pads nor checks these types as it does otherwise, and PySpark refuses them. */
  private static final String PRESERVES = "spark.sql.preserveCharVarcharTypeInfo";

  final String name;
  final Column[] columns;
  /** The columns of streams: texts with the declared types of CHAR and VARCHAR as metadata. */
  final Column[] streamed;
  /** True if a column has CHAR or VARCHAR. */
  final boolean hasLengths;
  final StructType metadata;
  final StructType partitions;
  final Map properties;
  final Set capabilities = new HashSet();

  /**
   * @param json "name"; "columns" as Spark's JSON of a struct, "comments" and "defaults" (SQL or null) in its order;
   *     "metadata" and "partitions", structs; "properties"; "capabilities", names
   */
  private Description(String json) {
    Map given = (Map) Trees.parsed(json);
    List comments = (List) given.get("comments");
    List defaults = (List) given.get("defaults");
    StructField[] fields = struct(given, "columns").fields();
    name = (String) given.get("name");
    StructField[] texts = CharVarcharUtils$.MODULE$.replaceCharVarcharWithStringInSchema(struct(given, "columns")).fields();
    columns = new Column[fields.length];
    streamed = new Column[fields.length];
    for (int i = 0; i < fields.length; i++) {
      String comment = (String) comments.get(i);
      ColumnDefaultValue value = usual((String) defaults.get(i), fields[i].dataType());
      String metadata = fields[i].metadata().contains(DECLARED_TYPE) ? fields[i].metadata().json() : null;
      columns[i] = column(fields[i], comment, value, metadata);
      streamed[i] = column(texts[i], comment, value, texts[i].metadata().json());
    }
    hasLengths = CharVarcharUtils$.MODULE$.hasCharVarchar(struct(given, "columns")) || json.contains(DECLARED_TYPE);
    metadata = struct(given, "metadata");
    partitions = struct(given, "partitions");
    properties = java.util.Collections.unmodifiableMap((Map) given.get("properties"));
    List able = (List) given.get("capabilities");
    for (int i = 0; i < able.size(); i++) {
      capabilities.add(TableCapability.valueOf((String) able.get(i)));
    }
  }

  static synchronized Description of(String json) {
    Description found = (Description) KNOWN.remove(json);
    if (found == null) {
      found = new Description(json);
    }
    if (found.hasLengths && Boolean.parseBoolean(SQLConf.get().getConfString(PRESERVES, "false"))) {
      throw new UnsupportedOperationException(
          found.name + " has columns of type CHAR or VARCHAR, which are not supported with " + PRESERVES
              + " = true: set it to false for this statement");
    }
    KNOWN.put(json, found);
    if (KNOWN.size() > MOST_KNOWN) {
      KNOWN.remove(KNOWN.keySet().iterator().next());
    }
    return found;
  }

  /** Janino cannot call a static method of an interface. */
  private static Column column(StructField field, String comment, ColumnDefaultValue value, String metadata) {
    Class[] types =
        new Class[] {String.class, DataType.class, boolean.class, String.class, ColumnDefaultValue.class, String.class};
    Object[] values =
        new Object[] {field.name(), field.dataType(), Boolean.valueOf(field.nullable()), comment, value, metadata};
    try {
      return (Column) Column.class.getMethod("create", types).invoke(null, values);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Rows that are older than the default contain NULL. */
  private static ColumnDefaultValue usual(String sql, DataType type) {
    return sql == null ? null : new ColumnDefaultValue(sql, (Literal) new LiteralValue(null, type));
  }

  private static StructType struct(Map given, String key) {
    return Trees.struct((String) given.get(key));
  }

  Transform[] partitioning() {
    String[] names = partitions.fieldNames();
    Transform[] found = new Transform[names.length];
    for (int i = 0; i < names.length; i++) {
      found[i] = Expressions.identity(Trees.quoted(names[i]));
    }
    return found;
  }
}
