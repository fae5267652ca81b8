"""The contract of the bridge: for each Java class that calls Python, the methods that it may call.

A handler derives from the endpoints that it serves. ``tests/spark/sql/test_bridge.py`` compares each ``Bridge.call`` of
``java/*.java`` with the endpoint of its class. Arguments whose type is `Any` are objects of Java.
"""

from collections.abc import Mapping
from typing import Any, Protocol


class CatalogEndpoint(Protocol):
    """The methods that ``Catalog.java`` calls."""

    def list_tables(self, namespace: Any) -> Any:
        """Return the identifiers of the tables of a database as a Java array."""

    def table_exists(self, identifier: Any) -> bool:
        """Return True if the table exists."""

    def load_table(self, name: str, version: str | None, microseconds: int | None) -> Any:
        """Return a table, at a version or a time if one is not `None`. ``name``: the parts of the name, as JSON.

        For a view, return the text that describes it, as `ViewsEndpoint.load_view` does.
        """

    def load_changelog(self, name: str, context: str, options: str) -> Any:
        """Return the changes of a table. All arguments are JSON; ``context``: see ``PaimonChangelog.java``."""

    def create_table(self, identifier: Any, columns: Any, partitions: Any, properties: Any, constraints: Any) -> Any:
        """Create a table and return it."""

    def stage_create(self, identifier: Any, columns: Any, partitions: Any, properties: Any, constraints: Any) -> Any:
        """Return a new table that becomes visible together with its rows."""

    def stage_replace(self, identifier: Any, columns: Any, partitions: Any, properties: Any, constraints: Any) -> Any:
        """Return a table that replaces the rows and the schema of an existing table."""

    def stage_create_or_replace(
        self, identifier: Any, columns: Any, partitions: Any, properties: Any, constraints: Any
    ) -> Any:
        """Return a new table as `stage_create` does, or one that replaces an existing table."""

    def create_table_like(self, identifier: Any, info: Any, source: Any) -> Any:
        """Create a table with the columns, partitions and properties of another table."""

    def alter_table(self, identifier: Any, changes: Any) -> Any:
        """Change the schema or the options of a table and return it."""

    def drop_table(self, identifier: Any) -> bool:
        """Delete a table; return False if it is missing."""

    def rename_table(self, old: Any, new: Any) -> None:
        """Rename a table."""

    def load_procedure(self, identifier: Any) -> Any:
        """Return a procedure."""

    def list_procedures(self, namespace: Any) -> Any:
        """Return the identifiers of all procedures as a Java array."""

    def load_function(self, identifier: Any) -> Any:
        """Return a function."""

    def list_functions(self, namespace: Any) -> Any:
        """Return the identifiers of the functions as a Java array."""

    def list_databases(self) -> Any:
        """Return the names of the databases as a Java array."""

    def database_exists(self, namespace: Any) -> bool:
        """Return True if the database exists."""

    def load_database(self, namespace: Any) -> Any:
        """Return the properties of a database as a Java map."""

    def create_database(self, namespace: Any, metadata: Any) -> None:
        """Create a database."""

    def alter_database(self, namespace: Any, changes: Any) -> None:
        """Set and remove properties of a database."""

    def drop_database(self, namespace: Any, cascade: bool) -> bool:
        """Delete a database; `cascade`: with its tables."""


class ViewsEndpoint(Protocol):
    """The methods that ``ViewedCatalog.java`` and ``PaimonViewRule.java`` call.

    A view is a JSON text, see ``ViewedCatalog.java``; so are the parts of a name.
    """

    def load_view(self, name: str) -> str | None:
        """Return a view; `None` if it does not exist."""

    def list_views(self, namespace: Any) -> Any:
        """Return the identifiers of the views of a database as a Java array."""

    def create_view(self, identifier: Any, view: str) -> None:
        """Create a view."""

    def replace_view(self, identifier: Any, view: str) -> None:
        """Replace a view."""

    def drop_view(self, name: str) -> bool:
        """Drop a view; return False if it does not exist."""

    def rename_view(self, old: Any, new: Any) -> None:
        """Rename a view."""


class TableEndpoint(Protocol):
    """The methods that ``PaimonTable.java`` calls."""

    def truncate(self) -> bool:
        """Remove every row."""

    def stored_schema(self) -> str:
        """Return the stored schema as JSON."""


class PartitionsEndpoint(Protocol):
    """The methods that ``PartitionedTable.java`` calls. A partition is an array of texts of its internal values."""

    def list_partitions(self, names: Any, values: Any) -> Any:
        """Return the partitions that have these values in these columns, as arrays of texts."""

    def create_partitions(self, partitions: Any) -> None:
        """Add partitions without rows. Raises UnsupportedError if partitions of the table need rows."""

    def drop_partitions(self, partitions: Any) -> bool:
        """Remove the rows of partitions in one commit; return False if none of the partitions has rows."""

    def truncate_partitions(self, partitions: Any) -> bool:
        """Remove the rows of partitions in one commit; return False if none of them has rows, or exists."""

    def load_partition(self, values: Any) -> Any:
        """Return the properties of a partition as a Java map."""

    def set_partition_properties(self, values: Any) -> None:
        """Raise UnsupportedError."""


