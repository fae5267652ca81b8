"""The options that decide how rows are read change only if no row changes with them."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError, TableChangedError
from paimon_core.operations import alter
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn, RemoveOption, RenameColumn, SchemaChange, SetOption
from paimon_core.schema.read_rules import READ_RULES

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64()), ("s", pa.string())])
BASE = {"bucket": "1", "num-sorted-run.compaction-trigger": "3", "deletion-vectors.modifiable": "true"}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
PARTIAL = {"merge-engine": "partial-update"}
LOOKUP, VECTORS = {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}
ON, OFF = SetOption("deletion-vectors.enabled", "true"), SetOption("deletion-vectors.enabled", "false")
CHANGES = {
    "looked up sums": (SUM, SetOption("changelog-producer", "lookup")),
    "looked up parts": (PARTIAL, SetOption("changelog-producer", "lookup")),
    "sums no longer looked up": (SUM | LOOKUP, RemoveOption("changelog-producer")),
    "parts with another changelog": (PARTIAL | LOOKUP, SetOption("changelog-producer", "full-compaction")),
    "vectors": ({}, ON),
    "vectors of sums": (SUM, ON),
    "vectors after look-ups": (PARTIAL | LOOKUP, ON),
    "no vectors": (VECTORS, OFF),
    "no vectors of sums": (SUM | VECTORS, RemoveOption("deletion-vectors.enabled")),
    "ignored deletes": ({}, SetOption("ignore-delete", "true")),
    "maximum instead of sum": (SUM, SetOption("fields.n.aggregate-function", "max")),
    "maximum by default": (SUM, SetOption("fields.default-aggregate-function", "max")),
    "group": (PARTIAL, SetOption("fields.n.sequence-group", "s")),
    "order of rows": ({}, SetOption("sequence.field", "n")),
    "order of looked up rows": (LOOKUP, SetOption("sequence.field", "n")),
    "ignored deletes by a former name": ({}, SetOption("deduplicate.ignore-delete", "true")),
}
"""By name, options of a table, and a change of one of them."""


@pytest.fixture(params=CHANGES)
def changed(request, tmp_path) -> tuple[Table, SchemaChange]:
    """Return a table with keys in several levels and a tag, and a change."""
    options, change = CHANGES[request.param]
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, ["k"], [], BASE | options))
    table.write(rows(range(3000), 1))
    table.compact(full=True)
    for number in range(7):
        table.write(rows(range(number, number + 8), number))
    if not options.get("merge-engine"):
        table.delete("k IN (2, 9)")
    assert len({e.file.level for e in live_entries(table.store, table.snapshot()).live if e.file.level}) > 1
    table.tags.create("before")
    return Table.open(table.path), change


def key_of(change: SchemaChange) -> str:
    """Return the option of a change by its present name."""
    return change.key.removeprefix("deduplicate.")


def rows(keys, number: int) -> pa.Table:
    return pa.table([[*keys], [number] * len(keys), ["s"] * len(keys)], schema=COLUMNS)


def sorted_rows(table: Table, **at) -> list[dict]:
    return table.to_arrow(**at).sort_by("k").to_pylist()


def test_change_waits_for_full_compaction(changed):
    table, change = changed
    before = sorted_rows(table)
    with pytest.raises(
        InvalidInputError, match=rf"{key_of(change)}.* cannot be .*First rewrite .*compact\(full=True\)"
    ):
        table.alter([change])
    assert sorted_rows(Table.open(table.path)) == before
    table.compact(full=True)
    table = Table.open(table.path).alter([change])
    assert sorted_rows(table) == before
    assert sorted_rows(table, tag="before") == before
    table.write(rows([3000, 3001], 5))
    table.compact(full=True)
    after = sorted_rows(Table.open(table.path))
    assert after[:-2] == before
    assert [row["n"] for row in after[-2:]] == [5, 5]
    assert sorted_rows(Table.open(table.path), tag="before") == before


def test_change_by_another_engine_is_read_as_before_and_not_committed_to(changed):
    table, change = changed
    before = sorted_rows(table)
    table.store.alter([change])  # other engines do not check the files
    table = Table.open(table.path)
    assert sorted_rows(table) == before
    assert table.get({"k": 5}) == before[[row["k"] for row in before].index(5)]
    if key_of(change) == "ignore-delete" or key_of(change) not in READ_RULES:
        return
    with pytest.raises(InvalidInputError, match=f"nothing is committed: option {key_of(change)!r} was changed, but "):
        table.with_options({"write-only": "true"}).write(rows([1], 1))
    back = table.store.schemas.get(table.schema.id - 1).options.get(change.key)
    table.alter([RemoveOption(change.key) if back is None else SetOption(change.key, back)])
    Table.open(table.path).write(rows([3000], 5))
    Table.open(table.path).compact(full=True)
    Table.open(table.path).alter([change])
    Table.open(table.path).write(rows([3001], 5))
    Table.open(table.path).compact(full=True)
    assert sorted_rows(Table.open(table.path))[:-2] == before


def test_option_of_one_read_or_write_is_refused(changed):
    table, change = changed
    with pytest.raises(InvalidInputError, match=f"option {key_of(change)!r} cannot be changed for one read or write"):
        table.with_options({change.key: getattr(change, "value", None)})


def test_writer_of_other_rules_is_refused(changed):
    table, change = changed
    table.compact(full=True)
    writer = Table.open(table.path)
    Table.open(table.path).alter([change])
    with pytest.raises(TableChangedError, match=f"option {key_of(change)!r} changed"):
        writer.write(rows([1], 1))


def test_comparisons_with_snapshots_of_other_rules_are_refused(changed):
    table, change = changed
    first = table.snapshot().id
    table.compact(full=True)
    table = Table.open(table.path).alter([change])
    table.write(rows([3000], 5))
    last = Table.open(table.path).snapshot().id
    with pytest.raises(InvalidInputError, match=f"{key_of(change)!r} was changed later, but snapshot {first} of"):
        table.changes(first, last, "diff")


def test_stream_starts_and_table_is_restored_between_change_and_next_commit(changed):
    table, change = changed
    table.compact(full=True)
    last = Table.open(table.path).snapshot().id
    table = Table.open(table.path).alter([change])
    before = sorted_rows(table)
    stream = pa.Table.from_batches(table.stream().to_batches()).sort_by("k")
    assert stream.select(COLUMNS.names).to_pylist() == before
    table.write(rows([3000], 5))
    Table.open(table.path).restore(last)
    assert sorted_rows(Table.open(table.path)) == before


def test_compaction_between_check_and_new_schema_loses_no_row(tmp_path, monkeypatch):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, ["k"], [], BASE | SUM))
    table.write(rows(range(3000), 1))
    table.compact(full=True)
    check = alter._check

    def check_then_write(*arguments):
        check(*arguments)
        for _ in range(3):
            Table.open(table.path).write(rows(range(8), 1))

    with monkeypatch.context() as patched:
        patched.setattr(alter, "_check", check_then_write)
        Table.open(table.path).alter([SetOption("changelog-producer", "lookup")])
    assert [row["n"] for row in sorted_rows(Table.open(table.path))[:9]] == [4] * 8 + [1]
    with pytest.raises(InvalidInputError, match="nothing is committed"):
        Table.open(table.path).write(rows([1], 1))
    Table.open(table.path).alter([RemoveOption("changelog-producer")])
    Table.open(table.path).compact(full=True)
    Table.open(table.path).alter([SetOption("changelog-producer", "lookup")])
    Table.open(table.path).write(rows([1], 1))
    assert [row["n"] for row in sorted_rows(Table.open(table.path))[:3]] == [4, 5, 4]


def test_function_of_new_column_needs_no_compaction(tmp_path):
    table = Table.create(
        str(tmp_path / "t"), Schema(COLUMNS, ["k"], [], BASE | PARTIAL | {"fields.n.sequence-group": "s"})
    )
    for number in range(3):
        table.write(rows([1, 2], number))
    of_column = [SetOption("fields.m.aggregate-function", "sum"), SetOption("fields.n.sequence-group", "s,m")]
    table = table.alter([AddColumn("m", "BIGINT"), *of_column])
    table = table.alter([RenameColumn("n", "number"), RenameColumn("m", "sum")])
    assert table.schema.options["fields.number.sequence-group"] == "s,sum"
    assert [row["number"] for row in sorted_rows(table)] == [2, 2]


def test_group_of_new_column_waits_for_full_compaction(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, ["k"], [], BASE | PARTIAL))
    for number in range(2):
        table.write(rows([1, 2], number))
    table.tags.create("before")
    before, group = sorted_rows(table), SetOption("fields.at.sequence-group", "s")
    table = table.alter([AddColumn("at", "BIGINT")])
    with pytest.raises(InvalidInputError, match=r"'fields\.at\.sequence-group' cannot be changed"):
        table.alter([group])
    table.compact(full=True)
    table = Table.open(table.path).alter([group])
    assert table.to_arrow(COLUMNS.names).sort_by("k").to_pylist() == before
    assert table.to_arrow(COLUMNS.names, tag="before").sort_by("k").to_pylist() == before


def test_order_by_new_column_needs_no_compaction(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, ["k"], [], BASE))
    for number in range(4):
        table.write(rows([1, 2], number))
    table = table.alter([AddColumn("at", "BIGINT"), SetOption("sequence.field", "at")])
    assert [row["n"] for row in sorted_rows(table)] == [3, 3]
    for n, at in ((5, 7), (6, 2)):
        table.write(pa.table({"k": [1], "n": [n], "s": ["s"], "at": [at]}))
    assert [row["n"] for row in sorted_rows(Table.open(table.path))] == [5, 3]
    with pytest.raises(InvalidInputError, match=r"'sequence\.field' cannot be changed"):
        Table.open(table.path).alter([RemoveOption("sequence.field")])


def test_tag_is_read_with_functions_and_names_of_then(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, ["k"], [], BASE | SUM | {"sequence.field": "s"}))
    for number in range(1, 3):
        table.write(rows([1, 2], number))
    table.tags.create("before")
    table.compact(full=True)
    table = Table.open(table.path).alter([RenameColumn("n", "s2"), RenameColumn("s", "n"), RenameColumn("s2", "s")])
    table = table.alter([SetOption("fields.s.aggregate-function", "max")])
    assert table.to_arrow(tag="before").sort_by("k").to_pylist() == rows([1, 2], 3).to_pylist()
    Table.open(table.path).write(pa.table({"k": [1], "s": [9], "n": ["s"]}))
    assert [row["s"] for row in sorted_rows(Table.open(table.path))] == [9, 3]


def test_empty_table_takes_every_change(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, ["k"], [], BASE | LOOKUP))
    for change in (SetOption("merge-engine", "aggregation"), RemoveOption("changelog-producer"), ON, OFF):
        table = table.alter([change])
    table.write(rows([1], 1))
    with pytest.raises(InvalidInputError, match="'merge-engine' cannot be changed"):
        table.alter([SetOption("merge-engine", "deduplicate")])


@pytest.mark.parametrize("keys", [[], ["k"]], ids=["append", "keyed"])
def test_vectors_are_allowed_and_turned_on_by_one_statement(tmp_path, keys):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, keys, [], {"bucket": "1"} if keys else {}))
    table.write(rows([1], 1))
    table.compact(full=True)
    with pytest.raises(InvalidInputError, match=r"unless 'deletion-vectors.modifiable' is true"):
        table.alter([ON])
    table = table.alter([SetOption("deletion-vectors.modifiable", "true"), ON])
    table.delete("k = 1")
    assert Table.open(table.path).to_arrow().num_rows == 0
