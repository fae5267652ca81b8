package paimon.python;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet;
import org.apache.spark.sql.catalyst.expressions.variant.VariantPathParser$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.VariantMetadata$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.types.VariantType$;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Lets Spark's own scan read the paths that a query extracts from variants, instead of whole variants.
 *
 * A variant of which a query uses only paths becomes a struct with a field for each path. Spark's Parquet reader fills it
 * from the typed columns of shredded variants. It decodes the other columns, too, but does not put whole variants
 * together, which takes longer. Variants that are not shredded are read faster as a whole.
 *
 * The scan may read rows that the query drops, or whose extraction the query skips, so it must not raise errors of casts.
 * It extracts the value of a `variant_get` as a variant, and the query casts the variant to its type. A
 * `try_variant_get` is extracted with its type.
 */
class PaimonVariantRule extends Rule {
  /** Spark's reader casts extracted values by generated code only: ScalarCastHelper has no other way. */
  private static final String FACTORY = "spark.sql.codegen.factoryMode";

  public TreeNode apply(TreeNode plan) {
    Object pushes = SQLConf.get().getConf(SQLConf$.MODULE$.PUSH_VARIANT_INTO_SCAN());
    boolean compiles = !SQLConf.get().getConfString(FACTORY, "FALLBACK").equalsIgnoreCase("NO_CODEGEN");
    return Boolean.TRUE.equals(pushes) && compiles ? replaced((LogicalPlan) plan) : plan;
  }

  private static LogicalPlan replaced(LogicalPlan plan) {
    if (plan instanceof Project || plan instanceof Aggregate) {
      LogicalPlan found = extracting(plan);
      if (found != null) {
        return found;
      }
    }
    if (plan instanceof Filter && !isFilter(plan)) {
      return plan;  // after a runtime filter, Python may choose another source than Spark's own scan
    }
    List children = children(plan);
    ArrayList found = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < children.size(); i++) {
      LogicalPlan child = (LogicalPlan) children.get(i);
      found.add(replaced(child));
      changed |= found.get(i) != child;
    }
    return changed ? (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(found).toSeq()) : plan;
  }

  /** The plan with a scan of paths; null: it is not a projection or an aggregation over such a scan. */
  private static LogicalPlan extracting(LogicalPlan plan) {
    ArrayList nodes = new ArrayList();
    nodes.add(plan);
    LogicalPlan node = (LogicalPlan) children(plan).get(0);
    while (isFilter(node) || isSelection(node)) {
      nodes.add(node);
      node = (LogicalPlan) children(node).get(0);
    }
    if (!(node instanceof DataSourceV2ScanRelation)) {
      return null;
    }
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
    if (!(relation.scan() instanceof PaimonScan) || !((PaimonScan) relation.scan()).isShredded()) {
      return null;
    }
    VariantPaths paths = new VariantPaths(CollectionConverters.asJava((Seq) relation.output()));
    for (int i = 0; i < nodes.size() && !paths.isEmpty(); i++) {
      if (i == 0 || !(nodes.get(i) instanceof Project)) {
        List expressions = CollectionConverters.asJava((Seq) ((LogicalPlan) nodes.get(i)).expressions());
        for (int j = 0; j < expressions.size(); j++) {
          paths.visit((Expression) expressions.get(j));
        }
      }
    }
    paths.choose();
    if (paths.isEmpty()) {
      return null;
    }
    PaimonScan scan = ((PaimonScan) relation.scan()).extracting(paths.columns(), paths.toString());
    LogicalPlan result = paths.relation(relation, scan);
    for (int i = nodes.size() - 1; i >= 0; i--) {
      result = paths.rewritten((LogicalPlan) nodes.get(i), result);
    }
    return result;
  }

  /** True for a filter that is not a runtime filter of a join. */
  private static boolean isFilter(LogicalPlan plan) {
    return plan instanceof Filter && !PaimonDivideRule.isOfJoin(((Filter) plan).condition());
  }

  /** True for a projection that only chooses columns. */
  private static boolean isSelection(LogicalPlan plan) {
    if (!(plan instanceof Project)) {
      return false;
    }
    List columns = CollectionConverters.asJava((Seq) ((Project) plan).projectList());
    for (int i = 0; i < columns.size(); i++) {
      if (!(columns.get(i) instanceof AttributeReference)) {
        return false;
      }
    }
    return true;
  }

  private static List children(LogicalPlan plan) {
    return CollectionConverters.asJava((Seq) plan.children());
  }
}

/**
 * The paths that a query extracts from the variants of a scan.
 *
 * A variant, or a struct around variants, has a key: the id of its column, and the ordinals of the fields on the way.
 */
