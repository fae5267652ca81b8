"""The scans and writes of a catalog table."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from paimon_core import Catalog, Schema, Table
from paimon_core.engine import Identifier
from paimon_core.errors import UnsupportedError
from paimon_spark.merge_schema import merge_columns, with_merged_columns
from paimon_spark.options import catalog_option, pop_merge_rules, with_changed_options
from paimon_spark.row_level.run import describe_changes
from paimon_spark.sql.bridge.conversions import java_map, row_arrays
from paimon_spark.sql.bridge.endpoints import (
    MergeSchemaEndpoint,
    PartitionsEndpoint,
    RowLevelEndpoint,
    TableEndpoint,
    WriteEndpoint,
)
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.ddl.partitions import drop_partitions, list_partitions, partition_metadata
from paimon_spark.sql.ddl.schema import description, with_write_options
from paimon_spark.sql.reads.native_rows import describe_target_read
from paimon_spark.sql.reads.table_reads import TableReads
from paimon_spark.sql.session_options import (
    PREFIX,
    check_read_options,
    read_options,
    row_level_options,
    session_options,
    table_options,
    write_options,
)
from paimon_spark.sql.statements.row_level import (
    Counts,
    RowLevelStatement,
    delete_rows,
    merge_rows,
    update_rows,
    whole_partitions,
)
from paimon_spark.sql.writes.table_writes import TableWrites
from paimon_spark.times import in_session_zone


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


_RESOLVED = ("timestampasof", "versionasof")
"""The options of ``spark.read`` that Spark applies when it loads a table by name, in the session's time zone."""