class ReadEndpoint(Protocol):
    """The methods that ``PaimonScanBuilder.java`` calls. Filters, orders, options and settings are JSON."""

    def decided_filters(self, trees: str) -> str:
        """Return a text with one digit per filter: '1' if partition values decide the filter, else '0'."""

    def aggregate(self, trees: str, aggregation: str, options: str, settings: str) -> str | None:
        """Return the rows of an aggregation that metadata can answer; `None`: Spark computes the aggregation."""

    def scan(self, required: str | None, trees: str, limit: int, order: str | None, options: str, settings: str) -> Any:
        """Return the scan as ``Tagged.java``: "local" with its rows as JSON, or "scan" with a ScanEndpoint.

        A "scan" also has the properties that Spark needs for planning, as JSON, and possibly the result of its method
        `source` for no filters.
        """


class ScanEndpoint(Protocol):
    """The methods that ``PaimonScan.java`` calls."""

    def source(self, trees: str) -> Any:
        """Return the source of the rows as ``Tagged.java``: "native", "rows", "tasks" or "source" with its data.

        ``trees``: the runtime filters of a join, as JSON; files without matching rows are skipped.
        """

    def parts(self) -> Any:
        """Return a Java array of the scans that replace this scan, as ``Tagged.java``; `None`: nothing replaces it.

        Two scans share the rows. A single one (the second item is null) needs a filter, see MaskEndpoint.
        """

    def explain(self) -> str | None:
        """Return the explanation of the scan for EXPLAIN; `None`: the scan cannot be explained."""

    def stream_source(self) -> Any:
        """Return the scan of the Python data source, which supports streams."""

    def statistics(self) -> str:
        """Return the rows and bytes of the scan, and the statistics of its columns, as JSON."""


class MaskEndpoint(Protocol):
    """The methods that ``PositionMask.java`` calls."""

    def masks(self) -> str:
        """Return a JSON object: "keys" and "rows" of the masks by index, and "memory", the most bytes to cache."""

    def read_masks(self, numbers: str) -> bytes:
        """Return the masks with these indexes (a JSON array), one after another."""


class FormatEndpoint(Protocol):
    """The methods that ``FormatTable.java`` calls for ``spark.read.format("paimon")``.

    Options are JSON, and so is the session of the read: its id, its settings and its parallelism.
    """

    def schema(self, options: str, session: str) -> str | None:
        """Return the columns of a batch read as JSON; `None`: the Python data source reads."""

    def filter_of_plan(self, text: str, session: str) -> str | None:
        """Return the option `filter` of a batch read if Spark must evaluate it in the plan, else `None`."""

    def reads(self, options: str, schema: str, session: str) -> Any:
        """Return the ReadEndpoint of a batch read of these columns; `None`: the Python data source reads."""


class FormatWriteEndpoint(Protocol):
    """The methods that ``FormatWrite.java`` calls for ``df.write.format("paimon").save(path)``."""

    def write(self, rows: Any, overwrite: bool, options: str) -> None:
        """Write the rows of a Java Dataset in one commit. Options are JSON."""


class WriteEndpoint(Protocol):
    """The methods that ``PaimonWrite.java`` calls. The mode is append, overwrite or dynamic."""

    def explain_write(self, columns: str, options: str) -> str:
        """Return the writer of the rows of a statement, for EXPLAIN. The columns and the options are JSON."""

    def check_write(self, mode: str, trees: str, options: str) -> None:
        """Raise the error of `insert` for invalid options or an invalid condition on the rows to replace."""

    def insert(self, rows: Any, mode: str, trees: str, options: str) -> None:
        """Write the rows of a Java Dataset in one commit."""

    def source_write(self, mode: str, info: Any, options: str) -> Any:
        """Return a write of the Python data source, for a dynamic overwrite or a stream."""


class MergeSchemaEndpoint(Protocol):
    """The methods that ``PaimonMergeSchemaRule.java`` calls."""

    def with_merged_columns(self, columns: str, options: str, demanded: bool, by_name: bool) -> Any:
        """Return the table with the schema that a write would give it.

        True: the schema does not change; `None`: it must not change.
        """

    def check_missing_columns(self, columns: str, options: str) -> None:
        """Warn of columns that the rows of a write by name lack, or refuse the write."""


