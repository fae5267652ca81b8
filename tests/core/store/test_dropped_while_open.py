"""Objects that were opened before a table was dropped or renamed do not create the table's directory again."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import sleep

import pyarrow as pa
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import NotFoundError, PaimonError, TableChangedError
from paimon_core.fileio.fileio import FileIO, MissingDirectoryError
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import ORDERS, files_below, orders, rows_of

KEYED = Schema(ORDERS, primary_keys=["id"], options={"bucket": "1", "deletion-vectors.enabled": "true"})
PARTITIONED = Schema(ORDERS.append(pa.field("p", pa.int32())), partition_keys=["p"])


@pytest.fixture
def catalog(tmp_path):
    found = FileSystemCatalog(str(tmp_path))
    found.create_database("db")
    return found


def committed(table: Table) -> Callable[[], object]:
    """Return a commit of files that are written now."""
    writer = table.writer()
    writer.write(orders((9, "late", 9)))
    messages = writer.prepare_commit()
    return lambda: table.committer().commit(messages)


USES: dict[str, Callable[[Table], Callable[[], object]]] = {
    "write": lambda table: lambda: table.write(orders((9, "late", 9))),
    "commit": committed,
    "commit of a pickled table": lambda table: committed(pickle.loads(pickle.dumps(table))),
    "overwrite": lambda table: lambda: table.overwrite(orders((9, "late", 9))),
    "delete": lambda table: lambda: table.delete("id = 1"),
    "compact": lambda table: lambda: table.compact(full=True),
    "alter": lambda table: lambda: table.alter([AddColumn("extra", "INT")]),
    "tag": lambda table: lambda: table.tags.create("late", 1),
    "branch": lambda table: lambda: table.branches.create("late"),
    "branch of a snapshot": lambda table: lambda: table.branches.create("late", snapshot_id=1),
    "consumer": lambda table: lambda: table.consumers.reset("reader", 1),
    "read": lambda table: table.to_arrow,
    "truncate": lambda table: table.truncate,
    "rollback": lambda table: lambda: table.rollback_to(1),
}


@pytest.mark.cases(14)
@pytest.mark.parametrize("gone", ["dropped", "renamed"])
@pytest.mark.parametrize("use", USES)
def test_no_use_brings_table_back(catalog, tmp_path, use, gone):
    table = catalog.create_table("db.t", KEYED)
    for number in range(3):
        table.write(orders((1, "v", number), (2 + number, "w", number)))
    run = USES[use](catalog.table("db.t"))
    if gone == "dropped":
        catalog.drop_table("db.t")
    else:
        catalog.rename_table("db.t", "db.u")
    with pytest.raises((PaimonError, FileNotFoundError)):
        run()
    assert not (tmp_path / "db.db" / "t").exists()
    assert catalog.list_tables("db") == ([] if gone == "dropped" else ["u"])
    if gone == "renamed":
        assert [row["id"] for row in rows_of(catalog.table("db.u").to_arrow())] == [1, 2, 3, 4]
        assert catalog.table("db.u").verify(deep=True).sound


def test_error_names_missing_table(catalog):
    table = catalog.create_table("db.t", PARTITIONED)
    catalog.drop_table("db.t")
    rows = orders((1, "v", 1)).append_column("p", pa.array([3], pa.int32()))
    with pytest.raises(NotFoundError, match=r"db\.db/t\. The table.* was dropped or renamed"):
        table.write(rows)


@pytest.mark.parametrize("use", ["write", "commit", "tag", "alter"])
def test_no_use_brings_branch_back(catalog, tmp_path, use):
    table = catalog.create_table("db.t", KEYED)
    table.write(orders((1, "v", 1)))
    table.branches.create("b", snapshot_id=1)
    run = USES[use](catalog.table("db.t$branch_b"))
    table.branches.delete("b")
    with pytest.raises((PaimonError, FileNotFoundError)):
        run()
    assert table.branches.list() == []
    assert not (tmp_path / "db.db" / "t" / "branch" / "branch-b").exists()
    assert table.verify(deep=True).sound


def test_new_table_of_name_is_not_touched(catalog):
    stale = catalog.create_table("db.t", KEYED)
    stale.write(orders((1, "v", 1)))
    run = committed(stale)
    catalog.drop_table("db.t")
    catalog.create_table("db.t", Schema(pa.schema([("w", pa.string())]))).write(pa.table({"w": ["new"]}))
    with pytest.raises(PaimonError):
        run()
    assert catalog.table("db.t").to_arrow().to_pylist() == [{"w": "new"}]
    assert catalog.table("db.t").verify(deep=True).sound


def test_table_is_not_created_in_dropped_database(catalog, tmp_path, monkeypatch):
    database = catalog._existing_database("db")
    catalog.drop_database("db")
    monkeypatch.setattr(catalog, "_existing_database", lambda name: database)  # it was there a moment ago
    for create in (
        lambda: catalog.create_table("db.t", KEYED),
        lambda: catalog.stage_table("db.t", KEYED, replace_existing=True),
    ):
        with pytest.raises(NotFoundError, match="was dropped or renamed"):
            create()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_fixed_directories_are_not_made(tmp_path, scheme):
    root = f"{scheme}{tmp_path}/warehouse/t"
    free = FileIO.of(root)
    bound = pickle.loads(pickle.dumps(free.inside(root, f"{root}/branch/b")))
    actions = (
        lambda path: bound.write(path, b""),
        lambda path: bound.write_parts(path, [b""]),
        lambda path: bound.create(path).close(),
        lambda path: bound.create_exclusive(path, b""),
    )
    for number, act in enumerate(actions):
        with pytest.raises(MissingDirectoryError):
            act(f"{root}/a/{number}")
    assert not (tmp_path / "warehouse").exists()
    free.write(f"{root}/schema/schema-0", b"")
    for number, act in enumerate(actions):
        act(f"{root}/a/b{number}/f")
        act(f"{root}/{number}")
        with pytest.raises(MissingDirectoryError):
            act(f"{root}/branch/b/snapshot/{number}")
        act(f"{scheme}{tmp_path}/elsewhere/{number}/f")
    assert not (tmp_path / "warehouse" / "t" / "branch").exists()
    assert bound == free
    assert hash(bound) == hash(free)


def test_branch_store_is_bound_to_its_branch(catalog):
    store = catalog.create_table("db.t", KEYED).store
    assert replace(store, branch="b").io is not store.io
    assert replace(store, branch="main").io is store.io


def test_threads_make_one_directory_together(tmp_path):
    (tmp_path / "t").mkdir()
    io = FileIO.of(str(tmp_path / "t")).inside(str(tmp_path / "t"))
    with ThreadPoolExecutor(8) as pool:
        for turn in range(50):
            list(pool.map(lambda n, turn=turn: io.write(str(tmp_path / "t" / f"{turn}" / "a" / f"{n}"), b""), range(8)))
    assert len(files_below(tmp_path)) == 400


def test_alter_does_not_change_another_table(catalog):
    opened = catalog.create_table("db.t", KEYED)
    catalog.drop_table("db.t")
    other = catalog.create_table("db.t", KEYED)
    for changes in ([AddColumn("extra", "INT")], lambda _: [AddColumn("extra", "INT")]):
        with pytest.raises(NotFoundError, match="another one may be there now: open it again"):
            opened.alter(changes)
    assert catalog.table("db.t").schema == other.schema
    assert other.alter([AddColumn("extra", "INT")]).alter([AddColumn("more", "INT")]).schema.id == 2
    assert other.alter([AddColumn("third", "INT")]).schema.id == 3


CHANGES: dict[str, Callable[[Table], object]] = {
    "tag": lambda table: table.tags.create("late", 1),
    "replaced tag": lambda table: table.tags.replace("first", 2),
    "renamed tag": lambda table: table.tags.rename("first", "second"),
    "deleted tag": lambda table: table.tags.delete("first"),
    "expired tags": lambda table: table.tags.expire("2100-01-01"),
    "branch": lambda table: table.branches.create("late"),
    "renamed branch": lambda table: table.branches.rename("b", "c"),
    "deleted branch": lambda table: table.branches.delete("b"),
    "fast-forward": lambda table: table.branches.fast_forward("b"),
    "consumer": lambda table: table.consumers.reset("reader", 1),
    "deleted consumers": lambda table: table.consumers.clear(),
    "rollback": lambda table: table.rollback_to(1),
    "restore": lambda table: table.restore(1),
    "expiry": lambda table: table.maintenance.expire_snapshots(retain_max=1, retain_min=1),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize("change", CHANGES)
def test_old_object_does_not_change_new_table(catalog, tmp_path, change):
    def made() -> Table:
        table = catalog.create_table("db.t", KEYED)
        for number in range(3):
            table.write(orders((1, "v", number), (2 + number, "w", number)))
        table.tags.create("first", 1)
        table.branches.create("b", tag="first")
        table.consumers.reset("job", 1)
        return table

    opened = made()
    catalog.drop_table("db.t")
    sleep(0.002)  # the creation time, in milliseconds, distinguishes the tables
    table = made()
    files = files_below(tmp_path)
    with pytest.raises((NotFoundError, TableChangedError), match="open it"):
        CHANGES[change](opened)
    assert files_below(tmp_path) == files
    CHANGES[change](table)