class VariantPaths {
  private final List output;
  /** By the key of a variant, the fields of its struct by their identity. */
  private final LinkedHashMap variants = new LinkedHashMap();
  private final TreeSet whole = new TreeSet();
  private final ArrayList described = new ArrayList();
  private final HashMap replaced = new HashMap();

  /** @param output the columns of the scan */
  VariantPaths(List output) {
    this.output = output;
    for (int i = 0; i < output.size(); i++) {
      Attribute column = (Attribute) output.get(i);
      addVariants(key(column), column.dataType());
    }
  }

  private void addVariants(String key, DataType type) {
    if (type instanceof VariantType) {
      variants.put(key, new LinkedHashMap());
    } else if (type instanceof StructType && !VariantMetadata$.MODULE$.isVariantStruct((StructType) type)) {
      StructField[] fields = ((StructType) type).fields();
      for (int i = 0; i < fields.length; i++) {
        addVariants(key + i + ".", fields[i].dataType());
      }
    }
  }

  boolean isEmpty() {
    return variants.isEmpty();
  }

  /** The key of a column, or of a field of a column; null for other expressions. */
  private static String key(Expression expression) {
    if (expression instanceof Attribute) {
      return ((Attribute) expression).exprId().id() + ":";
    }
    if (expression instanceof GetStructField) {
      String outer = key(((GetStructField) expression).child());
      return outer == null ? null : outer + ((GetStructField) expression).ordinal() + ".";
    }
    return null;
  }

  /** Note the paths that an expression extracts, and the variants that it uses as a whole. */
  void visit(Expression expression) {
    if (expression instanceof VariantGet) {
      VariantGet get = (VariantGet) expression;
      String key = key(get.child());
      Map fields = key == null ? null : (Map) variants.get(key);
      if (fields != null && path(get) != null) {
        if (!fields.containsKey(identity(get))) {
          fields.put(identity(get), field(get, fields.size()));
        }
        return;
      }
    }
    List children = CollectionConverters.asJava((Seq) expression.children());
    boolean isNullTest = expression instanceof IsNull || expression instanceof IsNotNull;
    if (isNullTest && key((Expression) children.get(0)) != null) {
      return;  // the struct is null where the variant is
    }
    String key = key(expression);
    if (key != null) {
      whole.add(key);
      return;
    }
    for (int i = 0; i < children.size(); i++) {
      visit((Expression) children.get(i));
    }
  }

  /** Drop the variants that are read as a whole. Call this once, after all visits. */
  void choose() {
    for (Iterator entries = variants.entrySet().iterator(); entries.hasNext(); ) {
      Map.Entry entry = (Map.Entry) entries.next();
      boolean isWhole = ((Map) entry.getValue()).isEmpty();
      for (Iterator keys = whole.iterator(); keys.hasNext(); ) {
        isWhole |= ((String) entry.getKey()).startsWith((String) keys.next());
      }
      if (isWhole) {
        entries.remove();
      }
    }
    for (int i = 0; i < output.size(); i++) {
      Attribute column = (Attribute) output.get(i);
      DataType type = type(key(column), column.name(), column.dataType());
      if (type != column.dataType()) {
        Attribute other =
            new AttributeReference(
                column.name(),
                type,
                column.nullable(),
                column.metadata(),
                NamedExpression$.MODULE$.newExprId(),
                column.qualifier());
        replaced.put(column.exprId(), other);
      }
    }
  }

  /** The type of a column or field with structs instead of variants; the same object if it has none. */
  private DataType type(String key, String name, DataType type) {
    Map paths = (Map) variants.get(key);
    if (paths != null) {
      StructField[] fields = (StructField[]) paths.values().toArray(new StructField[0]);
      for (int i = 0; i < fields.length; i++) {
        Metadata about = fields[i].metadata().getMetadata(VariantMetadata$.MODULE$.METADATA_KEY());
        String path = about.getString(VariantMetadata$.MODULE$.PATH_KEY());
        described.add(name + ": " + path + " as " + fields[i].dataType().simpleString());
      }
      return new StructType(fields);
    }
    if (!(type instanceof StructType) || VariantMetadata$.MODULE$.isVariantStruct((StructType) type)) {
      return type;
    }
    StructField[] fields = (StructField[]) ((StructType) type).fields().clone();
    boolean changed = false;
    for (int i = 0; i < fields.length; i++) {
      DataType inner = type(key + i + ".", name + "." + fields[i].name(), fields[i].dataType());
      if (inner != fields[i].dataType()) {
        fields[i] = new StructField(fields[i].name(), inner, fields[i].nullable(), fields[i].metadata());
        changed = true;
      }
    }
    return changed ? new StructType(fields) : type;
  }