class RowLevelEndpoint(Protocol):
    """The methods that ``PaimonRowLevelRule.java`` calls, directly or through ``PaimonCommand.java``."""

    def check_write(self, mode: str, trees: str, options: str) -> None:
        """Raise the error of `overwrite_partitions` for an invalid dynamic overwrite."""

    def explain_row_changes(self, trees: str | None) -> str:
        """Describe for EXPLAIN how DELETE, UPDATE and MERGE change the rows of the table."""

    def overwrite_partitions(self, session: Any, write: Any) -> Any:
        """Replace the partitions of the rows of a statement (``OverwritePlan.java``); return no row."""

    def delete_rows(self, session: Any, plan: Any) -> Any:
        """Run DELETE and return its row of counts."""

    def update_rows(self, session: Any, plan: Any) -> Any:
        """Run UPDATE and return its row of counts."""

    def merge_rows(self, session: Any, plan: Any) -> Any:
        """Run MERGE INTO and return its row of counts."""


class StagedEndpoint(Protocol):
    """The methods that ``Staged.java`` calls."""

    def publish(self) -> None:
        """Publish the rows and the schema."""

    def discard(self) -> None:
        """Delete the written files."""


class FilesEndpoint(Protocol):
    """The methods that ``NativeRows.java`` calls."""

    def matching(self, trees: str) -> str:
        """Return the paths of the files that may have rows for which all filters are true, as JSON."""


class DirectoriesEndpoint(Protocol):
    """The methods that ``NativePartitions.java`` calls."""

    def directory(self, values: str) -> str:
        """Return the directory of the files of a partition; empty: only the engine can write it.

        `values`: the values of the partition columns in Parquet's plain encoding, a JSON array of Base64 and null.
        """


class StatementsEndpoint(Protocol):
    """The methods that ``PaimonParser.java`` calls, directly or through ``PaimonCommand.java``."""

    def parse(self, text: str) -> Any:
        """Return the title and the columns of a statement as a Java array; `None`: the text is for Spark's parser."""

    def run(self, session: Any, text: str) -> Any:
        """Run a statement in a session and return its rows as a Java array of arrays."""


class TableFunctionsEndpoint(Protocol):
    """The methods that the class ``PaimonTableFunction`` calls."""

    def changes(self, name: str, arguments: Any) -> Any:
        """Return the name of the table, and the read options or two tags to compare, as a Java array."""


class FunctionEndpoint(Protocol):
    """The methods that the class ``PaimonCalls`` calls."""

    def expression(self, constants: Any, columns: Any, types: Any) -> Any:
        """Return the expression of a function as a Java Column.

        Args:
            constants: the values of the first arguments, an array; which must be constants, the function says.
            columns: the arguments, an array of Columns.
            types: the types of the arguments, an array of texts.
        """


class ProcedureEndpoint(Protocol):
    """The methods that ``PaimonProcedure.java`` calls."""

    def call(self, *values: Any) -> Any:
        """Run the procedure in the session that issued the statement; return its rows as a Java array of arrays."""


class MissingProcedureEndpoint(Protocol):
    """The methods that ``PaimonProcedure.java`` calls for a procedure that does not exist."""

    def refuse(self) -> None:
        """Raise the error that explains why the procedure is missing."""


ENDPOINTS: Mapping[str, tuple[type, ...]] = {
    "Catalog": (CatalogEndpoint,),
    "FormatTable": (FormatEndpoint,),
    "FormatWrite": (FormatWriteEndpoint,),
    "MatchingFiles": (FilesEndpoint,),
    "NativePartitions": (DirectoriesEndpoint,),
    "PaimonCalls": (FunctionEndpoint,),
    "PaimonCommand": (WriteEndpoint,),
    "PaimonMergeSchemaRule": (MergeSchemaEndpoint,),
    "PaimonParser": (StatementsEndpoint,),
    "PaimonProcedure": (ProcedureEndpoint, MissingProcedureEndpoint),
    "PaimonRowLevelRule": (RowLevelEndpoint,),
    "PaimonScan": (ScanEndpoint,),
    "PaimonScanBuilder": (ReadEndpoint,),
    "PaimonTable": (TableEndpoint,),
    "PaimonTableFunction": (TableFunctionsEndpoint,),
    "PaimonWrite": (WriteEndpoint,),
    "PaimonWriteBuilder": (WriteEndpoint,),
    "PartitionedTable": (PartitionsEndpoint,),
    "PositionMask": (MaskEndpoint,),
    "SessionNamesRule": (CatalogEndpoint,),
    "Staged": (StagedEndpoint,),
    "ViewedCatalog": (CatalogEndpoint, ViewsEndpoint),
    "Views": (ViewsEndpoint,),
}
"""The endpoints that each Java class calls."""
_ALL = frozenset(endpoint for several in ENDPOINTS.values() for endpoint in several)


def endpoint_methods(handler: type[Any]) -> frozenset[str]:
    """Return the names of the methods that the endpoints of a class allow Java to call."""
    served = _ALL.intersection(handler.__mro__)
    return frozenset(name for kind in served for name in vars(kind) if not name.startswith("_"))
