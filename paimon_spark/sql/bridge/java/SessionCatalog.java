package paimon.python;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogExtension;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/**
 * Paimon tables next to the tables of Spark's own catalog, under its name ``spark_catalog``.
 *
 * Spark's catalog has the databases. The format of a new table decides who stores it; an existing table is looked for
 * among the Paimon tables first, and a name is given once only.
 */
public class SessionCatalog extends Catalog implements CatalogExtension {
  private CatalogPlugin spark;

  public void setDelegateCatalog(CatalogPlugin delegate) {
    spark = delegate;
  }

  private TableCatalog tables() {
    return (TableCatalog) spark;
  }

  private SupportsNamespaces databases() {
    return (SupportsNamespaces) spark;
  }

  private boolean hasDatabase(String[] namespace) {
    return super.namespaceExists(namespace);
  }

  /** Return True for a Paimon table. A database that Spark dropped elsewhere hides its tables. */
  private boolean isOurs(Identifier table) {
    return hasDatabase(table.namespace()) && super.tableExists(table);
  }

  private static Object rethrown(Exception error) {
    Bridge.throwUnchecked(error);
    return null;
  }

  private static boolean isMissing(Exception error) {
    return error instanceof NoSuchTableException
        || error instanceof NoSuchNamespaceException
        || error instanceof NoSuchFunctionException;
  }

  // ---- tables

  public Identifier[] listTables(String[] namespace) {
    LinkedHashSet found = new LinkedHashSet();
    try {
      found.addAll(Arrays.asList(tables().listTables(namespace)));
    } catch (Exception error) {
      rethrown(error);
    }
    if (hasDatabase(namespace)) {
      found.addAll(Arrays.asList(super.listTables(namespace)));
    }
    return (Identifier[]) found.toArray(new Identifier[0]);
  }

  public boolean tableExists(Identifier table) {
    return isOurs(table) || tables().tableExists(table);
  }

  public Table loadTable(Identifier table) {
    try {
      return super.loadTable(table);
    } catch (Exception error) {
      if (!isMissing(error)) {
        return (Table) rethrown(error);
      }
    }
    try {
      return tables().loadTable(table);
    } catch (Exception error) {
      return (Table) rethrown(error);
    }
  }

  public Table loadTable(Identifier table, String version) {
    try {
      return super.loadTable(table, version);
    } catch (Exception error) {
      if (!isMissing(error)) {
        return (Table) rethrown(error);
      }
    }
    try {
      return tables().loadTable(table, version);
    } catch (Exception error) {
      return (Table) rethrown(error);
    }
  }

  public Table loadTable(Identifier table, long microseconds) {
    try {
      return super.loadTable(table, microseconds);
    } catch (Exception error) {
      if (!isMissing(error)) {
        return (Table) rethrown(error);
      }
    }
    try {
      return tables().loadTable(table, microseconds);
    } catch (Exception error) {
      return (Table) rethrown(error);
    }
  }

  public Table createTable(Identifier table, TableInfo info) {
    try {
      if (makesOurs(table, info)) {
        return super.createTable(table, info);
      }
      return tables().createTable(table, info);
    } catch (Exception error) {
      return (Table) rethrown(error);
    }
  }

  public StagedTable stageCreate(Identifier table, TableInfo info) {
    return makesOurs(table, info) ? super.stageCreate(table, info) : unsupported(info, "CREATE TABLE ... AS SELECT");
  }

  public StagedTable stageReplace(Identifier table, TableInfo info) {
    return makesOurs(table, info) ? super.stageReplace(table, info) : unsupported(info, "REPLACE TABLE");
  }

  public StagedTable stageCreateOrReplace(Identifier table, TableInfo info) {
    return makesOurs(table, info)
        ? super.stageCreateOrReplace(table, info)
        : unsupported(info, "CREATE OR REPLACE TABLE");
  }

  private static StagedTable unsupported(TableInfo info, String statement) {
    throw new UnsupportedOperationException(
        statement
            + " of format "
            + info.properties().get("provider")
            + " is not possible in spark_catalog while it has Paimon tables: create the table, then insert");
  }

