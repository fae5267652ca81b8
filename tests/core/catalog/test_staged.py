"""Tables that are filled before they appear."""

import pyarrow as pa
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.catalog.staged import StagedTable
from paimon_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    PaimonError,
    TableChangedError,
)
from paimon_core.schema.change import AddColumn, SetOption
from paimon_core.schema.schema import Schema

OLD = Schema(pa.schema([("k", pa.int64()), ("p", pa.string())]), partition_keys=["p"])
NEW = pa.schema([("k", pa.string()), ("p", pa.string())])
ROWS = pa.table({"k": ["a", "b"], "p": ["x", "y"]}, NEW)


@pytest.fixture
def catalog(tmp_path):
    found = FileSystemCatalog(str(tmp_path))
    found.create_database("db")
    return found


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ([], {}),
        ([], {"row-tracking.enabled": "true"}),
        (["k", "p"], {"bucket": "2"}),
        (["k", "p"], {"bucket": "-1"}),
        (["k", "p"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_staged_table_appears_with_all_rows(catalog, keys, options, exists):
    if exists:
        catalog.create_table("db.t", OLD).write(pa.table({"k": [1], "p": ["x"]}))
    staged = catalog.stage_table("db.t", Schema(NEW, keys, ["p"], options), replace_existing=exists)
    staged.table.write(ROWS)
    assert catalog.table_exists("db.t") is exists
    if exists:
        assert catalog.table("db.t").to_arrow()["k"].to_pylist() == [1]
    result = staged.publish()
    for table in (result, catalog.table("db.t")):
        assert table.to_arrow().sort_by("k").to_pydict() == ROWS.to_pydict()
        assert table.branches.list() == []
    result.write(pa.table({"k": ["c"], "p": ["x"]}))
    assert sorted(result.to_arrow()["k"].to_pylist()) == ["a", "b", "c"]
    if exists:
        assert result.to_arrow(version=1)["k"].to_pylist() == [1]


@pytest.mark.parametrize("exists", [False, True])
def test_discarded_table_leaves_no_file(catalog, tmp_path, exists):
    if exists:
        catalog.create_table("db.t", OLD).write(pa.table({"k": [1], "p": ["x"]}))
    before = sorted(tmp_path.rglob("data-*"))
    staged = catalog.stage_table("db.t", Schema(NEW, (), ["p"]), replace_existing=exists)
    staged.table.write(ROWS)
    staged.discard()
    assert sorted(tmp_path.rglob("data-*")) == before
    assert (tmp_path / "db.db" / "t").exists() is exists
    assert not exists or catalog.table("db.t").to_arrow()["k"].to_pylist() == [1]


def test_publish_after_concurrent_change_is_refused(catalog):
    new = catalog.stage_table("db.t", OLD, replace_existing=True)
    catalog.create_table("db.t", OLD)
    with pytest.raises(AlreadyExistsError, match="created by another process"):
        new.publish()
    with pytest.raises(AlreadyExistsError, match=r"'db.t'"):
        catalog.stage_table("db.t", OLD, replace_existing=False)
    other = catalog.stage_table("db.t", OLD, replace_existing=True)
    catalog.alter_table("db.t", [SetOption("snapshot.num-retained.max", "100")])
    with pytest.raises(CommitConflictError, match="altered by another process"):
        other.publish()


def test_other_partition_columns_are_refused(catalog):
    catalog.create_table("db.t", OLD)
    with pytest.raises(
        InvalidInputError, match=r"by p STRING and .* by one partitioned by no column,.*: drop the table"
    ):
        catalog.stage_table("db.t", Schema(NEW), replace_existing=True)


class Died(BaseException):
    pass


@pytest.mark.parametrize("rolled_back", [False, True])
def test_table_is_written_to_again_after_rollback(catalog, monkeypatch, rolled_back):
    """The replacement is complete and rolled back, or its process died between the schema and the rows."""
    table = catalog.create_table("db.t", OLD)
    table.write(pa.table({"k": [1], "p": ["x"]}))
    staged = catalog.stage_table("db.t", Schema(NEW, (), ["p"]), replace_existing=True)
    staged.table.write(ROWS)
    if rolled_back:
        staged.publish()
    else:
        monkeypatch.setattr(StagedTable, "_publish_rows", lambda *_: (_ for _ in ()).throw(Died))
        with pytest.raises(Died):
            staged.publish()
        assert catalog.table("db.t").to_arrow()["k"].to_pylist() == [1]
        with pytest.raises(TableChangedError, match="roll the table back to its newest snapshot"):
            catalog.table("db.t").write(pa.table({"k": [2], "p": ["x"]}))
    catalog.table("db.t").rollback_to(1)
    restored = catalog.table("db.t")
    assert (restored.schema.names, restored.schema.id) == (("k", "p"), 2)
    restored.write(pa.table({"k": [2], "p": ["x"]}))
    assert sorted(restored.to_arrow()["k"].to_pylist()) == [1, 2]
    highest = staged.store.schema.highest_field_id
    assert restored.alter([AddColumn("extra", "INT")]).schema.field("extra").id == highest + 1
    assert restored.verify(deep=True).sound


@pytest.mark.parametrize("error", [CommitConflictError, OSError])
def test_table_is_as_before_if_its_replacement_fails(catalog, monkeypatch, error):
    catalog.create_table("db.t", OLD).write(pa.table({"k": [1], "p": ["x"]}))
    staged = catalog.stage_table("db.t", Schema(NEW, (), ["p"]), replace_existing=True)
    staged.table.write(ROWS)

    def fail(*_):
        raise error("others were first")

    monkeypatch.setattr(StagedTable, "_publish_rows", fail)
    with pytest.raises(error, match="others were first"):
        staged.publish()
    staged.discard()
    table = catalog.table("db.t")
    table.write(pa.table({"k": [2], "p": ["x"]}))
    assert sorted(table.to_arrow()["k"].to_pylist()) == [1, 2]
    assert table.verify(deep=True).sound


@pytest.mark.parametrize("exists", [False, True])
def test_rows_of_replacement_with_unknown_outcome_stay(catalog, monkeypatch, exists):
    """The answer of the storage was lost: the rows may be there, so neither their files nor their schema go."""
    if exists:
        catalog.create_table("db.t", OLD).write(pa.table({"k": [1], "p": ["x"]}))
    staged = catalog.stage_table("db.t", Schema(NEW, (), ["p"]), replace_existing=exists)
    staged.table.write(ROWS)
    publish = StagedTable._publish_rows

    def publish_and_fail(*given):
        publish(*given)
        raise CommitUnknownError("the storage did not say")

    monkeypatch.setattr(StagedTable, "_publish_rows", publish_and_fail)
    with pytest.raises(CommitUnknownError):
        staged.publish()
    staged.discard()
    table = catalog.table("db.t")
    assert table.to_arrow().sort_by("k").to_pydict() == ROWS.to_pydict()
    assert table.verify(deep=True).sound


def test_files_of_branch_that_cannot_be_dropped_stay(catalog, monkeypatch):
    catalog.create_table("db.t", OLD).write(pa.table({"k": [1], "p": ["x"]}))
    staged = catalog.stage_table("db.t", Schema(NEW, (), ["p"]), replace_existing=True)
    staged.table.write(ROWS)

    def fail(*_):
        raise OSError("no permission")

    monkeypatch.setattr("paimon_core.catalog.staged.drop_directory", fail)
    staged.discard()
    assert staged.table.to_arrow().num_rows == 2
    assert catalog.table("db.t").verify(deep=True).sound


@pytest.mark.parametrize("exists", [False, True])
def test_branches_of_table_created_with_rows(catalog, exists):
    if exists:
        catalog.create_table("db.t", OLD).write(pa.table({"k": [1], "p": ["x"]}))
    staged = catalog.stage_table("db.t", Schema(NEW, (), ["p"]), replace_existing=exists)
    staged.table.write(ROWS)
    table = staged.publish()
    table.branches.create("empty")
    assert catalog.table("db.t$branch_empty").schema.names == ("k", "p")
    assert catalog.table("db.t$branch_empty").to_arrow().num_rows == 0
    table.branches.create("full", snapshot_id=table.snapshot().id)
    catalog.table("db.t$branch_full").write(pa.table({"k": ["c"], "p": ["z"]}))
    table.branches.fast_forward("full")
    assert sorted(catalog.table("db.t").to_arrow()["k"].to_pylist()) == ["a", "b", "c"]
    catalog.table("db.t$branch_empty").write(pa.table({"k": ["d"], "p": ["z"]}))
    table.branches.fast_forward("empty")
    assert catalog.table("db.t").to_arrow()["k"].to_pylist() == ["d"]
    assert catalog.table("db.t").verify(deep=True).sound


@pytest.mark.parametrize("when", ["before", "after the schema"])
@pytest.mark.parametrize("exists", [False, True])
def test_new_table_with_same_name_is_not_touched(catalog, monkeypatch, exists, when):
    if exists:
        catalog.create_table("db.t", OLD).write(pa.table({"k": [1], "p": ["x"]}))
    staged = catalog.stage_table("db.t", Schema(NEW, (), ["p"]), replace_existing=True)
    staged.table.write(ROWS)

    def create_another(*_):
        catalog.drop_table("db.t")
        catalog.create_table("db.t", OLD).write(pa.table({"k": [7], "p": ["x"]}))

    if when == "before":
        create_another()
    else:
        monkeypatch.setattr(StagedTable, "_messages", create_another)
    with pytest.raises(PaimonError):
        staged.publish()
    staged.discard()
    table = catalog.table("db.t")
    assert (table.schema.names, table.schema.id) == (("k", "p"), 0)
    assert table.to_arrow()["k"].to_pylist() == [7]
    table.write(pa.table({"k": [8], "p": ["x"]}))
    assert table.verify(deep=True).sound


def test_schema_in_another_table_is_taken_back(catalog, monkeypatch):
    """The table is created again between the check and the publication of the schema; the process may die then."""
    catalog.create_table("db.t", OLD).write(pa.table({"k": [1], "p": ["x"]}))
    staged = catalog.stage_table("db.t", Schema(NEW, (), ["p"]), replace_existing=True)
    staged.table.write(ROWS)
    check, calls = StagedTable._check_table, []

    def checked(self):
        check(self)
        calls.append(self)
        if len(calls) == 1:
            catalog.drop_table("db.t")
            catalog.create_table("db.t", OLD).write(pa.table({"k": [7], "p": ["x"]}))

    monkeypatch.setattr(StagedTable, "_check_table", checked)
    with pytest.raises(TableChangedError, match="run the statement again"):
        staged.publish()
    table = catalog.table("db.t")
    assert table.to_arrow()["k"].to_pylist() == [7]
    assert table.store.schemas.ids() == [0]
    table.write(pa.table({"k": [8], "p": ["x"]}))
