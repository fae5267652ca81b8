"""Batch writes, and the table that a write goes to.

After a failed commit Spark calls `abort` with every message, even if the commit may have been published. So `abort`
deletes nothing then: the commit itself deletes its files if it provably failed.

A write with ``txnAppId`` and ``txnVersion`` is committed once; a repetition is recognised and skipped.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.commit.overwrite import DYNAMIC
from paimon_core.distributed_write import PreparedWrite
from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.options.bucket import BUCKET, BUCKET_KEY, PARTITION_DEFAULT_NAME
from paimon_core.options.file import DATA_FILE_EXTERNAL_PATHS_ALLOWED
from paimon_core.options.option import Option
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.cast import cast_array
from paimon_core.types.columns import find_column
from paimon_core.types.datatype import STRING, TEXT_ROOTS, AtomicType, DataType
from paimon_spark.options import WriteRequest
from paimon_spark.report import message_first
from paimon_spark.types import paimon_fields
from paimon_spark.write_job import TaskWrites, WriteJob, query_id, row_kind_name, task_results, watermark_of


def table_to_write(request: WriteRequest, schema: StructType) -> Table:
    """Return the table of a write job, created if it is missing; the job's table options override the table's own.

    InvalidInputError if the options name other keys, partitions or buckets than the table has.
    """
    place = request.place
    try:
        table = place.open()
    except NotFoundError:
        if place.branch is not None:
            raise
        new = _new_schema(request, schema)
        table = Table.create(place.path, new, place.storage_options, ignore_if_exists=True)
    _check_same_layout(table, request)
    stored = table.schema.options
    return table.with_options({key: value for key, value in request.options.items() if stored.get(key) != value})


def _new_schema(request: WriteRequest, schema: StructType) -> Schema:
    hidden = () if request.row_kind_column is None else (row_kind_name(request.row_kind_column, schema),)
    fields = paimon_fields(schema, without=hidden)
    for key in (*(request.primary_keys or ()), *(request.partition_keys or ())):
        find_column(fields, key, "the DataFrame")
    options = {key: value for key, value in request.options.items() if key != DATA_FILE_EXTERNAL_PATHS_ALLOWED.key}
    return Schema(fields, request.primary_keys or (), request.partition_keys or (), options)


def _check_same_layout(table: Table, request: WriteRequest) -> None:
    schema = table.schema
    _check_same("primary-key", request.primary_keys, schema.primary_keys, table.path)
    _check_same("partition", request.partition_keys, schema.partition_keys, table.path)
    _check_option(BUCKET, request, table)
    _check_option(BUCKET_KEY, request, table)


def _check_option(option: Option[Any], request: WriteRequest, table: Table) -> None:
    asked, has = request.options.get(option.key), table.schema.options.value(option)
    if asked is not None and option.parse(asked) != has:
        raise _changed(option.key, asked, str(has), table.path)


def _check_same(key: str, asked: tuple[str, ...] | None, has: tuple[str, ...], path: str) -> None:
    if asked is not None and [name.lower() for name in asked] != [name.lower() for name in has]:
        raise _changed(key, ",".join(asked), ",".join(has), path)


def _changed(key: str, asked: str, has: str, path: str) -> InvalidInputError:
    return InvalidInputError(
        f"option {key!r} = {asked!r}, but the table at {path} has {has!r}, and a write cannot change that: "
        "leave the option out, or write to a new table"
    )


def _values(table: Table, spec: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Return the partition that the texts name, with values of its columns' types; the default name means NULL."""
    null_name = table.schema.options.value(PARTITION_DEFAULT_NAME)
    keys = {k.lower(): k for k in table.schema.partition_keys}
    values: dict[str, object] = {}
    for column, text in spec:
        key = keys.get(column.lower())
        if key is None:
            raise InvalidInputError(
                f"option 'overwrite-partition' names {column!r}, the partition columns of {table.path} are "
                f"{list(keys.values())}"
            )
        values[key] = None if text == null_name else _value(key, text, table.schema.field(key).type)
    return values


def _value(column: str, text: str, kind: DataType) -> object:
    """Return the value of a text. A text that does not fit the type is refused, it does not mean NULL."""
    if isinstance(kind, AtomicType) and kind.root in TEXT_ROOTS:
        return text
    value = cast_array(pa.array([text]), STRING, kind)[0].as_py()
    if value is None:
        raise InvalidInputError(f"option 'overwrite-partition': {text!r} is not a value of column {column!r}, a {kind}")
    return value


@message_first
class PaimonWriter(DataSourceArrowWriter):
    """A batch write job; pickles, because tasks and the commit run with copies of it.

    InvalidInputError if the columns of `schema` do not fit the table; values are checked row by row in the tasks.
    """

    def __init__(self, table: Table, request: WriteRequest, schema: StructType, overwrite: bool) -> None:
        if overwrite and request.read_at is not None:
            raise InvalidInputError("option 'write.unchanged-since' is for mode append: an overwrite replaces all rows")
        if request.partition is not None and not overwrite:
            raise InvalidInputError("option 'overwrite-partition' is for mode overwrite: an append replaces nothing")
        spec = None if request.partition is None else _values(table, request.partition)
        self._where: Mapping[str, object] | str | None = DYNAMIC if request.dynamic else spec
        self._job = WriteJob(table, request, schema, overwrite)
        self._request = request
        version, numbered = request.version, self._numbered()
        self._committed = version is not None and numbered is not None and numbered.is_committed(version)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrites:
        """Write the rows of one task; a job that was committed before writes none."""
        if not self._committed:
            return self._job.write(iterator, self._request.version)
        query, version, numbered = query_id(), self._request.version, self._numbered(query_id())
        if query is not None and numbered is not None and version is not None:
            numbered.check_source(version)
            deque(iterator, maxlen=0)  # in foreachBatch: a stateful query updates its state by computing the rows
        return TaskWrites(query=query)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit all rows in one snapshot; after a conflict the files are deleted and the table is unchanged."""
        if self._committed:
            return
        queries = {result.query for result in task_results(messages)}
        prepared = self._job.prepare(messages)
        self._publish(prepared, queries.pop() if len(queries) == 1 else None, watermark_of(messages))
        self._job.finish(prepared, self._request.version)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of a job whose tasks failed; a failed commit has deleted its files itself."""
        if any(message is None for message in messages):
            self._job.abort(messages)

    def _numbered(self, source: str | None = None) -> IdempotentCommits | None:
        request = self._request
        if request.version is None or request.commit_user is None:
            return None
        return IdempotentCommits(self._job.table.store, request.commit_user, source=source, on_unknown=request.on_doubt)

    def _publish(self, prepared: PreparedWrite, query: str | None, watermark: int | None) -> None:
        changes, base_id, request = prepared.messages, prepared.base_id, self._request
        numbered, version, properties = self._numbered(query), request.version, request.properties or None
        if numbered is not None and version is not None:
            if self._job.overwrite:
                numbered.overwrite(changes, version, self._where, watermark=watermark)
            else:
                numbered.commit(changes, version, base_id=base_id, watermark=watermark)
            return
        committer = self._job.table.committer(request.commit_user)
        identity = committer.identity(None, properties, watermark)
        with committer.aborting_on_failure(changes):
            if self._job.overwrite:
                committer.overwrite_as(identity, changes, self._where)
            else:
                committer.commit_as(identity, changes, base_id=base_id, unchanged_since=request.read_at)
