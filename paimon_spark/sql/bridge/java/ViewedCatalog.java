package paimon.python;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Relation;
import org.apache.spark.sql.connector.catalog.RelationCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.View;

/** A catalog that also stores views, since Spark 4.3. */
public class ViewedCatalog extends Catalog implements RelationCatalog {
  public Relation loadRelation(Identifier name) {
    Object found = found(name, null, null);
    return found instanceof String ? (Relation) view((String) found) : (Relation) (Table) found;
  }

  public Table loadTable(Identifier name) {
    Relation found = loadRelation(name);
    if (!(found instanceof Table)) {
      Bridge.throwUnchecked(new NoSuchTableException(name));
    }
    return (Table) found;
  }

  public View loadView(Identifier name) {
    Object found = call("load_view", new Object[] {Trees.parts(name)});
    if (found == null) {
      Bridge.throwUnchecked(new NoSuchViewException(name));
    }
    return view((String) found);
  }

  public boolean viewExists(Identifier name) {
    return call("load_view", new Object[] {Trees.parts(name)}) != null;
  }

  public Identifier[] listViews(String[] namespace) {
    return (Identifier[]) call("list_views", new Object[] {namespace});
  }

  public View createView(Identifier name, View view) {
    call("create_view", new Object[] {name, described(view)});
    return view;
  }

  public View replaceView(Identifier name, View view) {
    call("replace_view", new Object[] {name, described(view)});
    return view;
  }

  public boolean dropView(Identifier name) {
    return ((Boolean) call("drop_view", new Object[] {Trees.parts(name)})).booleanValue();
  }

  public void renameView(Identifier from, Identifier to) {
    call("rename_view", new Object[] {from, to});
  }

  /** Return a view as JSON: its columns as Spark's JSON of a struct, its query, and where Spark looks for its tables. */
  private static String described(View view) {
    LinkedHashMap found = new LinkedHashMap();
    found.put("schema", view.schema().json());
    found.put("query", view.queryText());
    found.put("catalog", view.currentCatalog());
    found.put("namespace", view.currentNamespace());
    found.put("configs", view.sqlConfigs());
    found.put("mode", view.schemaMode());
    found.put("columns", view.queryColumnNames());
    found.put("properties", view.properties());
    return Trees.json(found);
  }

  /** Return the view that a text describes, in the form of `described`. */
  private static View view(String json) {
    Map given = (Map) Trees.parsed(json);
    View.Builder builder = new View.Builder();
    builder.withSchema(Trees.struct((String) given.get("schema")));
    builder.withProperties((Map) given.get("properties"));
    builder.withQueryText((String) given.get("query"));
    builder.withCurrentCatalog((String) given.get("catalog"));
    builder.withCurrentNamespace(texts(given, "namespace"));
    builder.withSqlConfigs((Map) given.get("configs"));
    builder.withSchemaMode((String) given.get("mode"));
    builder.withQueryColumnNames(texts(given, "columns"));
    return builder.build();
  }

  private static String[] texts(Map given, String key) {
    return (String[]) ((List) given.get(key)).toArray(new String[0]);
  }
}
