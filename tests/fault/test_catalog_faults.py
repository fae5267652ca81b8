"""A process that dies at any storage call of a catalog operation leaves each table whole or gone.

The stores: a local disk and a dictionary, which rename directories in one step, and a dictionary that does not, as an
object store. After each death the same operation, or `drop_table` and `create_table`, must find a way on.
"""

import shutil
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from paimon_core.store.drop import STAGED
from paimon_core.table import Table
from tests.support.draws import points
from tests.support.faulty_io import MODES, SAVED, Crash, FaultyIO, MemoryIO, Mode
from tests.support.tables import ORDERS, orders, rows_of

KEYED = Schema(ORDERS, primary_keys=["id"], options={"bucket": "1", "write-only": "true"})
OTHER = Schema(pa.schema([("id", pa.int64()), ("w", pa.string())]))
OTHER_ROWS = pa.table({"id": [7], "w": ["new"]}, OTHER.fields)
STORES = ("disk", "renaming memory", "flat memory")
MODES_OF_DEATH: tuple[Mode, ...] = ("crash", "torn", "lost-answer")
_SILENT = {"read", "open", "exists", "list"}


@dataclass
class Place:
    """A warehouse on one store, which can be reset to a state and used through any FileIO."""

    root: str
    io: FileIO
    directory: Path | None
    use: Callable[[FileIO], None]

    def save(self) -> Any:
        if isinstance(self.io, MemoryIO):
            return dict(self.io.files)
        saved = self.directory.with_name("saved")
        shutil.rmtree(saved, ignore_errors=True)
        shutil.copytree(self.directory, saved)
        return saved

    def reset(self, saved: Any) -> None:
        self.use(self.io)
        if isinstance(self.io, MemoryIO):
            self.io.files = dict(saved)
        else:
            shutil.rmtree(self.directory)
            shutil.copytree(saved, self.directory)

    def files(self) -> list[str]:
        """The files and directories of the database, without the file that keeps it."""
        if isinstance(self.io, MemoryIO):
            found = [path for path in self.io.files if path.startswith(f"{self.root}/db.db/")]
        else:
            found = [str(path) for path in (self.directory / "db.db").rglob("*")]
        return [path for path in found if not path.endswith("/.database")]

    def catalog(self) -> FileSystemCatalog:
        return FileSystemCatalog(self.root)


@pytest.fixture
def place(request, tmp_path, monkeypatch):
    kind = request.param
    current: list[FileIO] = []
    made = FileIO.of
    if kind == "disk":
        directory = tmp_path / "warehouse"
        directory.mkdir()
        root, io = str(directory), made(str(directory))
    else:
        directory, root, io = None, "memory://w", MemoryIO(atomic_renames=kind == "renaming memory")
        if kind == "renaming memory" and not io.renames_atomically:
            pytest.skip("the store does not rename directories in one step")
    current.append(io)
    monkeypatch.setattr(FileIO, "of", staticmethod(lambda *_: current[-1]))
    return Place(root, io, directory, current.append)


def on(*stores: str):
    return pytest.mark.parametrize("place", stores, indirect=True)


def dying(place: Place, operation: Callable[[], object], mode: Mode, least: int = 3):
    """Yield after the operation died at each of its calls, with the state and the store restored for the next one."""
    saved = place.save()
    dry = FaultyIO(place.io)
    place.use(dry)
    operation()
    skipped = {*_SILENT, "create"} if mode == "torn" else _SILENT if mode == "lost-answer" else set()
    calls = [number for number, (verb, _) in enumerate(dry.log) if verb not in skipped]
    assert len(calls) >= least
    for at in points(calls):
        place.reset(saved)
        place.use(FaultyIO(place.io, at, mode))
        died = False
        try:
            operation()
        except (Crash, OSError, PaimonError):
            died = True
        place.use(place.io)
        yield dry.log[at], died
    place.reset(saved)
    operation()


def fill(place: Place, name: str = "db.t") -> Table:
    catalog = place.catalog()
    catalog.create_database("db", ignore_if_exists=True)
    table = catalog.create_table(name, KEYED)
    for number in range(3):
        table.write(orders((1, f"v{number}", number), (10 + number, "more", number)))
    table.tags.create("kept", 1)
    table.branches.create("b", "kept")
    table.consumers.reset("reader", 2)
    return table


