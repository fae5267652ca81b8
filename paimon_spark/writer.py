"""Batch writes, and the tables they write.

After a failed commit Spark calls `abort` with every message, even if the commit may have been published. So `abort`
deletes no files in that case: the commit itself deletes its files when it is certain that it failed.

A write with ``txnAppId`` and ``txnVersion`` is committed once; the engine recognises and skips a repetition.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_core import Schema, Snapshot, Table
from paimon_core.engine import (
    DYNAMIC,
    LOCAL,
    IdempotentCommits,
    Predicate,
    PreparedWrite,
    Runner,
    commit_messages,
    overwrite_partitions,
    partition_values,
)
from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.options.bucket import BUCKET, BUCKET_KEY
from paimon_core.options.file import OF_OPENING
from paimon_core.options.option import Option
from paimon_core.types.columns import find_column
from paimon_spark.bucket_shuffle import find_shuffle
from paimon_spark.merge_schema import merge_columns
from paimon_spark.missing_columns import check_missing_columns
from paimon_spark.options import TableAddress, WriteRequest, with_changed_options
from paimon_spark.report import message_first
from paimon_spark.types import paimon_fields
from paimon_spark.worker_log import log_metrics
from paimon_spark.write_job import TaskWrites, WriteJob, query_id, row_kind_name, task_results, watermark_of

_LAYOUT: tuple[Option[Any], ...] = (BUCKET, BUCKET_KEY)


def table_to_write(request: WriteRequest, schema: StructType) -> Table:
    """Return the table of a write job; create it if it is missing. The job's table options override the stored ones.

    With ``write.merge-schema``, first add the columns that the table lacks. Raises InvalidInputError if the options
    name other keys, partitions or buckets than the table has.
    """
    address = request.address
    table = _existing_table(address)
    if table is None:  # outside of an except clause: an error of the new table has no cause
        new = _new_schema(request, schema)
        table = Table.create(address.path, new, address.storage_options, ignore_if_exists=True)
    return prepared_table(table, request, schema)


def _existing_table(address: TableAddress) -> Table | None:
    """Return the table at an address; `None` if it is missing. Raises NotFoundError for a missing branch."""
    try:
        return address.open()
    except NotFoundError:
        if address.branch is not None:
            raise
        return None


def prepared_table(table: Table, request: WriteRequest, schema: StructType) -> Table:
    """Return an open table, prepared for a write of rows with this Spark schema as `table_to_write` does."""
    _check_same_layout(table, request)
    if request.merge_rules is not None:
        table = merge_columns(table, _columns(request, schema, table), request.merge_rules)
    return with_changed_options(table, request.options)


def _columns(request: WriteRequest, schema: StructType, table: Table) -> StructType:
    """Return the columns of a DataFrame to store, without the columns of row kinds and of `clustered`."""
    shuffle = find_shuffle(schema.names, table.schema.names)
    kind = None if request.row_kind_column is None else row_kind_name(request.row_kind_column, schema)
    hidden = (kind, None if shuffle is None else shuffle[0])
    return StructType([field for field in schema.fields if field.name not in hidden])


def _new_schema(request: WriteRequest, schema: StructType) -> Schema:
    hidden = () if request.row_kind_column is None else (row_kind_name(request.row_kind_column, schema),)
    fields = paimon_fields(schema, without=hidden)
    for key in (*(request.primary_keys or ()), *(request.partition_keys or ())):
        find_column(fields, key, "the DataFrame")
    opening = {option.key for option in OF_OPENING}
    options = {key: value for key, value in request.options.items() if key not in opening}
    return Schema(fields, request.primary_keys or (), request.partition_keys or (), options)


def _check_same_layout(table: Table, request: WriteRequest) -> None:
    """Raise InvalidInputError if the request names other keys, partitions or buckets than the table has."""
    schema, options = table.schema, request.options
    keys = ("primary-key", request.primary_keys, schema.primary_keys)
    partition = ("partition", request.partition_keys, schema.partition_keys)
    wrong = [
        (key, ",".join(requested), ",".join(actual))
        for key, requested, actual in (keys, partition)
        if requested is not None and [*map(str.lower, requested)] != [*map(str.lower, actual)]
    ]
    for option in _LAYOUT:
        text, value = options.get(option.key), schema.options.value(option)
        if text is not None and option.parse(text) != value:
            wrong.append((option.key, text, str(value)))
    for key, requested_text, actual_text in wrong:
        raise InvalidInputError(
            f"option {key!r} = {requested_text!r}, but the table at {table.path} has {actual_text!r}, which a write "
            "cannot change: leave the option out, or write to a new table"
        )


@message_first
class PaimonWriter(DataSourceArrowWriter):
    """A batch write job. It pickles: each task, and the commit, runs with a copy.

    Raises InvalidInputError if the columns of `schema` do not fit the table; the tasks check values row by row.
    `single`: the job has one task. `replaced`: the partitions that mode overwrite replaces, as `overwrite_partitions`
    takes them; `None`: the request chooses them. `pads`: CHAR values are padded to their length.
    """

    def __init__(
        self,
        table: Table,
        request: WriteRequest,
        schema: StructType,
        overwrite: bool,
        *,
        single: bool = False,
        replaced: Mapping[str, object] | str | Predicate | None = None,
        pads: bool = False,
    ) -> None:
        if overwrite and request.started_from is not None:
            raise InvalidInputError(
                "option 'write.unchanged-since' is for mode append, not for an overwrite: leave it out"
            )
        if request.partition is not None and not overwrite:
            raise InvalidInputError(
                "option 'overwrite-partition' is for mode overwrite, not for an append: leave it out"
            )
        spec = (
            None
            if request.partition is None
            else partition_values(table.schema, request.partition, "option 'overwrite-partition'", table.path)
        )
        self._where: Mapping[str, object] | str | Predicate | None = (
            replaced if replaced is not None else DYNAMIC if request.dynamic else spec
        )
        self._job = WriteJob(table, request, schema, overwrite, single, pads=pads)
        if not overwrite:
            check_missing_columns(table, request, schema)
        self._request = request
        version, commits = request.version, self._numbered()
        self._committed = version is not None and commits is not None and commits.is_committed(version)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrites:
        """Write the rows of one task; write nothing if the job is already committed."""
        if not self._committed:
            return self._job.write(iterator, self._request.version)
        query, version, commits = query_id(), self._request.version, self._numbered(query_id())
        if query is not None and commits is not None and version is not None:
            commits.check_source(version)
            deque(
                iterator, maxlen=0
            )  # in foreachBatch, a stateful query updates its state only if the rows are computed
        return TaskWrites(query=query)

    def commit(self, messages: list[WriterCommitMessage | None], runner: Runner = LOCAL) -> None:
        """Commit all rows in one snapshot, then compact; `runner` runs the compactions.

        After a conflict the new files are deleted and the table is unchanged.
        """
        self.publish(messages, runner)

    def publish(self, messages: list[WriterCommitMessage | None], runner: Runner = LOCAL) -> Snapshot | None:
        """Commit as `commit` does. Return the snapshot of the rows; `None`: nothing to commit, or committed before."""
        if self._committed:
            return None
        log_metrics()
        queries = {result.query for result in task_results(messages)}
        prepared = self._job.prepare(messages)
        snapshot = self._publish(prepared, queries.pop() if len(queries) == 1 else None, watermark_of(messages))
        self._job.finish(prepared, self._request.version, runner)
        return snapshot

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of a job whose tasks failed; a failed commit deletes its own files."""
        if any(message is None for message in messages):
            self._job.abort(messages)

    def _numbered(self, source: str | None = None) -> IdempotentCommits | None:
        """Return the idempotent commits of the job's commit user; `None`: the write has no 'txnVersion'."""
        request = self._request
        if request.version is None or request.commit_user is None:
            return None
        return IdempotentCommits(
            self._job.table.store, request.commit_user, source=source, on_unknown=request.on_unknown
        )

    def _publish(self, prepared: PreparedWrite, query: str | None, watermark: int | None) -> Snapshot | None:
        changes, started_from, request = prepared.messages, prepared.started_from, self._request
        commits, version, properties = self._numbered(query), request.version, request.properties or None
        if commits is not None and version is not None:
            if self._job.overwrite:
                return commits.overwrite(changes, version, self._where, watermark=watermark, properties=properties)
            return commits.commit(
                changes, version, started_from=started_from, watermark=watermark, properties=properties
            )
        if request.started_from is not None:
            started_from = request.started_from.joined(started_from)
        publisher = self._job.table.committer(request.commit_user).publisher
        identity = publisher.identity(None, properties, watermark)
        if self._job.overwrite:
            return publisher.publish_or_delete(overwrite_partitions, changes, self._where, identity).snapshot
        return publisher.publish_or_delete(commit_messages, changes, identity, started_from).snapshot
