"""INSERT and the other writes of rows into a table of a catalog.

Spark passes the rows as a DataFrame. One job writes them, and this process commits. Streams are writes of the Python
data source, because Spark passes no DataFrame for them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import StructType

from paimon_core import Table
from paimon_core.engine import TRUE, Predicate, bind, predicate_columns
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_spark.frame_write import FEW_ROWS, may_use_driver, write_table
from paimon_spark.internals import analyzed
from paimon_spark.missing_columns import check_missing_columns
from paimon_spark.option_names import canonical
from paimon_spark.options import WriteRequest, write_request
from paimon_spark.sql.bridge.conversions import frame_of, java_map
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.pushdown import exact_predicate
from paimon_spark.sql.session_options import PREFIX, session_options, write_options
from paimon_spark.sql.writes.native_writes import is_encodable, native_results
from paimon_spark.sql.writes.replace import replace_rows
from paimon_spark.sql.writes.replacement import (
    Replacement,
    check_mode,
    check_replacement,
    pop_stated,
    replace_matching,
    replacement_of,
    where_predicate,
)
from paimon_spark.types import spark_schema
from paimon_spark.writer import prepared_table, table_to_write

_OF_STREAMS = ("checkpointlocation", "queryname")


@dataclass(frozen=True)
class TableWrites:
    """The writes of one table.

    Args:
        jvm: the JVM of the session.
        name: the catalog, database and table.
        table: the table to write.
        location: the options that locate the table.
    """

    jvm: Jvm
    name: tuple[str, str, str]
    table: Table
    location: Mapping[str, str]

    def check(self, mode: str, trees: str, options: str) -> None:
        """Raise an error for options, and for rows to replace, that `insert` will refuse."""
        all_options = self._all_options(options)
        request = replace(self._parsed(all_options), dynamic=mode == "dynamic")
        self._replacement(all_options, request, every=mode != "append" and self._replaced(mode, trees) is None)

    def check_columns(self, columns: StructType, options: str) -> None:
        """Warn of columns that the rows of an append by name lack, or refuse the append.

        Args:
            columns: the columns of the rows.
            options: the options of the write, as JSON.
        """
        check_missing_columns(self.table, self._request(options), columns)

    def explain(self, columns: StructType, options: str) -> str:
        """Return the writer of rows with these columns, for EXPLAIN.

        Args:
            columns: the columns of the rows.
            options: the options of the statement, as JSON.
        """
        request = self._request(options)
        table = prepared_table(self.table, request, columns)
        encodable = is_encodable(self.jvm.active_session(), table, request, columns)
        writer = "Spark's Parquet encoder" if encodable else "Python workers"
        few = f"; the driver writes up to {FEW_ROWS} rows" if may_use_driver(columns.names, table, request) else ""
        return f"{'.'.join(self.name)}: {writer}{few}"

    def insert(self, rows: Any, mode: str, trees: str, options: str) -> None:
        """Write the rows of a Java Dataset in one commit.

        Args:
            rows: the rows, which Spark has cast to the columns of the table.
            mode: append, overwrite, or dynamic, which replaces the partitions of the rows.
            trees: for an overwrite, the filters of the rows to replace (``Trees.java``).
            options: the options of the statement, as JSON.
        """
        frame = frame_of(self.jvm, rows)
        all_options = self._all_options(options)
        request = replace(self._parsed(all_options), dynamic=mode == "dynamic")
        table = table_to_write(request, frame.schema)
        replaced = self._replaced(mode, trees)
        replacement = self._replacement(all_options, request, every=mode != "append" and replaced is None)
        if replacement is not None and replacement.where is None:
            replace_matching(frame, table, replacement, request, self.location)
            return
        if replacement is not None:
            replaced = where_predicate(frame, str(replacement.where), table)
        if replaced is not None and not predicate_columns(replaced) <= set(table.schema.partition_keys):
            replace_rows(frame, table, request, replaced)
            return
        write_table(frame, table, request, overwrite=mode != "append", replaced=replaced, native=native_results)

    def source_write(self, mode: str, info: Any, options: str) -> Any:
        """Return a write of the Python data source, for a dynamic overwrite or a stream."""
        spark = self.jvm.active_session()
        all_options = {**self._all_options(options), **self.location}
        if mode == "dynamic":
            all_options["partitionoverwritemode"] = "dynamic"
        columns = spark_schema(self.table.schema.fields)
        relation = analyzed(spark.read.format("paimon").options(**self.location).schema(columns).load())
        builder = relation.table().newWriteBuilder(
            self.jvm.bridge.PaimonWriteInfo(info, java_map(self.jvm, all_options))
        )
        return (builder if mode == "append" else builder.truncate()).build()

    def statement_request(self, options: str) -> WriteRequest:
        """Return the request of the statement's options, without the session's options."""
        return self._parsed(canonical(json.loads(options)))

    def _all_options(self, options: str) -> dict[str, str]:
        """Return the options of the session and the statement, without options that locate the table."""
        session = session_options(self.jvm.settings(PREFIX), *self.name)
        return write_options(session, json.loads(options))

    def _replacement(self, options: Mapping[str, str], request: WriteRequest, *, every: bool) -> Replacement | None:
        """Return the rows that the options replace; `None`: the options do not say.

        Args:
            options: the options of the session and the statement.
            request: the other options.
            every: True if the write would replace all rows without these options.

        Raises InvalidInputError or UnsupportedError if the write or the table does not accept the options.
        """
        found = pop_stated(dict(options))
        check_mode(found, request, overwrite=every)
        replacement = replacement_of(found, self.table)
        if replacement is not None:
            check_replacement(replacement, request, self.table)
        return replacement

    def _request(self, options: str) -> WriteRequest:
        return self._parsed(self._all_options(options))

    def _parsed(self, options: Mapping[str, str]) -> WriteRequest:
        batch_options = {key: value for key, value in options.items() if key not in _OF_STREAMS}
        pop_stated(batch_options)
        named = next(
            (key for key in ("path", "warehouse", "table", "overwrite-partition") if key in batch_options), None
        )
        if named is not None:
            raise InvalidInputError(f"option {named!r} is for writes without a catalog: the statement names the table")
        mode = batch_options.pop("partitionoverwritemode", "static")
        if mode.lower() != "static":
            raise UnsupportedError(
                f"option 'partitionOverwriteMode' = {mode!r} is for writes without a catalog: set "
                "spark.sql.sources.partitionOverwriteMode, or call writeTo(...).overwritePartitions()"
            )
        request = write_request({**batch_options, **self.location}, [field.name for field in self.table.schema.fields])
        return replace(request, merge_rules=None)  # the table already has the columns of the statement

    def _replaced(self, mode: str, trees: str) -> Predicate | None:
        """Return the bound condition on the rows that an overwrite replaces; `None`: all rows, or an append."""
        if mode != "overwrite":
            return None
        filters = json.loads(trees)
        predicate = exact_predicate(filters, self.table.store.in_microseconds().schema) if filters else TRUE
        if predicate is None:
            raise UnsupportedError(
                "the condition of this overwrite has a part that the table cannot evaluate: compare columns with "
                "literals, or DELETE the rows and INSERT"
            )
        return None if predicate == TRUE else bind(predicate, self.table.schema.fields)