def rows(place: Place, name: str = "db.t") -> list[dict]:
    return rows_of(place.catalog().table(name).to_arrow())


def create_again(place: Place, name: str = "db.t") -> None:
    """Create a table of the name, after another drop if that is needed, and check that it is new."""
    catalog = place.catalog()
    try:
        table = catalog.create_table(name, OTHER)
    except (AlreadyExistsError, InvalidInputError):
        catalog.drop_table(name)
        table = catalog.create_table(name, OTHER)
    assert rows(place, name) == []
    branches = [branch for branch in table.branches.list() if not branch.startswith(STAGED)]
    assert (table.tags.list(), branches, table.consumers.list()) == ([], [], {})
    table.write(OTHER_ROWS)
    assert rows(place, name) == OTHER_ROWS.to_pylist()
    assert catalog.table(name).verify(deep=True).sound
    catalog.drop_table(name)
    assert catalog.list_tables("db") == []
    assert place.files() == []


@on(*STORES)
@pytest.mark.parametrize("mode", MODES_OF_DEATH)
def test_dropped_table_is_complete_or_missing(place: Place, mode: Mode):
    fill(place)
    before = rows(place)

    def drop():
        place.catalog().drop_table("db.t")

    for call, _ in dying(place, drop, mode):
        catalog = place.catalog()
        if catalog.list_tables("db"):
            assert rows(place) == before, call
            assert catalog.table("db.t").verify(deep=True).sound, call
        else:
            with pytest.raises(NotFoundError):
                catalog.table("db.t")
            with pytest.raises(NotFoundError):
                Table.open(catalog.location("db.t"))
        create_again(place)


@on(*STORES)
def test_drop_is_repeated_until_nothing_is_left(place: Place):
    fill(place)

    def drop():
        place.catalog().drop_table("db.t", ignore_if_not_exists=True)

    for call, _ in dying(place, drop, "torn"):
        drop()
        drop()
        assert place.files() == [], call
        assert place.catalog().list_tables("db") == []


@on(*STORES)
@pytest.mark.parametrize("mode", MODES_OF_DEATH)
def test_cascading_drop_leaves_whole_tables(place: Place, mode: Mode):
    fill(place, "db.t")
    fill(place, "db.u")
    before = rows(place)

    def drop():
        place.catalog().drop_database("db", cascade=True)

    for call, _ in dying(place, drop, mode, least=6):
        catalog = place.catalog()
        if catalog.list_databases():
            for name in catalog.list_tables("db"):
                assert rows(place, f"db.{name}") == before, call
            drop()
        assert place.catalog().list_databases() == []
        assert place.io.list(place.root) == []


@on(*STORES)
@pytest.mark.parametrize("mode", MODES_OF_DEATH)
def test_deleted_branch_is_complete_or_missing(place: Place, mode: Mode):
    fill(place)
    before, of_branch = rows(place), rows(place, "db.t$branch_b")

    def delete():
        place.catalog().table("db.t").branches.delete("b")

    for call, _ in dying(place, delete, mode):
        table = place.catalog().table("db.t")
        with suppress(NotFoundError):
            assert rows(place, "db.t$branch_b") == of_branch, call
        if "b" in table.branches.list():
            table.branches.delete("b")
        with pytest.raises(NotFoundError):
            place.catalog().table("db.t$branch_b")
        table.branches.create("b")
        assert rows(place, "db.t$branch_b") == []
        assert rows(place) == before
        table.branches.delete("b")
        assert not [path for path in place.files() if "/branch-" in path], call


@on("disk", "renaming memory")
def test_renamed_table_has_one_name(place: Place):
    fill(place)
    before = rows(place)

    def rename():
        place.catalog().rename_table("db.t", "db.u")

    for call, _ in dying(place, rename, "crash"):
        names = place.catalog().list_tables("db")
        assert names in (["t"], ["u"]), call
        assert rows(place, f"db.{names[0]}") == before
        if names == ["t"]:
            rename()
        assert rows(place, "db.u") == before


@on("flat memory")
def test_rename_without_atomic_renames_is_refused(place: Place):
    table = fill(place)
    with pytest.raises(PaimonError, match=r"cannot rename a directory atomically.*clone"):
        place.catalog().rename_table("db.t", "db.u")
    with pytest.raises(PaimonError, match="cannot rename a directory atomically"):
        table.branches.rename("b", "c")
    assert place.catalog().list_tables("db") == ["t"]


