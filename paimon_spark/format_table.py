"""Batch reads and writes of format tables in tasks of Spark: a task reads some files, or writes hidden ones."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSourceReader, InputPartition, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_core import FormatTable
from paimon_core.engine import FormatFile, FormatTableRead, FormatTableWriter, Predicate, StagedFile, evolve, tasks_of
from paimon_spark.char_columns import padded_frame, pads_writes
from paimon_spark.frame_write import has_few_literals, rebalanced, run_tasks
from paimon_spark.options import DEFAULT_BATCH_ROWS, DEFAULT_MIN_TASKS
from paimon_spark.reader import freeze_modules, resized
from paimon_spark.report import message_first
from paimon_spark.types import expected_arrow_schema, for_spark, projected


class FilesPartition(InputPartition):
    """The files that one Spark task reads."""

    def __init__(self, files: Sequence[FormatFile]) -> None:
        super().__init__(None)
        self.files = tuple(files)


@message_first
class FormatTableReader(DataSourceReader):
    """A reader of a format table: the columns of `schema`, in that order. It pickles.

    Args:
        table: the table.
        schema: the columns to read, as Spark sees them.
        predicate: the filter, bound to the table; `None`: all rows.
        limit: the number of rows that suffices; `None`: all rows.
        files: the files to read; `None`: the directories are listed.
    """

    def __init__(
        self,
        table: FormatTable,
        schema: StructType,
        predicate: Predicate | None = None,
        limit: int | None = None,
        files: Sequence[FormatFile] | None = None,
    ) -> None:
        self._fields = projected(table.schema.fields, schema, table.name)
        whole = {field.id: field for field in table.schema.fields}
        self._read: FormatTableRead = table.read([whole[field.id].name for field in self._fields], predicate)
        self._arrow = expected_arrow_schema(schema)
        self._limit, self._files = limit, files

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for tasks, without the files: each task gets them in its partition.

        The entries of the catalog stay here, too: they may have credentials.
        """
        return {**vars(self), "_files": None, "_read": replace(self._read, registry=None)}

    def partitions(self) -> list[InputPartition]:
        """Return one Spark partition per task, with the files that it reads."""
        files = self._read.plan() if self._files is None else self._files
        return [FilesPartition(task) for task in tasks_of(files, DEFAULT_MIN_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the files of one task, in batches of a limited size."""
        if not isinstance(partition, FilesPartition):
            return  # for an empty plan, Spark passes a partition that is not ours
        freeze_modules()
        narrowed, left = evolve(self._read.fields, self._fields), self._limit
        batches = (narrowed.apply(batch) for file in partition.files for batch in self._read.to_batches(file))
        for batch in resized(batches, DEFAULT_BATCH_ROWS):
            if left is not None and left <= 0:
                return
            yield for_spark(batch if left is None else batch.slice(0, left), self._arrow)
            left = None if left is None else left - batch.num_rows


class StagedFiles(WriterCommitMessage):
    """The hidden files of one task."""

    def __init__(self, files: Sequence[StagedFile]) -> None:
        self.files = tuple(files)


def write_format_table(frame: DataFrame, table: FormatTable, replaced: Any = None) -> None:
    """Write the rows of a DataFrame: tasks write hidden files, and this process publishes them.

    After an error in a task or of Spark, the hidden files are deleted, but not the files of tasks that Spark kills.

    Args:
        frame: the rows, of a classic session; columns are matched by name.
        table: the table.
        replaced: the rows to replace, as for `FormatTable.publish`.
    """

    new_writer = table.writers()  # without the catalog, which may have credentials

    def write(batches: Iterator[pa.RecordBatch]) -> StagedFiles:
        freeze_modules()
        writer: FormatTableWriter = new_writer()
        try:
            for batch in batches:
                writer.write(batch)
            return StagedFiles(writer.finish())
        except BaseException:
            writer.abort()
            raise

    def abort(results: Sequence[WriterCommitMessage | None]) -> None:
        table.discard(_files_of(results))

    if pads_writes(frame.sparkSession, table.schema.fields):
        frame = padded_frame(frame, table.schema.fields)
    few = has_few_literals(frame)
    results = run_tasks(frame.coalesce(1) if few else rebalanced(frame, table.schema.partition_keys), write, abort)
    table.publish(_files_of(results), replaced)


def _files_of(results: Sequence[WriterCommitMessage | None]) -> list[StagedFile]:
    return [file for result in results if isinstance(result, StagedFiles) for file in result.files]