  /** Return True if a new table is a Paimon table, and make its database. Throw if the other side has its name. */
  private boolean makesOurs(Identifier table, TableInfo info) {
    boolean ours = "paimon".equalsIgnoreCase((String) info.properties().get("provider"));
    if (ours ? tables().tableExists(table) : isOurs(table)) {
      rethrown(new TableAlreadyExistsException(table));
    }
    if (ours && !hasDatabase(table.namespace())) {
      if (!databases().namespaceExists(table.namespace())) {
        rethrown(new NoSuchNamespaceException(table.namespace()));
      }
      super.createNamespace(table.namespace(), Collections.emptyMap());
    }
    return ours;
  }

  public Table createTableLike(Identifier table, TableInfo info, Table source) {
    if (makesOurs(table, info)) {
      return super.createTableLike(table, info, source);
    }
    return createTable(table, info);
  }

  public Table alterTable(Identifier table, TableChange[] changes) {
    try {
      return isOurs(table) ? super.alterTable(table, changes) : tables().alterTable(table, changes);
    } catch (Exception error) {
      return (Table) rethrown(error);
    }
  }

  public boolean dropTable(Identifier table) {
    return isOurs(table) ? super.dropTable(table) : tables().dropTable(table);
  }

  public boolean purgeTable(Identifier table) {
    return isOurs(table) ? super.purgeTable(table) : tables().purgeTable(table);
  }

  public void invalidateTable(Identifier table) {
    tables().invalidateTable(table);
  }

  public void renameTable(Identifier from, Identifier to) {
    try {
      boolean ours = isOurs(from);
      if (ours ? tables().tableExists(to) : isOurs(to)) {
        throw new TableAlreadyExistsException(to);
      }
      if (ours) {
        super.renameTable(from, to);
      } else {
        tables().renameTable(from, to);
      }
    } catch (Exception error) {
      rethrown(error);
    }
  }

  // ---- functions

  public Identifier[] listFunctions(String[] namespace) {
    ArrayList found = new ArrayList();
    try {
      found.addAll(Arrays.asList(((FunctionCatalog) spark).listFunctions(namespace)));
    } catch (Exception error) {
      rethrown(error);
    }
    return (Identifier[]) found.toArray(new Identifier[0]);
  }

  public UnboundFunction loadFunction(Identifier function) {
    try {
      return super.loadFunction(function);
    } catch (Exception error) {
      if (!isMissing(error)) {
        return (UnboundFunction) rethrown(error);
      }
    }
    try {
      return ((FunctionCatalog) spark).loadFunction(function);
    } catch (Exception error) {
      return (UnboundFunction) rethrown(error);
    }
  }

  // ---- databases

  public String[] defaultNamespace() {
    return spark.defaultNamespace();
  }

  public String[][] listNamespaces() {
    try {
      return databases().listNamespaces();
    } catch (Exception error) {
      return (String[][]) rethrown(error);
    }
  }

  public String[][] listNamespaces(String[] namespace) {
    try {
      return databases().listNamespaces(namespace);
    } catch (Exception error) {
      return (String[][]) rethrown(error);
    }
  }

  public boolean namespaceExists(String[] namespace) {
    return databases().namespaceExists(namespace);
  }

  public Map loadNamespaceMetadata(String[] namespace) {
    try {
      return databases().loadNamespaceMetadata(namespace);
    } catch (Exception error) {
      return (Map) rethrown(error);
    }
  }

  public void createNamespace(String[] namespace, Map metadata) {
    try {
      databases().createNamespace(namespace, metadata);
    } catch (Exception error) {
      rethrown(error);
    }
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    try {
      databases().alterNamespace(namespace, changes);
    } catch (Exception error) {
      rethrown(error);
    }
  }

  /** Drop a database with its Paimon tables first: with tables and without CASCADE, nothing is dropped. */
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    try {
      if (!cascade && hasDatabase(namespace) && tables().listTables(namespace).length > 0) {
        return databases().dropNamespace(namespace, cascade);  // fails, and says so as Spark does
      }
      if (hasDatabase(namespace)) {
        super.dropNamespace(namespace, cascade);
      }
      return databases().dropNamespace(namespace, cascade);
    } catch (Exception error) {
      rethrown(error);
      return false;
    }
  }
}
