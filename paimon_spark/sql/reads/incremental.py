"""The table functions ``paimon_incremental_query``, ``..._between_timestamp`` and ``paimon_incremental_to_auto_tag``.

They translate to the read options ``incremental-*``, with the rules of `paimon_core.scan.interval`. Between two
snapshots, they return the rows that commits inserted or updated; between two tags, the rows of the second tag that the
first tag lacks. For an append table, files do not always identify these rows: then Spark compares the rows of both
tags.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from paimon_core import SystemTable, Table
from paimon_core.engine import AUDIT_LOG, BINLOG, DIFF, Interval, interval_of, split_parts
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.scan import INCREMENTAL_BETWEEN, INCREMENTAL_BETWEEN_TIMESTAMP, INCREMENTAL_TO_AUTO_TAG
from paimon_spark.sql.bridge.catalogs import open_table_and_storage
from paimon_spark.sql.bridge.conversions import java_array, java_list, java_map
from paimon_spark.sql.bridge.endpoints import TableFunctionsEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.times import session_millis


def install_table_functions(jvm: Jvm) -> None:
    """Register the table functions; `install_parser` adds them to sessions."""
    names = java_array(jvm, "java.lang.String", sorted(_FUNCTIONS))
    jvm.bridge.PaimonFunctions.handleWith(handler_of(jvm, TableFunctionsHandler(jvm)), names)


@dataclass(frozen=True)
class TableFunctionsHandler(TableFunctionsEndpoint):
    """The handler of the table functions, for the Java class ``PaimonTableFunction``."""

    jvm: Jvm

    def changes(self, name: str, arguments: Any) -> Any:
        """Return the name of the table, and the read options or two tags, as a Java array."""
        values, usage = list(arguments), _FUNCTIONS[name]
        shown = f"{name}({', '.join(usage.parameters)})"
        if len(values) != len(usage.parameters) or any(value is None for value in values):
            raise InvalidInputError(f"{name} got {len(values)} arguments, or a NULL: write {shown}")
        if not isinstance(values[0], str):
            raise InvalidInputError(f"{name}: {values[0]!r} is not the name of a table: write {shown}")
        spark, parts = self.jvm.active_session(), split_parts(values[0])
        table, _ = open_table_and_storage(self.jvm, spark, parts, name)
        if isinstance(table, SystemTable) and table.kind not in (AUDIT_LOG, BINLOG):
            raise UnsupportedError(f"{name}: {table.kind.name!r} has no changes: name the table, or its $audit_log")
        try:
            options = usage.options([str(value) for value in values[1:]], spark)
            if isinstance(table, SystemTable):  # its rows have their kinds, deletes too
                items = [java_list(self.jvm, parts), java_map(self.jvm, options), None, None]
                return java_array(self.jvm, "java.lang.Object", items)
            interval = interval_of(table.store.with_options(options))
        except InvalidInputError as error:
            raise InvalidInputError(f"{name}: {error}") from None
        ends = None if interval is None else _rows_to_compare(table, interval)
        if ends is None:
            read = java_map(self.jvm, {**options, "read.ignore-deletes": "true"})
            items = [java_list(self.jvm, parts), read, None, None]
        else:
            items = [java_list(self.jvm, parts), None, *ends]
        return java_array(self.jvm, "java.lang.Object", items)


def _query(ends: Sequence[str], spark: SparkSession) -> Mapping[str, str]:
    """Return the options for the changes between two snapshots or two tags."""
    if any("," in text for text in ends):
        raise InvalidInputError(f"{ends[0]!r} and {ends[1]!r}: the name of a snapshot or a tag cannot contain a comma")
    return {INCREMENTAL_BETWEEN.key: ",".join(ends)}


def _between_times(times: Sequence[str], spark: SparkSession) -> Mapping[str, str]:
    """Return the options for the changes between two times."""
    return {INCREMENTAL_BETWEEN_TIMESTAMP.key: ",".join(str(session_millis(text, spark)) for text in times)}


def _to_auto_tag(tags: Sequence[str], spark: SparkSession) -> Mapping[str, str]:
    """Return the options for the changes from the previous automatic tag to this tag."""
    return {INCREMENTAL_TO_AUTO_TAG.key: tags[0].strip()}


def _rows_to_compare(table: Table, interval: Interval) -> tuple[str, str] | None:
    """Return the versions of an append table whose rows Spark compares; `None`: the engine finds the rows.

    Raises UnsupportedError if the versions have different columns, so their rows cannot be compared.
    """
    if interval.mode != DIFF or table.store.traits.keyed or interval.compared is None or interval.versions is None:
        return None
    columns = [
        [(f.id, f.name) for f in table.store.at_schema(snapshot.schema_id).schema.fields]
        for snapshot in interval.compared
        if snapshot is not None
    ]
    first, last = interval.versions
    if columns[:1] != columns[1:]:
        raise UnsupportedError(
            f"the columns of {table.path} changed between the tags {first!r} and {last!r}: compare the tables of both "
            "tags, VERSION AS OF, column by column"
        )
    return first, last


@dataclass(frozen=True)
class _Usage:
    parameters: tuple[str, ...]
    options: Callable[[Sequence[str], SparkSession], Mapping[str, str]]


_FUNCTIONS = {
    "paimon_incremental_query": _Usage(("table", "start", "end"), _query),
    "paimon_incremental_between_timestamp": _Usage(("table", "start_time", "end_time"), _between_times),
    "paimon_incremental_to_auto_tag": _Usage(("table", "tag"), _to_auto_tag),
}
