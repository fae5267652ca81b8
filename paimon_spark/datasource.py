"""The format "paimon" of Spark: its name, its schema, and its readers and writers of batches and streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from paimon_core import SystemTable
from paimon_core.engine import And, Filter, Predicate, project
from paimon_core.lazy import deferred
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.char_columns import marked
from paimon_spark.feed_request import pop_request
from paimon_spark.options import (
    ReadRequest,
    batch_request,
    changes_request,
    columns_request,
    is_about_changes,
    read_request,
    stream_request,
    stream_write_request,
    system_request,
    write_request,
)
from paimon_spark.report import message_first
from paimon_spark.types import spark_schema

if TYPE_CHECKING:
    from paimon_core.engine import listed_field, parse_predicate
    from paimon_spark.change_feed import ChangeFeedReader, ChangeFeedStreamReader
    from paimon_spark.reader import batch_reader, open_any, open_table, schema_at
    from paimon_spark.stream_reader import PaimonChangesReader, PaimonStreamReader
    from paimon_spark.stream_writer import PaimonStreamWriter
    from paimon_spark.system_reader import SystemTableReader
    from paimon_spark.writer import PaimonWriter, table_to_write
else:
    ChangeFeedReader = deferred("paimon_spark.change_feed", "ChangeFeedReader")
    ChangeFeedStreamReader = deferred("paimon_spark.change_feed", "ChangeFeedStreamReader")
    listed_field = deferred("paimon_core.engine", "listed_field")
    parse_predicate = deferred("paimon_core.engine", "parse_predicate")
    batch_reader = deferred("paimon_spark.reader", "batch_reader")
    open_any = deferred("paimon_spark.reader", "open_any")
    open_table = deferred("paimon_spark.reader", "open_table")
    schema_at = deferred("paimon_spark.reader", "schema_at")
    PaimonChangesReader = deferred("paimon_spark.stream_reader", "PaimonChangesReader")
    PaimonStreamReader = deferred("paimon_spark.stream_reader", "PaimonStreamReader")
    PaimonStreamWriter = deferred("paimon_spark.stream_writer", "PaimonStreamWriter")
    SystemTableReader = deferred("paimon_spark.system_reader", "SystemTableReader")
    PaimonWriter = deferred("paimon_spark.writer", "PaimonWriter")
    table_to_write = deferred("paimon_spark.writer", "table_to_write")


@message_first
class PaimonDataSource(DataSource):
    """The data source of Apache Paimon tables, for batches and streams.

    Spark creates one object per read or write, from its options, and calls the object in separate Python processes.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name to use in ``format(...)``."""
        return "paimon"

    def schema(self) -> StructType:
        """Return the columns of the table, or only the columns named by the option ``columns``.

        With time travel, the chosen snapshot determines the columns. A stream with ``read.changelog`` has a first
        column ``rowkind``.
        """
        options = _mapping(self.options)
        system_read = system_request(options)
        if system_read is not None:
            return spark_schema(project(_system_table(system_read).schema_at(**system_read.when), system_read.columns))
        if is_about_changes(options):
            request = columns_request(options)
            fields = project(open_table(request).schema, request.columns)
            columns = tuple(map(listed_field, fields)) if request.packed else fields
            shown = (ROW_KIND, *columns) if request.changelog else columns
            return marked(spark_schema(shown), shown)
        read = read_request(options)
        shown = project(schema_at(open_table(read), read.when), read.columns, metadata=True)
        return marked(spark_schema(shown), shown)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of exactly the columns of ``schema``, which may be a user-specified schema."""
        return reader_of_options(_mapping(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer into the table; a missing table is created from ``schema`` and the options."""
        request = write_request(_mapping(self.options), schema.names)
        return PaimonWriter(table_to_write(request, schema), request, schema, overwrite, pads=True)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of the changes of the table, with exactly the columns of ``schema``."""
        asked, options = pop_request(_mapping(self.options))
        if asked is not None:
            return ChangeFeedStreamReader(open_table(columns_request(options)).store.in_microseconds(), asked, schema)
        request = stream_request(options)
        return PaimonStreamReader(open_table(request).store.in_microseconds(), request, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of micro-batches; a missing table is created from ``schema`` and the options."""
        request = stream_write_request(_mapping(self.options), schema.names)
        return PaimonStreamWriter(table_to_write(request, schema), request, schema, overwrite)


def reader_of_options(
    options: Mapping[str, str], columns: StructType, predicate: Predicate | None = None, limit: int | None = None
) -> DataSourceReader:
    """Return the reader of a batch of rows or changes, or of a system table.

    Args:
        options: the read options.
        columns: the columns to read, as Spark sees them.
        predicate: a filter in addition to the option ``filter``; `None`: only the option.
        limit: the number of rows that suffices; `None`: the option ``limit``.
    """
    asked, options = pop_request(options)
    if asked is not None:
        return ChangeFeedReader(open_table(columns_request(options)).store.in_microseconds(), asked, columns, predicate)
    system_read = system_request(options)
    if system_read is not None:
        return SystemTableReader(_system_table(system_read), _narrowed_rows(system_read, predicate, limit), columns)
    changes = changes_request(options)
    if changes is not None:
        changes = replace(changes, filter=_both(changes.filter, predicate))
        return PaimonChangesReader(open_table(changes).store.in_microseconds(), changes, columns)
    return batch_reader(_narrowed_rows(batch_request(options), predicate, limit), columns)


def _narrowed_rows(request: ReadRequest, predicate: Predicate | None, limit: int | None) -> ReadRequest:
    least = request.limit if limit is None else limit
    return replace(request, filter=_both(request.filter, predicate), limit=least)


def _both(filter: Filter, predicate: Predicate | None) -> Filter:
    """Return the AND of a filter and a predicate."""
    if filter is None or predicate is None:
        return predicate if filter is None else filter
    return And((parse_predicate(filter) if isinstance(filter, str) else filter, predicate))


def _system_table(request: ReadRequest) -> SystemTable:
    table = open_any(request)
    assert isinstance(table, SystemTable)
    return table.in_microseconds()


def _mapping(options: Any) -> Mapping[str, str]:
    return {str(key): str(value) for key, value in options.items()}
