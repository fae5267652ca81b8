"""Every action of maintenance fails at any call, in any way; then it is run again, and ends as one that never failed.

After a fault no named file is missing: all snapshots and tags of all branches are readable, before the action is
repeated and after it. Files that a fault leaves behind are removed as orphan files. The faults of commits are in
test_commit_faults.py, of expiry in test_expiry_faults.py, of the removal of orphans in test_orphan_faults.py.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, PaimonError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.inspect.verify.verify import verify
from paimon_core.operations.history.automatic_tags import trigger
from paimon_core.operations.partitions.partitions_done import record_done
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.branches import branch_root, list_branches
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.create import create_table
from paimon_core.store.drop import drop_directory
from tests.fault.test_expiry_faults import OPTIONS, ROOT, open_table, stored
from tests.support.draws import every_other, points
from tests.support.faulty_io import MODES, Crash, FaultyIO, MemoryIO, Mode
from tests.support.tables import ORDERS, orders, rows_of
from tests.support.timeline import needed_files

MANY = {"snapshot.num-retained.min": "100"}
READS = {"read", "open", "exists", "list"}


def made(keys: list[str], partitions: list[str], schema: pa.Schema = ORDERS, **options: str) -> MemoryIO:
    io = MemoryIO()
    create_table(io, ROOT, Schema(schema, keys, partitions, {**OPTIONS, **MANY, **options}))
    return io


def keyed(**options: str) -> MemoryIO:
    """Three commits, the first one tagged and expired."""
    io = made(["id"], [], **options)
    for i in range(3):
        open_table(io).write(orders((i, "old", i), (i + 1, "newer", i)))
        if i == 0:
            open_table(io).tags.create("v1")
            open_table(io).tags.create("w1")
    open_table(io).maintenance.expire_snapshots(retain_max=2, retain_min=1)
    return io


def branched() -> MemoryIO:
    """A branch of a tag with a schema and a snapshot of its own, one of a snapshot, one without rows."""
    io = keyed()
    open_table(io).tags.create("v2")
    open_table(io).branches.create("b", tag="v2")
    there = open_table(io, "b").alter([AddColumn("z", "INT")])
    there.write(orders((7, "there", 7)))
    there.tags.create("v3")
    open_table(io).branches.create("s", snapshot_id=open_table(io).snapshot().id)
    open_table(io).branches.create("empty")
    open_table(io).write(orders((8, "here", 8)))
    open_table(io).tags.create("late")
    return io


def appended(**options: str) -> MemoryIO:
    """Two branches that have only added rows."""
    io = made([], [], **{"bucket": "-1", "write-only": "true", **options})
    open_table(io).write(orders((1, "old", 1)))
    open_table(io).tags.create("v1")
    open_table(io).branches.create("b", tag="v1")
    open_table(io, "b").write(orders((2, "there", 2)))
    open_table(io).write(orders((3, "here", 3)))
    return io


def by_day() -> MemoryIO:
    schema = pa.schema([("dt", pa.string()), ("n", pa.int32())])
    io = made([], ["dt"], schema, **{"bucket": "-1", "partition.expiration-batch-size": "2"})
    for i, day in enumerate(("2020-01-01", "2020-01-02", "2020-01-03", "2999-01-01")):
        open_table(io).write(pa.table({"dt": [day], "n": pa.array([i], pa.int32())}))
    return io


def to_be_tagged() -> MemoryIO:
    """Return a table with watermarks of several hours and without tags."""
    io = made(["id"], [])
    for hour in (0, 1, 3, 4):
        table = open_table(io)
        with table.writer() as writer:
            writer.write(orders((hour, "v", hour)))
            table.committer("u").commit(writer.prepare_commit(), hour, watermark=1_733_392_800_000 + hour * 3_600_000)
    return io


def tag_automatically(io: FileIO) -> None:
    options = {"tag.automatic-creation": "watermark", "tag.creation-period": "hourly", "tag.num-retained-max": "2"}
    trigger(open_table(io).with_options(options).store)


def aged() -> MemoryIO:
    """Tags that are past their age, of snapshots that have expired and of one that has not."""
    io = made(["id"], [], **{"tag.time-expire-enabled": "false"})
    for i in range(4):
        open_table(io).write(orders((i, "old", i), (i + 1, "newer", i)))
        if i < 3:
            open_table(io).tags.create(f"t{i}", retained="1 ms")
            open_table(io).tags.create(f"stays{i}")
    open_table(io).tags.delete("stays0")
    open_table(io).maintenance.expire_snapshots(retain_max=2, retain_min=1)
    return io


def gappy() -> MemoryIO:
    """Two of the files are not there."""
    io = made(["id"], [], **{"write-only": "true"})
    for i in range(4):
        open_table(io).write(orders((i, "v", i)))
    table = open_table(io)
    for entry in sorted(live_entries(table.store, table.snapshot()).live, key=lambda e: e.file.file_name)[:2]:
        io.delete(table.store.file_path(entry.bucket_ref, entry.file))
    return io


def remove_missing(io: FileIO) -> None:
    """Old snapshots still name the missing files."""
    open_table(io).maintenance.remove_missing_files()
    open_table(io).maintenance.expire_snapshots(retain_max=1, retain_min=1)


def with_consumers() -> MemoryIO:
    io = keyed()
    for name in ("a", "b", "c"):
        open_table(io).consumers.reset(name, 2)
    return io


def of_small_manifests() -> MemoryIO:
    return keyed(**{"manifest.merge-min-count": "100"})


def miscounted() -> MemoryIO:
    """A newest snapshot with another number of rows than its files, and a hint of nothing."""
    io = keyed()
    newest = open_table(io).snapshot()
    io.files[open_table(io).store.snapshots.path(newest.id)] = replace(newest, total_record_count=77).to_json()
    io.files[f"{ROOT}/snapshot/EARLIEST"] = b"?"
    return io


def with_a_gap() -> MemoryIO:
    io = keyed()
    for i in range(2):
        open_table(io).write(orders((i, "last", i)))
    del io.files[open_table(io).store.snapshots.path(newest_of_gap(io) - 1)]
    return io


def newest_of_gap(io: MemoryIO) -> int:
    return open_table(io).snapshot().id


def interleaved() -> MemoryIO:
    schema = ORDERS.append(pa.field("p", pa.string()))
    io = MemoryIO()
    options = {**MANY, "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    create_table(io, ROOT, Schema(schema, [], ["p"], options))
    for i in range(3):
        open_table(io).write(orders((i, "v", i)).append_column("p", pa.array(["ab"[i % 2]])))
    return io


Make = Callable[[], MemoryIO]
Act = Callable[[FileIO], Any]
DONE = (AlreadyExistsError, NotFoundError, InvalidInputError)
"""What a second run of an action that was done may raise."""
CASES: dict[str, tuple[Make, Act]] = {
    "expire partitions": (by_day, lambda io: open_table(io).maintenance.expire_partitions("30 d")),
    "drop partitions": (by_day, lambda io: open_table(io).drop_partitions([{"dt": "2020-01-02"}])),
    "mark partitions as done": (
        by_day,
        lambda io: record_done(open_table(io).store, [{"dt": "2020-01-02"}, {"dt": "2999-01-01"}]),
    ),
    "automatic tags": (to_be_tagged, tag_automatically),
    "expire tags": (aged, lambda io: open_table(io).tags.expire()),
    "create a tag": (keyed, lambda io: open_table(io).tags.create("v2")),
    "rename a tag": (keyed, lambda io: open_table(io).tags.rename("v1", "v2")),
    "replace a tag": (keyed, lambda io: open_table(io).tags.replace("v1", 4)),
    "replace a lone tag": (branched, lambda io: open_table(io).tags.replace("late", 4)),
    "delete a tag": (keyed, lambda io: open_table(io).tags.delete("v1")),
    "create a branch of a tag": (branched, lambda io: open_table(io).branches.create("c", tag="v1")),
    "create a branch of a snapshot": (branched, lambda io: open_table(io).branches.create("c", snapshot_id=5)),
    "create an empty branch": (branched, lambda io: open_table(io).branches.create("c")),
    "delete a branch": (branched, lambda io: open_table(io).branches.delete("b")),
    "delete a branch of a snapshot": (branched, lambda io: open_table(io).branches.delete("s")),
    "rename a branch": (branched, lambda io: open_table(io).branches.rename("b", "c")),
    "rename a branch of a snapshot": (branched, lambda io: open_table(io).branches.rename("s", "c")),
    "fast forward": (branched, lambda io: open_table(io).branches.fast_forward("b")),
    "merge a branch": (appended, lambda io: open_table(io).branches.merge("b")),
    "merge into a branch": (appended, lambda io: open_table(io).branches.merge("main", "b")),
    "roll back": (branched, lambda io: open_table(io).rollback_to(4)),
    "roll back to a tag": (branched, lambda io: open_table(io).rollback_to("v1")),
    "compact manifests": (of_small_manifests, lambda io: open_table(io).maintenance.compact_manifests()),
    "remove missing files": (gappy, remove_missing),
    "reset a consumer": (with_consumers, lambda io: open_table(io).consumers.reset("a", 4)),
    "clear consumers": (with_consumers, lambda io: open_table(io).consumers.clear("a|b")),
    "purge": (branched, lambda io: open_table(io).maintenance.purge()),
    "repair": (miscounted, lambda io: open_table(io).repair(deep=True)),
    "repair the oldest snapshot": (
        with_a_gap,
        lambda io: open_table(io).maintenance.repair_earliest_snapshot(newest_of_gap(io)),
    ),
    "reassign row ids": (interleaved, lambda io: open_table(io).maintenance.reassign_row_ids()),
}
STALE = {
    "remove missing files": ("LATEST",),
    "repair": tuple(f"snapshot-{number}" for number in range(9)),
    "repair the oldest snapshot": tuple(f"snapshot-{number}" for number in range(9)),
}
"""Hints that a commit could not write, and that nothing writes again before the next commit, and snapshots, which
never change."""
RENAMED_DIRECTORIES = {"rename a branch", "rename a branch of a snapshot"}
"""Actions that object stores refuse, because they cannot rename a directory in one step."""
MORE_SNAPSHOTS = {"drop partitions", "purge"}
"""Actions that make a snapshot each time."""


def state(io: MemoryIO, *, numbered: bool) -> object:
    """All that users see: rows of snapshots and tags of all branches, schemas, consumers, partitions that are done."""
    rows, others = {}, {}
    for branch in list_all(io):
        table = open_table(io, branch)
        order = table.schema.fields[0].name
        for snapshot in table.snapshots() if numbered else table.snapshots()[-1:]:
            found = rows_of(table.to_arrow(snapshot_id=snapshot.id), (order,))
            rows[branch, snapshot.id if numbered else "newest"] = found
        for tag in table.tags.list():
            rows[branch, tag.name] = rows_of(table.to_arrow(tag=tag.name), (order,))
        others[branch] = table.store.schemas.ids(), Consumers(io, branch_root(ROOT, branch)).list()
    return rows, others, sorted(path for path in io.files if path.endswith("/_SUCCESS"))


def list_all(io: MemoryIO) -> list[str]:
    """Return the main branch and all branches that are complete."""
    return ["main", *(b for b in list_branches(io, ROOT) if f"{branch_root(ROOT, b)}/schema/schema-0" in io.files)]


def run(act: Act, io: FileIO) -> bool:
    try:
        act(io)
    except (OSError, PaimonError, Crash):
        return False
    return True


def points_of(dry: FaultyIO, mode: Mode) -> list[int]:
    """Calls to fail at. Reading has no answer to lose and no half, and dying there is dying at the next change."""
    skipped = {"before": set(), "torn": {*READS, "create", "delete"}}.get(mode, READS)
    return [at for at, (verb, _) in enumerate(dry.log) if verb not in skipped]


def sound(io: MemoryIO) -> None:
    """Everything that is named is there."""
    state(io, numbered=True)
    assert needed_files(open_table(io).store) <= stored(io)


@pytest.mark.drawn
@pytest.mark.parametrize(("name", "mode"), every_other(CASES, MODES))
@pytest.mark.cases(6)
def test_ends_as_a_run_without_fault(name: str, mode: Mode):
    make, act = CASES[name]
    base, numbered = make(), name not in MORE_SNAPSHOTS
    if name in RENAMED_DIRECTORIES and not base.renames_atomically:
        before = base.copy()
        with pytest.raises(UnsupportedError):
            act(base)
        assert base.files == before.files
        return
    dry = FaultyIO(base.copy())
    act(dry)
    after = state(dry.inner, numbered=numbered)
    assert dry.inner.files != base.files
    for at in points(points_of(dry, mode)):
        io, where = base.copy(), (at, dry.log[at])
        succeeded = run(act, FaultyIO(io, at, mode))
        if name != "remove missing files":
            sound(io)
        if succeeded:
            assert state(io, numbered=numbered) == after, where
        with suppress(*DONE):
            act(io)
        assert state(io, numbered=numbered) == after, where
        actual = verify(open_table(io).store, deep=True).faults
        assert [fault for fault in actual if fault.path.rpartition("/")[2] not in STALE.get(name, ())] == [], where
        open_table(io).maintenance.remove_orphan_files(older_than=open_table(io).store.now())
        assert state(io, numbered=numbered) == after, where
        assert {path for path in stored(io) if not path.endswith("/_SUCCESS")} == needed_files(open_table(io).store)


def test_fast_forward_to_branch_that_is_half_created_keeps_schemas():
    def create(io: FileIO) -> None:
        open_table(io).branches.create("c", tag="v1")

    base = MemoryIO(branched().files, atomic_renames=False)
    dry = FaultyIO(base.copy())
    create(dry)
    for at in range(dry.calls):
        io = base.copy()
        run(create, FaultyIO(io, at, "crash"))
        with suppress(InvalidInputError, NotFoundError):
            open_table(io).branches.fast_forward("c")
        sound(io)


def test_branch_of_table_that_is_dropped_meanwhile_is_not_left_behind():
    class Dropping(FaultyIO):
        def _call(self, verb: str, path: str, act: Callable[[], Any], half: Any = None) -> Any:
            if self.calls == drop_at:
                drop_directory(self.inner, ROOT)
            return super()._call(verb, path, act, half)

    def create(io: FileIO) -> None:
        open_table(io).branches.create("c", tag="v1")

    base = MemoryIO(branched().files, atomic_renames=False)
    dry = FaultyIO(base.copy())
    open_table(dry)
    opening = dry.calls
    create(dry)
    for drop_at in range(opening, dry.calls - opening):
        io = Dropping(base.copy())
        with pytest.raises((NotFoundError, FileNotFoundError)):
            create(io)
        left = [path for path in io.inner.files if path.startswith(branch_root(ROOT, "c"))]
        assert left == [], io.log[drop_at]