@dataclass
class TableHandler(TableReads, TableEndpoint, PartitionsEndpoint, WriteEndpoint, MergeSchemaEndpoint, RowLevelEndpoint):
    """The handler of a table of a catalog."""

    catalog: Catalog
    name: str = ""
    streamed: Schema | None = None
    """The declared schema of a table that a stream has just created; `None`: no stream created the table."""
    pending: Callable[[], Table] | None = None
    """A function that applies the schema change of a write and returns the changed table; `None`: no change."""

    def _read_options(self, options: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the read options: the session's options, overridden by the statement's options."""
        stated = {k: v for k, v in json.loads(options).items() if not self.when or k.lower() not in _RESOLVED}
        statement_options = in_session_zone(stated, self.jvm.active_session)
        if statement_options:
            check_read_options(statement_options)
        session = in_session_zone(session_options(settings, *self._names()), self.jvm.active_session)
        return read_options(session, statement_options, time_travel=bool(self.when)) if session else statement_options

    def _session_options(self) -> dict[str, str]:
        return session_options(self.jvm.settings(PREFIX), *self._names())

    def _names(self) -> tuple[str, str, str]:
        catalog, database, table = [*self.name.split(".", 2), "", ""][:3]  # a table opened by its path has no database
        return catalog, database, table

    def stored_schema(self) -> str:
        """Return the schema as the engine stores it."""
        return self.schema.to_json().decode()

    def truncate(self) -> bool:
        """Remove every row."""
        self.table.truncate()
        return True

    def list_partitions(self, names: Any, values: Any) -> Any:
        """Return the partitions with these values in these columns, as arrays of texts."""
        partitions = list_partitions(self.table, list(names), list(values))
        return row_arrays(self.jvm, partitions)

    def create_partitions(self, partitions: Any) -> None:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            f"ADD PARTITION is not possible for {self.name}: a partition exists while it has rows; INSERT the rows, or "
            "add files of other tools with CALL sys.add_files"
        )

    def drop_partitions(self, partitions: Any) -> bool:
        """Remove the rows of partitions in one commit; return False if none of the partitions has rows."""
        return drop_partitions(self.table, [list(values) for values in partitions])

    def truncate_partitions(self, partitions: Any) -> bool:
        """Remove the rows of partitions, which then do not exist; return False if none of them has rows."""
        return self.drop_partitions(partitions)

    def load_partition(self, values: Any) -> Any:
        """Return the numbers of rows, bytes and files of a partition as a Java map of texts."""
        return java_map(self.jvm, partition_metadata(self.table, list(values)))

    def set_partition_properties(self, values: Any) -> None:
        """Raise UnsupportedError."""
        raise UnsupportedError("a partition cannot have properties or a location: set properties on the table")

    def source_write(self, mode: str, info: Any, options: str) -> Any:
        """Return a write of the Python data source, for a dynamic overwrite or a stream that is about to run."""
        self._take_options(options)
        self._merge_columns()
        return self._writes().source_write(mode, info, options)

    def with_merged_columns(self, columns: str, options: str, demanded: bool, by_name: bool) -> Any:
        """Return the table with the schema that a write would give it; nothing is stored.

        True: the table already has these columns; `None`: the schema must not change.

        Args:
            columns: the columns of the rows, a struct as Spark's JSON.
            options: the options of the statement, as JSON.
            demanded: True if the statement has WITH SCHEMA EVOLUTION.
            by_name: True if columns are matched by name.
        """
        merged_options = write_options(self._session_options(), json.loads(options))
        rules = pop_merge_rules(merged_options, demanded=demanded)
        if rules is None:
            return None
        if not by_name:
            raise UnsupportedError("WITH SCHEMA EVOLUTION matches columns by name: use INSERT INTO ... BY NAME")
        base, struct = self.table, StructType.fromJson(json.loads(columns))
        merged = with_merged_columns(base, struct, rules)
        if merged is None:
            return True
        pending = partial(merge_columns, base, struct, rules)
        handler = replace(self, table=merged, schema=merged.schema, pending=pending)
        text = description(self.name, merged.schema, merged.path, ())
        return self.jvm.connector_class("PaimonTable")(text, handler_of(self.jvm, handler))

    def check_missing_columns(self, columns: str, options: str) -> None:
        """Warn of columns that the rows of a write by name lack, or refuse the write.

        Args:
            columns: the columns of the rows, a struct as Spark's JSON.
            options: the options of the write, as JSON.
        """
        self._writes().check_columns(StructType.fromJson(json.loads(columns)), options)

    def _take_options(self, options: str) -> None:
        """Store the options of ``writeStream.option(...).toTable()`` as properties of the table that it just created.

        Spark creates the table without these options. A table that has rows or was altered since stays unchanged.
        """
        if self.streamed is None or self.table.snapshot() is not None:
            return
        schema = with_write_options(self.streamed, self._writes().statement_request(options), self.name)
        if schema != self.streamed:
            _, database, name = self._names()
            identifier = Identifier(database, name)
            self.catalog.stage_table(identifier, schema, replace_existing=True).publish()
            self.table = self.catalog.table(identifier)
            self.schema, self.streamed = self.table.schema, None

    def _merge_columns(self) -> None:
        """Apply the schema change of this write, if any."""
        if self.pending is not None:
            self.table = self.pending()
            self.schema, self.pending = self.table.schema, None

    def check_write(self, mode: str, trees: str, options: str) -> None:
        """Raise an error for options, and for rows to replace, that `insert` will refuse."""
        self._writes().check(mode, trees, options)

    def explain_write(self, columns: str, options: str) -> str:
        """Return the writer of the rows of a statement, for EXPLAIN. The columns and the options are JSON."""
        return self._writes().explain(StructType.fromJson(json.loads(columns)), options)

    def insert(self, rows: Any, mode: str, trees: str, options: str) -> None:
        """Write the rows of a DataFrame in one commit."""
        self._merge_columns()
        self._writes().insert(rows, mode, trees, options)

    def overwrite_partitions(self, session: Any, write: Any) -> Any:
        """Replace the partitions of the rows of a statement (``OverwritePlan.java``) in one commit; return no row."""
        self._merge_columns()
        self._writes().insert(write.rows(session), "dynamic", "[]", write.options())
        self._refresh(self.jvm.session(session))
        return row_arrays(self.jvm, [])

    def _writes(self) -> TableWrites:
        return TableWrites(self.jvm, self._names(), self.table, self._options())

    def _options(self) -> dict[str, str]:
        storage = {str(key): str(value) for key, value in self.catalog.storage_options.items()}
        view = replace(self.table.location, branch=None)
        return {**storage, **catalog_option(self.table), "path": str(view), "branch": self.table.store.branch}

    def explain_row_changes(self, trees: str | None) -> str:
        """Return how DELETE, UPDATE and MERGE change the rows of the table, for EXPLAIN.

        `trees`: the condition of DELETE, as JSON.
        """
        if trees is not None and whole_partitions(json.loads(trees), self.table) is not None:
            return "whole partitions are dropped unread, if metadata contain the number of their rows"
        return f"{describe_changes(self.table)}; {describe_target_read(self.jvm.active_session(), self.table)}"

    def delete_rows(self, session: Any, plan: Any) -> Any:
        """Run DELETE and return its row of counts."""
        return self._change(delete_rows, session, plan)

    def update_rows(self, session: Any, plan: Any) -> Any:
        """Run UPDATE and return its row of counts."""
        return self._change(update_rows, session, plan)

    def merge_rows(self, session: Any, plan: Any) -> Any:
        """Run MERGE INTO and return its row of counts."""
        return self._change(merge_rows, session, plan)

    def _change(self, run: Callable[[RowLevelStatement], Counts], session: Any, plan: Any) -> Any:
        """Run a row-level statement, and invalidate Spark's caches of the table."""
        self._merge_columns()
        spark = self.jvm.session(session)
        options = session_options(self.jvm.settings(PREFIX, spark), *self._names())
        changed = table_options(options)
        table, commit = with_changed_options(self.table, changed), row_level_options(options)
        counts = run(RowLevelStatement(self.jvm, spark, table, {**changed, **self._options()}, session, plan, commit))
        self._refresh(spark)
        return row_arrays(self.jvm, counts)

    def _refresh(self, spark: SparkSession) -> None:
        """Invalidate Spark's caches of the table."""
        catalog, _, name = self.name.partition(".")
        parts = [name] if name.startswith("`") else [_quoted(part) for part in name.split(".", 1)]  # a path is quoted
        spark.catalog.refreshTable(".".join([_quoted(catalog), *parts]))
