"""Overwrites with a condition: delete the matching rows and add new rows in one commit."""

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from paimon_core import Table
from paimon_core.engine import (
    Guard,
    Predicate,
    StartedFrom,
    align,
    check_added_names,
    check_deletes,
    column_positions,
    evaluate,
    replace_matching_rows,
    shows_all,
)
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.merge import SEQUENCE_FIELD
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.bucket_shuffle import find_shuffle, shuffle_for
from paimon_spark.char_columns import padded_frame, pads_writes
from paimon_spark.frame_write import run_tasks, runner_for
from paimon_spark.options import WriteRequest
from paimon_spark.types import spark_schema
from paimon_spark.write_job import TaskWrites, WriteJob
from paimon_spark.writer import PaimonWriter


class _Matching:
    """A check of rows against a condition before they are written. Its objects can be pickled."""

    def __init__(self, table: Table, predicate: Predicate, schema: StructType) -> None:
        self._table, self._predicate = table, predicate
        shuffle = find_shuffle(schema.names, table.schema.names)
        added = {ROW_KIND.name, *(shuffle or ())[:1]}
        self._names = [name for name in schema.names if name not in added]
        self._positions = column_positions(self._names, table.schema)

    def checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches. Raise InvalidInputError for a new row that does not match."""
        for batch in batches:
            rows = batch
            if ROW_KIND.name in batch.schema.names:
                rows = batch.filter(pc.equal(batch.column(ROW_KIND.name), "+I"))
            aligned = align(rows.select(self._names), self._table.schema, self._positions)
            matches = pc.fill_null(evaluate(self._predicate, aligned), False)
            if not pc.all(matches, min_count=0).as_py():
                wrong = aligned.filter(pc.invert(matches)).slice(0, 1).to_pylist()[0]
                raise InvalidInputError(
                    f"the statement replaces the rows where {self._predicate}, and the new row {wrong} does not "
                    "match: leave it out, or insert it with a separate statement"
                )
            yield batch


def replace_rows(frame: DataFrame, table: Table, request: WriteRequest, predicate: Predicate) -> None:
    """Delete the rows of a table that match, and write the rows of a DataFrame, in one commit.

    Args:
        frame: the new rows.
        table: the table to write.
        request: the write options.
        predicate: the condition on the rows to replace, bound to the table's columns.

    Raises InvalidInputError if a new row does not match, UnsupportedError if the table has sequence fields, so that new
    rows might not replace old rows.
    """
    check_deletes(table.schema)
    if pads_writes(frame.sparkSession, table.schema.fields):
        frame = padded_frame(frame, table.schema.fields)
    if request.version is not None or request.row_kind_column is not None:
        raise UnsupportedError(
            "options 'txnVersion' and 'row-kind-column' cannot be combined with a condition: leave them out"
        )
    if table.schema.primary_keys:
        _replace_keyed(frame, table, request, predicate)
        return
    shuffled = frame.transform(shuffle_for(table))
    job = WriteJob(table, request, shuffled.schema, overwrite=False)
    matching = _Matching(table, predicate, shuffled.schema)

    def write(batches: Iterator[pa.RecordBatch]) -> TaskWrites:
        return job.write(matching.checked(batches))

    prepared = job.prepare(run_tasks(shuffled, write, job.abort))
    runner = runner_for(frame, table)
    replace_matching_rows(
        table.store,
        predicate,
        prepared.messages,
        user=request.commit_user,
        properties=request.properties or None,
        runner=runner,
    )
    job.finish(prepared, runner=runner)


def _replace_keyed(frame: DataFrame, table: Table, request: WriteRequest, predicate: Predicate) -> None:
    """Write a row of kind -D for every matching row, before the new rows of its bucket."""
    check_added_names(table.store, ROW_KIND)
    sequence = table.schema.options.value(SEQUENCE_FIELD)
    if sequence:
        raise UnsupportedError(
            f"rows of a table with 'sequence.field' = {','.join(sequence)!r} cannot be replaced by a condition: an old "
            "row may outrank a new one; DELETE the rows and INSERT"
        )
    snapshot = table.snapshot()
    options = {**request.address.others, "path": table.path, **shows_all(table.schema)}
    if request.address.branch is not None:
        options["branch"] = request.address.branch
    rows = frame.withColumn(ROW_KIND.name, F.lit("+I"))
    if snapshot is not None:
        reader = frame.sparkSession.read.format("paimon").options(**options, filter=str(predicate))
        columns = spark_schema(table.schema.fields)  # a key must be deleted as it is stored: without more blanks
        old = reader.option("read.rows-of-snapshot", str(snapshot.id)).schema(columns).load()
        old = old.toDF(*(name for name in old.columns)).withColumn(ROW_KIND.name, F.lit("-D"))
        rows = rows.unionByName(old)
        started_from = StartedFrom.of(snapshot, Guard.ROWS)
        user = request.commit_user or uuid.uuid4().hex
        request = replace(request, started_from=started_from, commit_user=user)
    request = replace(request, row_kind_column=ROW_KIND.name)
    ordered = rows.transform(shuffle_for(table, None)).sortWithinPartitions(F.col(ROW_KIND.name) == "+I")
    writer = PaimonWriter(table, request, ordered.schema, False)
    matching = _Matching(table, predicate, ordered.schema)

    def write(batches: Iterator[pa.RecordBatch]) -> TaskWrites:
        return writer.write(matching.checked(batches))

    writer.commit(run_tasks(ordered, write, writer.abort), runner_for(frame, table))
