package paimon.python;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog that Spark creates by its class name, in every session that uses the catalog's name. */
public class Catalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog, FunctionCatalog {
  private String name;

  Object call(String method, Object[] arguments) {
    Object handler = Bridge.HANDLERS.get(name);
    if (handler == null) {
      throw new IllegalStateException(
          "catalog " + name + " is not installed in this driver: call paimon_spark.catalog(spark, \"" + name + "\", ...)");
    }
    return Bridge.call(handler, method, arguments);
  }

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    PaimonDivideRule.install(Sessions.active(null));
    PaimonTranslationRule.install(Sessions.active(null));
  }

  public String name() {
    return name;
  }

  public String[] defaultNamespace() {
    return new String[] {"default"};
  }

  public Set capabilities() {
    Set found = new java.util.HashSet();
    found.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
    found.add(TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT);  // so that our error names an alternative
    return found;
  }

  public Identifier[] listTables(String[] namespace) {
    return (Identifier[]) call("list_tables", new Object[] {namespace});
  }

  public boolean tableExists(Identifier table) {
    return ((Boolean) call("table_exists", new Object[] {table})).booleanValue();
  }

  public Table loadTable(Identifier table) {
    return loaded(table, null, null);
  }

  public Table loadTable(Identifier table, String version) {
    return loaded(table, version, null);
  }

  public Table loadTable(Identifier table, long microseconds) {
    return loaded(table, null, Long.valueOf(microseconds));
  }

  /*CHANGELOG*/
  public org.apache.spark.sql.connector.catalog.Changelog loadChangelog(
      Identifier table,
      org.apache.spark.sql.connector.catalog.ChangelogContext context,
      CaseInsensitiveStringMap options) {
    Object[] arguments = new Object[] {Trees.parts(table), PaimonChangelog.described(context), Trees.of(options)};
    return (org.apache.spark.sql.connector.catalog.Changelog) call("load_changelog", arguments);
  }
  /*END*/

  private Table loaded(Identifier table, String version, Long microseconds) {
    return (Table) found(table, version, microseconds);
  }

  /**
   * Return a table, or the text that describes a view. Python gets no Java object, because each access to its parts would
   * cost a call.
   */
  Object found(Identifier table, String version, Long microseconds) {
    return call("load_table", new Object[] {Trees.parts(table), version, microseconds});
  }

  public Table createTable(Identifier table, TableInfo info) {
    return (Table) call("create_table", described(table, info));
  }

  public StagedTable stageCreate(Identifier table, TableInfo info) {
    return (StagedTable) call("stage_create", described(table, info));
  }

  public StagedTable stageReplace(Identifier table, TableInfo info) {
    return (StagedTable) call("stage_replace", described(table, info));
  }

  public StagedTable stageCreateOrReplace(Identifier table, TableInfo info) {
    return (StagedTable) call("stage_create_or_replace", described(table, info));
  }

  private Object[] described(Identifier table, TableInfo info) {
    return new Object[] {table, info.columns(), info.partitions(), info.properties(), info.constraints()};
  }

  public Table createTableLike(Identifier table, TableInfo info, Table source) {
    return (Table) call("create_table_like", new Object[] {table, info, source});
  }

  public Table alterTable(Identifier table, TableChange[] changes) {
    return (Table) call("alter_table", new Object[] {table, changes});
  }

  public boolean dropTable(Identifier table) {
    return ((Boolean) call("drop_table", new Object[] {table})).booleanValue();
  }

  public boolean purgeTable(Identifier table) {
    return dropTable(table);
  }

  public void renameTable(Identifier from, Identifier to) {
    call("rename_table", new Object[] {from, to});
  }

  public UnboundProcedure loadProcedure(Identifier procedure) {
    return (UnboundProcedure) call("load_procedure", new Object[] {procedure});
  }

  public Identifier[] listProcedures(String[] namespace) {
    return (Identifier[]) call("list_procedures", new Object[] {namespace});
  }

  public Identifier[] listFunctions(String[] namespace) {
    return (Identifier[]) call("list_functions", new Object[] {namespace});
  }

  public UnboundFunction loadFunction(Identifier function) {
    SqlFunctions.checkNotDefined(name, function);
    return (UnboundFunction) call("load_function", new Object[] {function});
  }

  public String[][] listNamespaces() {
    Object[] names = (Object[]) call("list_databases", new Object[0]);
    String[][] found = new String[names.length][];
    for (int i = 0; i < names.length; i++) {
      found[i] = new String[] {(String) names[i]};
    }
    return found;
  }

  public String[][] listNamespaces(String[] namespace) {
    if (namespace.length == 0) {
      return listNamespaces();
    }
    loadNamespaceMetadata(namespace);
    return new String[0][];
  }

  public boolean namespaceExists(String[] namespace) {
    return ((Boolean) call("database_exists", new Object[] {namespace})).booleanValue();
  }

  public Map loadNamespaceMetadata(String[] namespace) {
    return (Map) call("load_database", new Object[] {namespace});
  }

  public void createNamespace(String[] namespace, Map metadata) {
    call("create_database", new Object[] {namespace, metadata});
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    call("alter_database", new Object[] {namespace, changes});
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return ((Boolean) call("drop_database", new Object[] {namespace, Boolean.valueOf(cascade)})).booleanValue();
  }
}