  /** The types of the columns with structs instead of variants, by name. */
  Map columns() {
    HashMap types = new HashMap();
    for (Iterator columns = replaced.values().iterator(); columns.hasNext(); ) {
      Attribute column = (Attribute) columns.next();
      types.put(column.name(), column.dataType());
    }
    return types;
  }

  public String toString() {
    return String.join(", ", (String[]) described.toArray(new String[0]));
  }

  LogicalPlan relation(DataSourceV2ScanRelation relation, PaimonScan scan) {
    Object[] fields = new Object[relation.productArity()];
    for (int i = 0; i < fields.length; i++) {
      Object field = relation.productElement(i);
      fields[i] = field == relation.scan() ? scan : field == relation.output() ? rewritten((Seq) field) : field;
    }
    return (LogicalPlan) relation.makeCopy(fields);
  }

  /** A projection, filter or aggregation over another child. */
  LogicalPlan rewritten(LogicalPlan plan, LogicalPlan child) {
    Object before = plan.children().apply(0);
    Object[] fields = new Object[plan.productArity()];
    for (int i = 0; i < fields.length; i++) {
      Object field = plan.productElement(i);
      if (field == before) {
        fields[i] = child;
      } else if (field instanceof Expression) {
        fields[i] = rewritten((Expression) field);
      } else {
        fields[i] = field instanceof Seq ? rewritten((Seq) field) : field;
      }
    }
    return (LogicalPlan) plan.makeCopy(fields);
  }

  private Seq rewritten(Seq expressions) {
    List given = CollectionConverters.asJava(expressions);
    ArrayList found = new ArrayList();
    for (int i = 0; i < given.size(); i++) {
      found.add(rewritten((Expression) given.get(i)));
    }
    return CollectionConverters.asScala(found).toSeq();
  }

  private Expression rewritten(Expression expression) {
    if (expression instanceof Attribute) {
      Object other = replaced.get(((Attribute) expression).exprId());
      return other == null ? expression : (Expression) other;
    }
    if (expression instanceof VariantGet) {
      VariantGet get = (VariantGet) expression;
      String key = key(get.child());
      Map fields = key == null ? null : (Map) variants.get(key);
      StructField field = fields == null || path(get) == null ? null : (StructField) fields.get(identity(get));
      if (field != null) {
        int ordinal = Integer.parseInt(field.name());
        Expression part = new GetStructField(rewritten(get.child()), ordinal, Option.empty());
        Literal root = new Literal(UTF8String.fromString("$"), StringType$.MODULE$);
        return castsLater(get) ? new VariantGet(part, root, get.targetType(), true, get.timeZoneId()) : part;
      }
    }
    List children = CollectionConverters.asJava((Seq) expression.children());
    ArrayList found = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < children.size(); i++) {
      found.add(rewritten((Expression) children.get(i)));
      changed |= found.get(i) != children.get(i);
    }
    return changed ? (Expression) expression.withNewChildren(CollectionConverters.asScala(found).toSeq()) : expression;
  }

  /** True if the query must cast the value, because the cast may fail. */
  private static boolean castsLater(VariantGet get) {
    return get.failOnError() && !(get.targetType() instanceof VariantType);
  }

  private static DataType extractedType(VariantGet get) {
    return castsLater(get) ? VariantType$.MODULE$ : get.targetType();
  }

  /** The constant path; null: it is not constant or invalid, or it is the path of the whole variant. */
  static String path(VariantGet get) {
    if (!get.path().foldable() || get.timeZoneId().isEmpty()) {
      return null;
    }
    Object value = get.path().eval((InternalRow) null);
    Option parsed = value == null ? Option.empty() : VariantPathParser$.MODULE$.parse(value.toString());
    boolean isPart = parsed.isDefined() && ((Object[]) parsed.get()).length > 0;
    return isPart ? value.toString() : null;
  }

  private static String identity(VariantGet get) {
    return Trees.json(new String[] {path(get), extractedType(get).json(), (String) get.timeZoneId().get()});
  }

  private static StructField field(VariantGet get, int ordinal) {
    VariantMetadata$ keys = VariantMetadata$.MODULE$;
    MetadataBuilder about = new MetadataBuilder().putString(keys.PATH_KEY(), path(get));
    about.putBoolean(keys.FAIL_ON_ERROR_KEY(), false);
    about.putString(keys.TIME_ZONE_ID_KEY(), (String) get.timeZoneId().get());
    Metadata metadata = new MetadataBuilder().putMetadata(keys.METADATA_KEY(), about.build()).build();
    return new StructField(Integer.toString(ordinal), extractedType(get), true, metadata);
  }
}
