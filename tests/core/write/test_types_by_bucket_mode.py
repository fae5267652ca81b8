"""Every column type in every bucket mode: written by one writer and by several tasks, then compacted."""

import pyarrow as pa
import pytest

from paimon_core.operations.distributed_write import DistributedWrite, TaskWrite
from paimon_core.types.arrow import arrow_schema
from tests.support.bucket_modes import MODES, VALUES, fields_of, numbered, table_of
from tests.support.samples import rows_of

KEYS = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(38,10)", "CHAR(5)",
    "STRING", "BINARY(3)", "BYTES", "DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE",
)  # fmt: skip


def write_by_tasks(table, *tasks):
    """Commit the rows of several tasks at once. No task may assume that it has all rows of its keys."""
    job = DistributedWrite(table.store)
    writes = []
    for number, rows in enumerate(tasks):
        with job.task_writer(number) as writer:
            writer.write(rows)
            writes.append(TaskWrite(tuple(writer.prepare_commit()), writer.started_from))
    prepared = job.prepare(writes)
    table.committer().commit(prepared.messages, started_from=prepared.started_from)


def shown(table):
    return table.to_arrow().sort_by("id")


@pytest.mark.parametrize("mode", MODES)
def test_values_of_every_type(tmp_path, mode):
    table = table_of(tmp_path / "t", mode, {"id": "INT NOT NULL", "p": "INT NOT NULL", **VALUES})
    values = rows_of(fields_of(VALUES), 7, 90)
    table.write(numbered(values.slice(0, 30), 0, 1))
    write_by_tasks(table, numbered(values.slice(30, 30), 30, 1), numbered(values.slice(60), 60, 2))
    expected = pa.concat_tables([numbered(values.slice(0, 60), 0, 1), numbered(values.slice(60), 60, 2)]).cast(
        arrow_schema(table.schema.fields)
    )
    if mode == "postponed, waiting":
        assert shown(table).num_rows == 0
        table.compact()
    assert shown(table).equals(expected)
    table.compact(full=True)
    assert shown(table).equals(expected)


@pytest.mark.cases(20)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type_text", KEYS)
def test_keys_and_partitions_of_every_type(tmp_path, mode, type_text):
    columns = {"id": f"{type_text} NOT NULL", "p": f"{type_text} NOT NULL", "v": type_text}
    table, keys = table_of(tmp_path / "t", mode, columns), MODES[mode][0]
    values = rows_of(fields_of(columns), 3, 40)
    first, second = values.slice(0, 25), values.slice(15)
    second = second.take(
        list({key_of(row, keys) or number: number for number, row in enumerate(python_rows(second))}.values())
    )
    table.write(first)
    write_by_tasks(table, second.slice(0, 2), second.slice(2))
    if mode == "postponed, waiting":
        table.compact()
    rows = enumerate([*python_rows(first), *python_rows(second)])
    expected = {key_of(row, keys) or number: row for number, row in rows}.values()
    assert sorted(map(repr, python_rows(table.to_arrow()))) == sorted(map(repr, expected))


def python_rows(table):
    """The rows as dictionaries; timestamps are numbers, because nanoseconds as objects need pandas."""
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.int64()))
    return table.to_pylist()


def key_of(row, keys):
    return tuple(row[key] for key in keys)
