"""A column that decides how the rows of a key are merged gets another type only if no row changes."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError, TableChangedError
from paimon_core.schema.change import RenameColumn, SetOption, UpdateType

TEXTS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.string()), ("v", pa.string())])
NUMBERS = TEXTS.set(1, pa.field("s", pa.int32()))
ENGINES = {
    "sequence": {"sequence.field": "s"},
    "sequence of sums": {"merge-engine": "aggregation", "sequence.field": "s"},
    "maximum": {"merge-engine": "aggregation", "fields.s.aggregate-function": "max"},
    "maximum by default": {"merge-engine": "aggregation", "fields.default-aggregate-function": "max"},
    "group": {"merge-engine": "partial-update", "fields.s.sequence-group": "v"},
}
OTHERS = {
    "deduplicate": {},
    "last value": {"merge-engine": "aggregation", "fields.s.aggregate-function": "last_value"},
    "partial update": {"merge-engine": "partial-update"},
    "other sequence": {"sequence.field": "v"},
}


def table_with(path, options: dict[str, str], columns: pa.Schema = TEXTS) -> Table:
    """Two rows of each of two keys, not merged yet: as texts, 9 is larger than 10."""
    table = Table.create(str(path / "t"), Schema(columns, ["k"], [], {"bucket": "1", "write-only": "true"} | options))
    for values in ((9, 10), (10, 9)):
        table.write(rows(columns, values))
    return Table.open(table.path)


def rows(columns: pa.Schema, values, keys=(1, 2)) -> pa.Table:
    texts = [f"v{value}" for value in values]
    return pa.table([[*keys], pa.array(values).cast(columns.field("s").type), texts], schema=columns)


def shown(table: Table) -> list[tuple[int, str]]:
    return sorted((row["k"], str(row["s"])) for row in Table.open(table.path).to_arrow().to_pylist())


@pytest.mark.cases(5)
@pytest.mark.parametrize("engine", ENGINES)
def test_change_of_order_waits_for_full_compaction(tmp_path, engine):
    table = table_with(tmp_path, ENGINES[engine])
    before = shown(table)
    for changes in (
        [UpdateType("s", "INT")],
        [RenameColumn("s", "t"), UpdateType("t", "INT")],
    ):
        with pytest.raises(InvalidInputError, match=r"the type of column '[st]' cannot be changed: snapshot 2 .*First"):
            table.alter(changes)
    assert shown(table) == before
    table.with_options({"write-only": "false"}).compact(full=True)
    Table.open(table.path).alter([UpdateType("s", "INT")])
    assert shown(table) == before
    Table.open(table.path).write(rows(NUMBERS, (7, 8), (3, 4)))
    assert shown(table)[:2] == before


@pytest.mark.cases(4)
@pytest.mark.parametrize("engine", OTHERS)
def test_other_columns_change_at_once(tmp_path, engine):
    table = table_with(tmp_path, OTHERS[engine])
    before = shown(table)
    table.alter([UpdateType("s", "INT")])
    assert shown(table) == before


@pytest.mark.cases(5)
@pytest.mark.parametrize("to", ["BIGINT", "DECIMAL(12, 2)", "DOUBLE"])
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "maximum by default"])
def test_wider_types_keep_order(tmp_path, engine, to):
    table = table_with(tmp_path, ENGINES[engine], NUMBERS)
    before = [(key, float(value)) for key, value in shown(table)]
    table.alter([UpdateType("s", to)])
    assert [(key, float(value)) for key, value in shown(table)] == before


def test_writers_do_not_change_order(tmp_path):
    table = table_with(tmp_path, ENGINES["sequence"])
    options = {"write.merge-schema": "true", "write.merge-schema.explicit-cast": "true"}
    with pytest.raises(InvalidInputError, match="the type of column 's' cannot be changed"):
        table.with_options(options).write(rows(NUMBERS, (7, 8)))
    table.with_options({"write-only": "false"}).compact(full=True)
    writer = Table.open(table.path).writer()
    writer.write(rows(TEXTS, (11, 12)))
    messages = writer.prepare_commit()
    Table.open(table.path).alter([UpdateType("s", "INT")])
    with pytest.raises(TableChangedError, match="column 's' decides how rows are merged, and its type changed"):
        table.committer().commit(messages)


def test_table_without_rows_changes_at_once(tmp_path):
    schema = Schema(TEXTS, ["k"], [], {"bucket": "1", "sequence.field": "s"})
    table = Table.create(str(tmp_path / "t"), schema)
    table = Table.open(table.path).alter([SetOption("merge-engine", "partial-update"), UpdateType("s", "INT")])
    table.write(rows(NUMBERS, (7, 8)))
    assert shown(table) == [(1, "7"), (2, "8")]


def test_rollback_does_not_change_order(tmp_path):
    table = table_with(tmp_path, ENGINES["sequence"])
    before = shown(table)
    table.with_options({"write-only": "false"}).compact(full=True)
    altered = Table.open(table.path).alter([UpdateType("s", "INT")])
    for opened in (altered, table):
        with pytest.raises(InvalidInputError, match="the type of column 's' was changed since"):
            opened.rollback_to(2)
    altered.alter([UpdateType("s", "STRING")])
    altered.rollback_to(2)
    assert shown(table) == before
