"""``deletion-vectors.modifiable``: the option is turned off once no deleted row would return."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.commit import prepared_snapshot
from paimon_core.errors import CommitUnknownError, InvalidInputError
from paimon_core.fileio.fileio import FileIO
from paimon_core.operations import alter
from paimon_core.schema.change import RemoveOption, SetOption

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64())])
OPTIONS = {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}
KINDS = {
    "keyed": (["k"], OPTIONS | {"bucket": "1"}),
    "appended": ([], OPTIONS),
    "appended in order": ([], OPTIONS | {"bucket": "1", "bucket-key": "k"}),
}
OFF = [[SetOption("deletion-vectors.enabled", "false")], [RemoveOption("deletion-vectors.enabled")]]


@pytest.mark.parametrize("changes", OFF, ids=["set", "unset"])
@pytest.mark.parametrize("kind", KINDS)
def test_turned_off_without_vectors(tmp_path, kind, changes):
    keys, options = KINDS[kind]
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, keys, [], options))
    table.write(pa.table([[1, 2, 3], [1, 2, 3]], schema=COLUMNS))
    table.compact(full=True)
    table.delete("k = 2")
    if keys:
        table.compact()
    with pytest.raises(InvalidInputError, match=r"has deletion vectors \(data files: 1\).*compact\(full=True\)"):
        table.alter(changes)
    with pytest.raises(InvalidInputError, match="deletion vectors"):
        table.alter(lambda schema: changes)
    assert Table.open(table.path).schema.options["deletion-vectors.enabled"] == "true"
    table.compact(full=True)
    table = Table.open(table.path).alter(changes)
    table.write(pa.table([[4], [4]], schema=COLUMNS))
    assert sorted(table.to_arrow()["k"].to_pylist()) == [1, 3, 4]


@pytest.mark.parametrize("changes", OFF, ids=["set", "unset"])
def test_delete_between_check_and_new_schema_keeps_option_on(tmp_path, monkeypatch, changes):
    table, check = _appended(tmp_path), alter._check

    def check_then_delete(store, before, after):
        check(store, before, after)
        if store.snapshots.latest_id() == 1:
            Table.open(table.path).delete("k = 2")

    monkeypatch.setattr(alter, "_check", check_then_delete)
    with pytest.raises(InvalidInputError, match="cannot be turned off: snapshot 2 of"):
        table.alter(changes)
    _check_deleted(table)


@pytest.mark.parametrize("modifiable", ["true", "false"])
def test_option_turned_off_during_delete_is_turned_on_again(tmp_path, monkeypatch, modifiable):
    """The DELETE has checked the schema and not yet published its snapshot."""
    table, check = _appended(tmp_path), prepared_snapshot.current_schema_id

    def check_then_alter(store):
        found = check(store)
        Table.open(table.path).alter([*OFF[0], SetOption("deletion-vectors.modifiable", modifiable)])
        return found

    monkeypatch.setattr(prepared_snapshot, "current_schema_id", check_then_alter)
    if modifiable == "false":
        with pytest.raises(CommitUnknownError, match=r"snapshot 2 of .* is committed, but .* was turned off"):
            table.delete("k = 2")
        return
    table.delete("k = 2")
    _check_deleted(table)


def test_store_that_does_not_answer_after_a_change_of_the_option(tmp_path, monkeypatch):
    table, check, calls = _appended(tmp_path), alter._check, iter("12")

    def check_once(store, before, after):
        if next(calls) == "2":
            raise OSError("no answer")
        check(store, before, after)

    monkeypatch.setattr(alter, "_check", check_once)
    with pytest.raises(OSError, match="no answer"):
        table.alter(OFF[0])
    assert Table.open(table.path).schema.options["deletion-vectors.enabled"] == "true"


def test_store_that_does_not_answer_after_a_delete(tmp_path, monkeypatch, caplog):
    table, exists = _appended(tmp_path), FileIO.exists

    def answer(io, path):
        if "/schema/" in path:
            raise OSError("no answer")
        return exists(io, path)

    monkeypatch.setattr(FileIO, "exists", answer)
    table.delete("k = 2")
    assert "snapshot 2 of" in caplog.text
    assert "did not say if 'deletion-vectors.enabled' was turned off" in caplog.text
    _check_deleted(table)


def test_option_that_is_off_may_be_set_to_off_again(tmp_path):
    """Another engine may have turned it off in spite of vectors."""
    table = _appended(tmp_path)
    table.delete("k = 2")
    table.store.alter(OFF[0])
    assert sorted(Table.open(table.path).alter(OFF[0]).to_arrow()["k"].to_pylist()) == [1, 3]
    opened_before = Table.open(table.path)
    table.alter([SetOption("deletion-vectors.enabled", "true")])
    with pytest.raises(InvalidInputError, match="deletion vectors"):
        opened_before.alter(OFF[0])


def test_deleted_rows_stay_deleted_after_both_options_are_turned_off(tmp_path):
    """Another engine may have turned them off in spite of vectors."""
    table = _appended(tmp_path)
    table.delete("k = 2")
    table.store.alter([*OFF[0], RemoveOption("deletion-vectors.modifiable")])
    table = Table.open(table.path)
    assert sorted(table.to_arrow()["k"].to_pylist()) == [1, 3]
    with pytest.raises(InvalidInputError, match=r"nothing is committed: option 'deletion-vectors.enabled' was changed"):
        table.write(pa.table([[4], [4]], schema=COLUMNS))


def _appended(directory):
    table = Table.create(str(directory / "t"), Schema(COLUMNS, *KINDS["appended"][:1], [], OPTIONS))
    table.write(pa.table([[1, 2, 3], [1, 2, 3]], schema=COLUMNS))
    return table


def _check_deleted(table):
    """The row is deleted, and stays so."""
    table = Table.open(table.path)
    assert table.schema.options["deletion-vectors.enabled"] == "true"
    assert sorted(table.to_arrow()["k"].to_pylist()) == [1, 3]
