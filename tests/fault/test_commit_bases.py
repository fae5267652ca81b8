"""A commit follows the history, table and schema that it started from, although another process changes them.

Before each storage call of an operation another process runs to its end: it rolls the table back, drops it, creates it
again, renames or replaces it. Afterwards the operation is in the table as a whole, or not at all and it said so.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from paimon_core.catalog.staged import StagedTable
from paimon_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    NotFoundError,
    OutOfRangeError,
    TableChangedError,
)
from paimon_core.fileio.fileio import FileIO
from paimon_core.migration.clone import clone
from paimon_core.operations.history import rollback
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore, now_millis
from paimon_core.table import Table
from tests.support.draws import every_other, points
from tests.support.faulty_io import FaultyIO, MemoryIO
from tests.support.tables import ORDERS, orders, rows_of

pytestmark = pytest.mark.drawn

ROOT = "memory://w/t"
FAST = {"commit.min-retry-wait": "0 ms", "commit.max-retry-wait": "0 ms", "commit.sync": "false"}
KINDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "append": ([], {}),
    "append with vectors": ([], {"deletion-vectors.enabled": "true"}),
    "keyed": (["id"], {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}),
    "keyed with vectors": (["id"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "keyed with lookup": (["id"], {"bucket": "1", "changelog-producer": "lookup"}),
    "dynamic buckets": (["id"], {"bucket": "-1"}),
}
FIRST, SECOND, THIRD = (orders(*((i, f"v{n}", n) for i in ids)) for n, ids in ((1, (1, 2, 9)), (2, (2, 3)), (3, (4,))))
OTHERS = orders((50, "other", 5))


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch):
    """The other process runs to its end at once, so waiting for the operation would be in vain."""
    monkeypatch.setattr(rollback, "ORPHAN_SECONDS", -1.0)


class Interrupted(FaultyIO):
    """Lets another process run to its end before call number ``at``."""

    def __init__(self, inner: MemoryIO, at: int, other: Callable[[MemoryIO], object]) -> None:
        super().__init__(inner)
        self._at, self._other, self._store = at, other, inner
        self.created_before = False
        """The operation had created a snapshot by then."""

    def _call(self, verb: str, path: str, act: Callable[[], Any], half: Callable[[], object] | None = None) -> Any:
        with self._lock:
            number = len(self.log)
            if number == self._at:
                self.created_before = any(v == "create_exclusive" and "/snapshot/" in p for v, p in self.log)
                self._other(self._store)
            self.log.append((verb, path))
        return act()


def open_table(io: FileIO, root: str = ROOT) -> Table:
    schema = Schemas(io, root).latest()
    assert schema is not None
    return Table(FileStore(io, root, schema))


def base(kind: str) -> MemoryIO:
    io = MemoryIO()
    keys, options = KINDS[kind]
    create_table(io, ROOT, Schema(ORDERS, primary_keys=keys, options={**FAST, **options}))
    open_table(io).write(FIRST)
    open_table(io).tags.create("first")
    for rows in (SECOND, THIRD):
        open_table(io).write(rows)
    return io


def write(table: Table) -> None:
    table.write(orders((9, "new", 9), (10, "new", 9)))


def overwrite(table: Table) -> None:
    table.overwrite(orders((9, "new", 9)))


def delete(table: Table) -> None:
    table.delete("id = 9")


def compact(table: Table) -> None:
    table.compact(full=True)


OPERATIONS = {"write": write, "overwrite": overwrite, "delete": delete, "compact": compact}


def shown(io: FileIO) -> list[Any]:
    return rows_of(open_table(io).to_arrow())


def after(io: MemoryIO, operation: Callable[[Table], None]) -> list[Any]:
    """The rows if the operation runs alone now."""
    copy = io.copy()
    operation(open_table(copy))
    return shown(copy)


def roll_back(io: MemoryIO) -> None:
    open_table(io).rollback_to("first")


def roll_back_and_write(io: MemoryIO) -> None:
    """Others commit after the rollback, until the ids are in use again."""
    open_table(io).rollback_to("first")
    for number in range(3):
        open_table(io).write(orders((50 + number, "other", 5)))


def open_table_directory(io: MemoryIO) -> list[str]:
    """The snapshots at the place of the table."""
    return [path for path in io.files if path.startswith(f"{ROOT}/snapshot/snapshot-")]


def check_snapshots(io: MemoryIO) -> None:
    """Every snapshot is readable, and verification finds nothing."""
    table = open_table(io)
    ids = [snapshot.id for snapshot in table.snapshots()]
    assert ids == list(range(1, len(ids) + 1))
    for number in ids:
        table.to_arrow(snapshot_id=number)
    assert table.verify().faults == ()


def calls_of(kind: str, operation: Callable[[Table], None]) -> int:
    io = FaultyIO(base(kind))
    operation(open_table(io))
    return io.calls


def run(io: Interrupted, operation: Callable[[Table], None]) -> Exception | None:
    try:
        operation(open_table(io))
    except (CommitConflictError, CommitUnknownError, NotFoundError) as error:
        return error
    return None


@pytest.mark.cases(4)
@pytest.mark.parametrize("other", [roll_back, roll_back_and_write], ids=["rollback", "rollback and commits"])
@pytest.mark.parametrize(("kind", "operation"), every_other(KINDS, OPERATIONS))
def test_rolled_back_rows_do_not_return(kind, operation, other):
    started = base(kind)
    alone = started.copy()
    other(alone)
    before, done = shown(alone), after(alone, OPERATIONS[operation])
    for at in points(range(1, calls_of(kind, OPERATIONS[operation]))):
        store = started.copy()
        io = Interrupted(store, at, other)
        error = run(io, OPERATIONS[operation])
        assert not isinstance(error, CommitUnknownError), at
        allowed = [before] if error is not None else [done, before] if io.created_before else [done]
        assert shown(store) in allowed, (at, error)
        check_snapshots(store)


def drop(io: MemoryIO) -> None:
    io.delete_directory(ROOT)


def drop_and_create(io: MemoryIO) -> None:
    io.delete_directory(ROOT)
    create_table(io, ROOT, Schema(ORDERS, options=FAST))


def drop_and_create_and_write(io: MemoryIO) -> None:
    drop_and_create(io)
    open_table(io).write(OTHERS)


def rename(io: MemoryIO) -> None:
    io.rename_directory(ROOT, "memory://w/renamed")


@pytest.mark.cases(8)
@pytest.mark.parametrize("other", [drop, drop_and_create, drop_and_create_and_write, rename])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_dropped_table_does_not_return(rows, operation, other):
    """``rows``: the number of snapshots of the table before."""

    def begin() -> MemoryIO:
        io = MemoryIO()
        create_table(io, ROOT, Schema(ORDERS, options=FAST), lambda: 1)
        for one in (FIRST, SECOND, THIRD)[:rows]:
            open_table(io).write(one)
        return io

    dry = FaultyIO(begin())
    OPERATIONS[operation](open_table(dry))
    for at in points(range(2, dry.calls)):
        store = begin()
        io = Interrupted(store, at, other)
        error = run(io, OPERATIONS[operation])
        if other in (drop, rename):
            assert not Schemas(store, ROOT).ids()
            assert not open_table_directory(store), at
        else:
            expected = rows_of(OTHERS) if other is drop_and_create_and_write else []
            assert shown(store) == expected, (at, error)
            check_snapshots(store)
        if other is rename:
            moved = rows_of(open_table(store, "memory://w/renamed").to_arrow())
            alone = begin()
            allowed = [shown(alone), after(alone, OPERATIONS[operation])]
            assert moved in (allowed if isinstance(error, CommitUnknownError) else allowed[: 1 + (error is None)])


def replace_table(io: MemoryIO) -> None:
    """REPLACE TABLE by one with other columns, and one row."""
    table = open_table(io)
    schema = Schema(ORDERS.append(ORDERS.field("v").with_name("w")).remove(1), options=FAST)
    StagedTable.prepare(io, table.store, schema).publish()


@pytest.mark.cases(4)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", ["append", "keyed"])
def test_replaced_table_gets_no_rows_of_old_one(kind, operation):
    for at in points(range(2, calls_of(kind, OPERATIONS[operation]))):
        store = base(kind)
        io = Interrupted(store, at, replace_table)
        error = run(io, OPERATIONS[operation])
        assert error is None or isinstance(error, TableChangedError | NotFoundError), at
        assert shown(store) == [], (at, error)
        assert error is not None or io.created_before or operation == "compact", at
        assert open_table(store).verify().faults == ()


def test_copy_of_replaced_table_has_columns_of_its_rows():
    """A clone reads a snapshot first, then the versions of the schema."""

    def copy(table: Table, target: FileIO) -> None:
        clone(table.store, table.snapshot(), target, "memory://w/copy", newest=True)

    dry = FaultyIO(base("append"))
    copy(open_table(dry), dry)
    rows = shown(base("append"))
    for at in range(1, dry.calls):
        store = base("append")
        try:
            copy(open_table(Interrupted(store, at, replace_table)), store)
        except NotFoundError:  # replaced before the snapshot was read
            continue
        made = open_table(store, "memory://w/copy")
        assert rows_of(made.to_arrow()) == (rows if "v" in made.arrow_schema.names else []), at
        assert made.verify().faults == ()


def test_new_column_keeps_its_values_in_rows_that_are_deleted_from(tmp_path):
    """A table object that was opened before ADD COLUMN rewrites files with the column."""
    table = Table.create(str(tmp_path / "t"), Schema(ORDERS, options=FAST))
    stale = Table.open(str(tmp_path / "t"))
    altered = table.alter([AddColumn("new", "BIGINT")])
    altered.write(orders((1, "a", 1), (2, "b", 2)).append_column("new", [[7, 8]]))
    try:
        stale.delete("id = 1")
    except TableChangedError:
        return
    assert Table.open(str(tmp_path / "t")).to_arrow(columns=["id", "new"]).to_pylist() == [{"id": 2, "new": 8}]


def expire(io: MemoryIO) -> None:
    """Expire all snapshots but the newest."""
    open_table(io).maintenance.expire_snapshots(older_than=now_millis() + 10_000, retain_max=1, retain_min=1)


def line() -> MemoryIO:
    """Return a table of four snapshots; each replaces the files of its predecessor."""
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, options=FAST))
    for number in (1, 2, 3, 4):
        open_table(io).overwrite(orders((number, "v", number)))
    return io


@pytest.mark.cases(1)
@pytest.mark.parametrize("target", [1, 2, 3])
def test_rollback_during_expiry_keeps_its_target(target):
    """A snapshot that becomes the newest one again is there, with its files."""
    dry = FaultyIO(line())
    expire(dry)
    for at in range(1, dry.calls):
        rolled_back = []

        def roll_back(io: MemoryIO, rolled_back=rolled_back) -> None:
            try:
                open_table(io).rollback_to(target)
                rolled_back.append(target)
            except OutOfRangeError:
                pass

        store = line()
        expire(Interrupted(store, at, roll_back))
        assert shown(store) == rows_of(orders((target, "v", target)) if rolled_back else orders((4, "v", 4))), at
        assert not [fault for fault in open_table(store).verify().faults if fault.kind != "wrong-hint"], at


@pytest.mark.parametrize("target", [1, 2, 3])
def test_expiry_during_rollback_keeps_its_target(target):
    def roll_back(io: FileIO) -> None:
        open_table(io).rollback_to(target)

    dry = FaultyIO(line())
    roll_back(dry)
    for at in range(1, dry.calls):
        store, done = line(), True
        try:
            roll_back(Interrupted(store, at, expire))
        except OutOfRangeError:
            done = False
        assert shown(store) == rows_of(orders((target, "v", target)) if done else orders((4, "v", 4))), at
        assert open_table(store).verify().faults == (), at
        assert open_table(store).tags.list() == [], at


def roll_back_to(io: FileIO, target: int) -> bool:
    """Roll back; return False if the call said that it could not."""
    try:
        open_table(io).rollback_to(target)
    except (CommitConflictError, OutOfRangeError):
        return False
    return True


@pytest.mark.more
@pytest.mark.parametrize("target", [2, *(pytest.param(target, marks=pytest.mark.slow) for target in (3, 4))])
def test_two_rollbacks_leave_one_history(target):
    """A rollback that finds its target removed by an older one does not bring it back without its predecessors."""
    dry = FaultyIO(line())
    roll_back_to(dry, target)
    calls = range(1, dry.calls)
    for newer_at, older_at in points([(i, j) for i in calls for j in calls]):
        store, reached, resume = line(), threading.Event(), threading.Event()

        def pause(_: MemoryIO, reached=reached, resume=resume) -> None:
            reached.set()
            resume.wait()

        with ThreadPoolExecutor(1) as pool:
            newer = pool.submit(roll_back_to, Interrupted(store, newer_at, pause), target)
            newer.add_done_callback(lambda _, reached=reached: reached.set())
            reached.wait()

            def finish(_: MemoryIO | None, newer=newer, resume=resume) -> None:
                resume.set()
                newer.exception()

            done = {1: roll_back_to(Interrupted(store, older_at, finish), 1)}
            finish(None)
            done[target] = newer.result()
        assert shown(store) in [rows_of(orders((n, "v", n))) for n in done if done[n]], (newer_at, older_at)
        assert open_table(store).verify().faults == (), (newer_at, older_at)
        assert open_table(store).tags.list() == [], (newer_at, older_at)


def test_restore_does_not_lose_columns_added_since(tmp_path):
    """It writes rows again, and the table object was opened before ADD COLUMN."""
    path = str(tmp_path / "t")
    table = Table.create(path, Schema(ORDERS, primary_keys=["id"], options={**FAST, "bucket": "1"}))
    table.write(FIRST)
    stale = Table.open(path)
    altered = table.alter([AddColumn("new", "BIGINT")])
    target = altered.write(orders((1, "a", 1)).append_column("new", [[7]]))
    altered.write(orders((1, "b", 2)).append_column("new", [[8]]))
    with pytest.raises(TableChangedError, match="run it again"):
        stale.restore(target.id)
    rows = Table.open(path).to_arrow(columns=["id", "new"], filter="id = 1").to_pylist()
    assert rows == [{"id": 1, "new": 8}]


@pytest.mark.parametrize("renames", [False, pytest.param(True, marks=pytest.mark.more)])
def test_of_two_calls_that_create_branch_neither_deletes_rows_of_other(renames):
    def create(io: FileIO) -> None:
        open_table(io).branches.create("b", tag="first")

    begin = MemoryIO(base("append").files, atomic_renames=renames)
    dry = FaultyIO(begin.copy())
    create(dry)
    for at in range(1, dry.calls):
        store, written = begin.copy(), []

        def other(io: MemoryIO, written=written) -> None:
            with suppress(AlreadyExistsError):
                create(io)
                written.append(Table(replace(open_table(io).store, branch="b")).write(OTHERS))

        with suppress(AlreadyExistsError):
            create(Interrupted(store, at, other))
        rows = rows_of(Table(replace(open_table(store).store, branch="b")).to_arrow())
        assert all(row in rows for row in rows_of(OTHERS) if written), at


def test_branch_that_was_begun_from_another_tag_is_not_deleted():
    store = MemoryIO(base("append").files, atomic_renames=False)
    table = open_table(store)
    table.tags.create("last")
    table.branches.create("b", tag="first")
    store.delete(replace(table.store, branch="b").schemas.path(0))  # it is written last
    before = dict(store.files)
    with pytest.raises(AlreadyExistsError, match="exists in part, from another tag or snapshot"):
        table.branches.create("b", tag="last")
    assert dict(store.files) == before
    table.branches.delete("b")
    table.branches.create("b", tag="last")
    assert rows_of(Table(replace(table.store, branch="b")).to_arrow()) == shown(store)