# ---- tables that appear with their rows

OLD_ROWS = [(1, "old", 1), (2, "old", 2)]


def stage(place: Place, *, replace_existing: bool, rows: bool = True) -> Callable[[], object]:
    def run() -> object:
        staged = place.catalog().stage_table("db.t", OTHER, replace_existing=replace_existing)
        if rows:
            staged.table.write(OTHER_ROWS)
        return staged.publish()

    return run


@pytest.mark.cases(5)
@on(*STORES)
@pytest.mark.parametrize("mode", MODES_OF_DEATH)
@pytest.mark.parametrize("keyed", [False, True])
def test_replaced_table_is_old_or_new_one(place: Place, mode: Mode, keyed: bool):
    catalog = place.catalog()
    catalog.create_database("db")
    table = catalog.create_table("db.t", KEYED if keyed else Schema(ORDERS))
    table.write(orders(*OLD_ROWS))
    before = rows(place)
    replace = stage(place, replace_existing=True)
    for call, died in dying(place, replace, mode):
        now = rows(place)
        assert now in (before, OTHER_ROWS.to_pylist()), call
        assert died or now == OTHER_ROWS.to_pylist()
        with nullcontext() if now == before else pytest.raises(NotFoundError, match="open it again"):
            assert rows_of(table.to_arrow()) == before
        replace()
        assert rows(place) == OTHER_ROWS.to_pylist()
        assert place.catalog().table("db.t").verify(deep=True).sound


@on(*STORES)
@pytest.mark.parametrize("mode", MODES_OF_DEATH)
def test_table_created_with_rows_has_them_or_does_not_exist(place: Place, mode: Mode):
    place.catalog().create_database("db", properties=SAVED)
    create = stage(place, replace_existing=False)
    for call, died in dying(place, create, mode):
        try:
            assert rows(place) == OTHER_ROWS.to_pylist(), call
        except NotFoundError:
            assert died, call
        try:
            create()
        except (AlreadyExistsError, InvalidInputError):
            place.catalog().drop_table("db.t")
            create()
        assert rows(place) == OTHER_ROWS.to_pylist()
        place.catalog().drop_table("db.t")
        assert place.files() == [], call


@on(*STORES)
def test_replacement_without_rows_empties_table(place: Place):
    catalog = place.catalog()
    catalog.create_database("db")
    catalog.create_table("db.t", KEYED).write(orders(*OLD_ROWS))
    before = rows(place)
    replace = stage(place, replace_existing=True, rows=False)
    for call, _ in dying(place, replace, "crash"):
        assert rows(place) in (before, []), call
        replace()
        assert rows(place) == []
        assert place.catalog().table("db.t").schema.names == ("id", "w")


@on(*STORES)
@pytest.mark.parametrize("mode", MODES_OF_DEATH)
def test_discarded_table_leaves_place_free(place: Place, mode: Mode):
    place.catalog().create_database("db", properties=SAVED)

    def discard():
        staged = place.catalog().stage_table("db.t", OTHER, replace_existing=False)
        staged.table.write(OTHER_ROWS)
        staged.discard()

    for _ in dying(place, discard, mode):
        assert place.catalog().list_tables("db") == []
        create_again(place)
    assert place.files() == []


# ---- copies


@on(*STORES)
@pytest.mark.parametrize("mode", MODES_OF_DEATH)
def test_half_made_clone_is_finished_or_dropped(place: Place, mode: Mode):
    fill(place, "db.source")
    before = rows(place, "db.source")

    def clone():
        place.catalog().clone("db.source", place.catalog(), "db.t")

    for number, (call, _) in enumerate(dying(place, clone, mode)):
        with suppress(NotFoundError):
            assert rows(place) == before, call
        if number % 2:
            clone()
            assert rows(place) == before
        else:
            place.catalog().drop_table("db.t", ignore_if_not_exists=True)
            table = place.catalog().create_table("db.t", OTHER)
            table.write(OTHER_ROWS)
            assert rows(place) == OTHER_ROWS.to_pylist()
            with pytest.raises(AlreadyExistsError):
                clone()


def test_modes_of_death_are_modes():
    assert set(MODES_OF_DEATH) < set(MODES)
