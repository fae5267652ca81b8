"""A change of ``changelog-producer`` loses no change and repeats none."""

from functools import partial

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError, TableChangedError
from paimon_core.schema.change import RemoveOption, SetOption
from tests.support.tables import files_below

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64())])
BASE = {"bucket": "1", "num-sorted-run.compaction-trigger": "3", "write-only": "true"}
PRODUCERS = ["none", "input", "lookup", "full-compaction"]
PAIRS = [(old, new) for old in PRODUCERS for new in PRODUCERS if old != new]
AT_COMMIT = {"none", "input"}


def rows(keys, number: int) -> pa.Table:
    return pa.table([[*keys], [number] * len(keys)], schema=COLUMNS)


def sorted_rows(table: Table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in Table.open(table.path).to_arrow().to_pylist())


def compacted(table: Table, **arguments) -> None:
    Table.open(table.path).with_options({"write-only": "false"}).compact(**arguments)


def levels(table: Table) -> set[int]:
    return {file["level"] for file in table.system_table("files").to_arrow().to_pylist()}


class Follower:
    """A job that applies the changes of a stream to its own rows, and starts again with its stream state."""

    def __init__(self, table: Table) -> None:
        self.rows: dict[int, int] = {}
        self._path, self._state = table.path, None

    def follow(self) -> list[tuple]:
        """Apply all changes, and return the rows. Changes of a changelog must fit the rows."""
        table = Table.open(self._path)
        stream = table.stream(changelog=True)
        exact = table.store.traits.changelog_producer not in AT_COMMIT
        if self._state is not None:
            stream.restore(self._state)
        while batches := list(stream.to_batches()):
            for change in (row for batch in batches for row in batch.to_pylist()):
                kind, key, value = change["rowkind"], change["k"], change["n"]
                if exact:
                    assert self.rows.get(key) == {"+I": None, "-U": value, "-D": value}.get(kind, self.rows.get(key))
                if kind in ("+I", "+U"):
                    self.rows[key] = value
                else:
                    self.rows.pop(key, None)
        self._state = stream.checkpoint()
        return sorted(self.rows.items())


def written(path, old: str, state: str) -> Table:
    """A table whose rows wait for compactions as ``state`` says, under the producer ``old``."""
    bucket = "-2" if state == "postponed" else "1"
    options = BASE | {"bucket": bucket, "changelog-producer": old}
    table = Table.create(str(path / "t"), Schema(COLUMNS, ["k"], [], options))
    table.write(rows(range(3000 if state == "partly compacted" else 6), 1))
    if state == "partly compacted":
        compacted(table, full=True)
        for number in range(7):
            table.write(rows(range(number, number + 8), number))
            compacted(table)
        assert len({level for level in levels(table) if level}) > 1
        while 0 in levels(table):
            table.write(rows([1], 1))
            compacted(table)
    elif state == "rows in level 0":
        compacted(table, full=True)
        table.write(rows([1, 9], 2))
    return table


@pytest.mark.cases(12)
@pytest.mark.parametrize("state", ["only level 0", "partly compacted", "rows in level 0", "postponed"])
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_follower_has_rows_of_table_after_change(tmp_path, old, new, state):
    table = written(tmp_path, old, state)
    follower = Follower(table)
    follower.follow()
    change = SetOption("changelog-producer", new)
    if {old, new} <= AT_COMMIT or (state == "partly compacted" and "full-compaction" not in (old, new)):
        Table.open(table.path).alter([change])
    else:
        with pytest.raises(InvalidInputError, match=r"'changelog-producer' cannot be .*First rewrite .*compact\("):
            Table.open(table.path).alter([change])
        compacted(table, full=True)
        follower.follow()
        Table.open(table.path).alter([change])
    for number in (7, 8):
        Table.open(table.path).write(rows([number, 2], number))
        compacted(table, full=True)
        assert follower.follow() == sorted_rows(table)


@pytest.mark.cases(1)
@pytest.mark.parametrize("new", ["lookup", "full-compaction"])
def test_nothing_is_committed_under_producer_of_another_engine(tmp_path, new):
    table = written(tmp_path, "none", "only level 0")
    table.store.alter([SetOption("changelog-producer", new)])  # Java checks nothing
    for commit in (lambda: Table.open(table.path).write(rows([7], 1)), lambda: compacted(table, full=True)):
        with pytest.raises(InvalidInputError, match=r"nothing is committed: option 'changelog-producer'.*'none' again"):
            commit()
    Table.open(table.path).alter([RemoveOption("changelog-producer")])
    compacted(table, full=True)
    Table.open(table.path).alter([SetOption("changelog-producer", new)])
    Table.open(table.path).write(rows([7], 1))
    assert len(sorted_rows(table)) == 7


@pytest.mark.cases(1)
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_writer_of_another_producer_is_refused(tmp_path, old, new):
    table = written(tmp_path, old, "only level 0")
    compacted(table, full=True)
    writer = Table.open(table.path).writer()
    writer.write(rows([7], 1))
    messages = writer.prepare_commit()
    Table.open(table.path).alter([SetOption("changelog-producer", new)])
    with pytest.raises(TableChangedError, match="option 'changelog-producer' changed"):
        table.committer().commit(messages)


@pytest.mark.cases(1)
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_no_write_has_producer_of_its_own(tmp_path, old, new):
    table = written(tmp_path, old, "only level 0")
    files = files_below(table.path)
    other = table.with_options({"changelog-producer": new})
    compact = partial(other.with_options({"write-only": "false"}).compact, full=True)
    for commit in (lambda: other.write(rows([7], 1)), lambda: other.overwrite(rows([7], 1)), compact):
        with pytest.raises(InvalidInputError, match=rf"cannot be changed from '{old}' to '{new}' for one write"):
            commit()
    assert files_below(table.path) == files
    assert sorted_rows(table) == [(k, 1) for k in range(6)]
    assert sorted_rows(other) == sorted_rows(table)


@pytest.mark.cases(1)
@pytest.mark.parametrize("new", PRODUCERS[1:])
def test_changes_before_first_changelog_are_refused(tmp_path, new):
    table = written(tmp_path, "none", "only level 0")
    compacted(table, full=True)
    with pytest.raises(InvalidInputError, match=f"has no changelog: .* was 'none', and is '{new}' now"):
        table.with_options({"changelog-producer": new}).changes(0)
    with pytest.raises(InvalidInputError, match=f"has no changelog: .* was 'none', and is '{new}' now"):
        list(table.with_options({"changelog-producer": new, "scan.snapshot-id": "1"}).stream().to_batches())
    tag = table.snapshot().id
    table = Table.open(table.path).alter([SetOption("changelog-producer", new)])
    table.write(rows([7, 1], 7))
    compacted(table, full=True)
    for mode in ("auto", "changelog"):
        with pytest.raises(InvalidInputError, match=r"snapshot 1 of .* has no changelog.*'delta'.*'diff'"):
            table.changes(0, mode=mode)
        assert {row["k"] for row in table.changes(tag, mode=mode).to_pylist()} == {1, 7}
    assert {row["k"] for row in table.changes(0, mode="delta").to_pylist()} == {*range(6), 7}
    assert {row["k"] for row in table.changes(0, mode="diff").to_pylist()} == {*range(6), 7}
