"""Streaming writes: every micro-batch becomes exactly one commit, also after failures and repetitions.

The commit user is the query id, which Spark keeps in the checkpoint and passes to every task. The commit identifier is
the batch number. From both, the engine recognises a committed batch (see IdempotentCommits). Batch numbers start at 0.
A batch that does not follow the last batch in the table is refused: the checkpoint belongs to another table, or the
table was dropped and created again.

Spark creates one writer for the tasks of each batch and another for the batch's commit, in separate processes. So the
messages of the tasks contain everything that the commit needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_core import Table
from paimon_core.engine import IdempotentCommits
from paimon_core.errors import CommitConflictError, NotFoundError, UnsupportedError
from paimon_spark.missing_columns import check_missing_columns
from paimon_spark.options import WriteRequest
from paimon_spark.report import message_first
from paimon_spark.worker_log import log_metrics
from paimon_spark.write_job import TaskWrites, WriteJob, watermark_of


@dataclass(frozen=True)
class BatchWritten(TaskWrites):
    """The result of one task; `table`: id and creation time (epoch ms) of the schema with which the task wrote."""

    table: tuple[int, int] = (-1, -1)


@message_first
class PaimonStreamWriter(DataSourceStreamArrowWriter):
    """A writer of micro-batches; it pickles. `overwrite`: output mode complete, where each batch replaces the table.

    Raises InvalidInputError if the columns of `schema` do not fit the table; values are checked row by row in the
    tasks.
    """

    def __init__(self, table: Table, request: WriteRequest, schema: StructType, overwrite: bool) -> None:
        self._table, self._request = table, request
        self._job = WriteJob(table, request, schema, overwrite, pads=True)
        if not overwrite:
            check_missing_columns(table, request, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchWritten:
        """Write the rows of one task."""
        context, schema = TaskContext.get(), self._table.schema
        batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
        done = self._job.write(iterator, None if batch is None else int(batch))
        return BatchWritten(**vars(done), table=(schema.id, schema.time_millis))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the batch in one snapshot, unless it is already committed; an empty batch creates no snapshot."""
        log_metrics()
        query, watermark = self._query(messages), watermark_of(messages)
        commits = IdempotentCommits(self._table.store, query, consecutive=True, on_unknown=self._request.on_unknown)
        prepared = self._job.prepare(messages)
        if self._job.overwrite:
            commits.overwrite(prepared.messages, batchId, watermark=watermark)
        else:
            commits.commit(prepared.messages, batchId, started_from=prepared.started_from, watermark=watermark)
        self._job.finish(prepared, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Delete the files of a batch whose tasks failed; a failed commit deletes its own files."""
        if any(message is None for message in messages):
            self._job.abort(messages)

    def _query(self, messages: list[WriterCommitMessage | None]) -> str:
        """Return the query id of the tasks. Raise CommitConflictError if the table was replaced after a task wrote."""
        written = [message for message in messages if isinstance(message, BatchWritten)]
        for schema_id, time in {message.table for message in written}:
            if not self._has_schema(schema_id, time):
                raise CommitConflictError(
                    f"the table at {self._table.path} was dropped or replaced while the query wrote to it: start the "
                    "query with a new checkpointLocation to fill the new table"
                )
        queries = {message.query for message in written}
        query = queries.pop() if len(queries) == 1 else None
        if query is None:
            raise UnsupportedError(
                f"this version of Spark passes no query id to its tasks (got {sorted(map(str, queries))}), so a "
                "repeated batch cannot be recognised: use foreachBatch with paimon_spark.upsert_batch"
            )
        return query

    def _has_schema(self, schema_id: int, time: int) -> bool:
        """Return True if the table has this schema; `time`: the creation time of the schema (epoch ms)."""
        schema = self._table.schema
        if schema_id == schema.id:
            return time == schema.time_millis
        try:
            return self._table.store.schemas.get(schema_id).time_millis == time
        except NotFoundError:
            return False
