"""Expiry that fails at any call, and expiry that meets commits, reads and other expiries: nothing kept is ever hurt.

At worst a fault leaves unreferenced files, only after the first snapshot is deleted. In any order of calls, a commit
that returned is in the table, and a reader sees its whole snapshot or an error that it has expired.
"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CommitUnknownError, OutOfRangeError, PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.branches import branch_root, list_branches
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import draws, every_other, points
from tests.support.faulty_io import MODES, Crash, FaultyIO, MemoryIO, Mode
from tests.support.schedule import interleave
from tests.support.tables import ORDERS, orders, rows_of
from tests.support.timeline import all_files, make_branch, make_tag, needed_files

ROOT = "memory://w/t"
OPTIONS = {
    "bucket": "1", "file.format": "avro", "num-sorted-run.compaction-trigger": "3", "commit.min-retry-wait": "0 ms",
    "commit.max-retry-wait": "0 ms", "commit.max-retries": "50",
}  # fmt: skip
FEW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}


def open_table(io: FileIO, branch: str = "main") -> Table:
    schema = Schemas(io, branch_root(ROOT, branch)).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema, branch))


def keyed(**options: str) -> MemoryIO:
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options=OPTIONS | options))
    return io


def told() -> MemoryIO:
    """With changelogs, and a tag that keeps files."""
    io = keyed(**{"changelog-producer": "lookup"})
    for i in range(3):
        open_table(io).write(orders((i, "old", i), (i + 1, "newer", i)))
        if i == 1:
            make_tag(open_table(io).store, "v1", open_table(io).snapshot().id)
    return io


def branched() -> MemoryIO:
    """Files shared with a branch that nothing else protects, and deletion vectors."""
    io = keyed(**{"deletion-vectors.enabled": "true"})
    for i in range(2):
        open_table(io).write(orders((i, "old", i), (i + 1, "newer", i)))
    make_tag(open_table(io).store, "v1", 3)
    make_branch(open_table(io).store, "b", "v1")
    io.delete(f"{ROOT}/tag/tag-v1")
    open_table(io, "b").write(orders((1, "there", 1)))
    open_table(io).write(orders((1, "here", 1)))
    return io


def outlived() -> MemoryIO:
    """Changes of writers are kept longer than snapshots, some outlived theirs before."""
    io = keyed(**{"changelog.num-retained.min": "11"})
    for i in range(5):
        open_table(io).write(orders((i, "old", i), (i + 1, "newer", i)))
    open_table(io).maintenance.expire_snapshots(retain_max=4)
    return io


def expire(io: FileIO) -> None:
    open_table(io).maintenance.expire_snapshots(retain_max=1)


def expire_changes(io: FileIO) -> None:
    few = {**FEW, "changelog.num-retained.min": "1", "changelog.num-retained.max": "3"}
    open_table(io).with_options(few).maintenance.expire_snapshots()


def shown(io: FileIO) -> dict[tuple, list]:
    """The rows of every snapshot and tag of every branch."""
    found = {}
    for branch in ("main", *list_branches(io, ROOT)):
        table = open_table(io, branch)
        moments = [("snapshot_id", s.id) for s in table.snapshots()]
        for how, which in [*moments, *(("tag", name) for name in table.store.tags.names())]:
            found[branch, which] = rows_of(table.to_arrow(**{how: which}))
    return found


def stored(io: FileIO) -> set[str]:
    """Return the paths of all data, changelog and metadata files of all branches."""
    own = tuple(f"{ROOT}/{name}/" for name in ("snapshot", "tag", "schema", "changelog", "branch", "consumer"))
    return {path for path in all_files(io, ROOT) if not path.startswith(own)}


CASES = {
    "changelogs and a tag": (told, expire),
    "a branch and deletion vectors": (branched, expire),
    "changes kept": (outlived, expire),
    "changes kept long enough": (outlived, expire_changes),
}


@pytest.mark.drawn
@pytest.mark.parametrize(("name", "mode"), every_other(CASES, MODES))
def test_survives_a_fault_at_every_call(name: str, mode: Mode):
    make, operation = CASES[name]
    base = make()
    before, dry = shown(base), FaultyIO(base.copy())
    operation(dry)
    after = shown(dry.inner)
    assert set(after) < set(before)
    first_gone = next(at for at, (verb, path) in enumerate(dry.log) if verb == "delete" and "/snapshot/" in path)
    for at in points(_points(dry, mode)):
        io = base.copy()
        with suppress(OSError, PaimonError, Crash):
            operation(FaultyIO(io, at, mode))
        if io.files == base.files:
            continue  # nothing was begun
        there = shown(io)
        assert {**before, **there} == before, (at, dry.log[at])
        assert set(after) <= set(there), (at, dry.log[at])
        ids = sorted(which for branch, which in there if branch == "main" and isinstance(which, int))
        assert ids == list(range(ids[0], ids[-1] + 1))
        assert needed_files(open_table(io).store) <= stored(io), (at, dry.log[at])
        operation(io)
        assert shown(io) == after
        assert needed_files(open_table(io).store) <= stored(io)
        if at < first_gone:
            assert stored(io) == stored(dry.inner), (at, dry.log[at])


def _points(dry: FaultyIO, mode: Mode) -> list[int]:
    """Calls to fail at. Reading has no answer to lose and no half, and dying there is dying at the next change."""
    reads = {"read", "open", "exists", "list"}
    skipped = {"before": set(), "torn": {*reads, "delete"}}.get(mode, reads)
    return [at for at, (verb, _) in enumerate(dry.log) if verb not in skipped]


# ---- meetings

turns = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30)), max_size=20)
SOME = draws(10)


def write(*rows):
    """A commit and the maintenance that follows it; again where what it went on from has expired."""

    def run(io: FileIO) -> int:
        while True:
            with suppress(OutOfRangeError):
                return open_table(io).write(orders(*rows)).id

    return run


def look(io: FileIO):
    """A reader that plans and reads three times: what it saw, or that it came too late."""
    seen = []
    for _ in range(3):
        table = open_table(io)
        snapshot = table.snapshot()
        try:
            seen.append((snapshot.id, rows_of(table.to_arrow(snapshot_id=snapshot.id))))
        except OutOfRangeError:
            seen.append((snapshot.id, None))
    return seen


def met(base: MemoryIO, operations, drawn) -> tuple[list, Table]:
    """Run the operations, then check that none failed and that each retained snapshot is readable."""
    results = interleave(base, operations, drawn)
    assert not [r for r in results if isinstance(r, Exception)], results
    table = open_table(base)
    assert needed_files(table.store) <= stored(base)
    ids = [s.id for s in table.snapshots()]
    assert ids == list(range(ids[0], ids[-1] + 1))
    shown(base)
    return results, table


@SOME
@given(turns, st.sampled_from([{}, {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}]))
def test_commits_lose_no_row_if_their_base_snapshots_expire(drawn, options):
    base = keyed(**FEW, **options)
    open_table(base).write(orders((1, "old", 1), (2, "old", 2)))
    (one, other, seen), table = met(
        base, [write((3, "a", 3), (4, "a", 4)), write((4, "b", 4), (5, "b", 5)), look], drawn
    )
    assert one != other
    rows = {row["id"]: row["v"] for row in rows_of(table.to_arrow())}
    assert rows in [{1: "old", 2: "old", 3: "a", 4: last, 5: "b"} for last in "ab"]
    for _, actual in seen:
        assert actual is None or {row["id"]: row["v"] for row in actual}.items() >= {1: "old", 2: "old"}.items()


class Overtaken(MemoryIO):
    """While a snapshot is being published others commit, and keep but few of theirs."""

    def __init__(self, files: dict[str, bytes], commits: int, kept: int) -> None:
        super().__init__(files)
        self.commits, self.kept = commits, kept

    def create_exclusive(self, path: str, data: bytes) -> bool:
        if "/snapshot/" in path:
            others, commits, self.commits = MemoryIO(), self.commits, 0
            others.files = self.files
            for i in range(commits):
                open_table(others).write(orders((10 + i, "b", i)))
            if commits:
                open_table(others).maintenance.expire_snapshots(retain_max=self.kept)
        return super().create_exclusive(path, data)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("commits", "kept"), [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3)])
def test_id_of_expired_snapshot_is_not_used_again(commits, kept, first):
    """The id is free, but a snapshot with it would have no predecessor and no successor."""
    io = keyed()
    if not first:
        open_table(io).write(orders((1, "old", 1)))
    io = Overtaken(io.files, commits, kept)
    result = open_table(io).write(orders((2, "a", 2)))
    table = open_table(io)
    assert [s.id for s in table.snapshots()][-1] == result.id
    rows = [row["id"] for row in rows_of(table.to_arrow())]
    assert rows == [*([] if first else [1]), 2, *range(10, 10 + commits)]
    assert {path for path in io.files if "/manifest/" in path} == {f for f in needed_files(table.store) if "/man" in f}


@SOME
@given(turns)
def test_commits_are_made_once_if_others_keep_one_snapshot(drawn):
    """Otherwise the error says that the outcome is unknown."""
    base = keyed(**FEW)
    open_table(base).write(orders((1, "old", 1)))

    def once(io: FileIO):
        with suppress(CommitUnknownError):
            return write((2, "a", 2))(io)
        return None

    def often(io: FileIO):
        return [write((10 + i, "b", i))(io) for i in range(3)]

    (one, others), table = met(base, [once, often], [(who % 2, calls) for who, calls in drawn])
    assert one not in others
    rows = [row["id"] for row in rows_of(table.to_arrow())]
    assert rows == [1, 2, 10, 11, 12] or (one is None and rows == [1, 10, 11, 12])


@SOME
@given(turns, st.sampled_from(sorted(CASES)))
def test_two_expiries_do_the_work_of_one(drawn, name):
    make, operation = CASES[name]
    base = make()
    alone = base.copy()
    operation(alone)
    met(base, [operation, operation, look], drawn)
    assert shown(base) == shown(alone)
    assert stored(base) == stored(alone)


@SOME
@given(turns)
def test_compaction_during_expiry_loses_no_row(drawn):
    base = keyed(**{"write-only": "true"})
    for i in range(4):
        open_table(base).write(orders((i, "old", i), (i + 1, "new", i)))
    rows = rows_of(open_table(base).to_arrow())

    def compact(io: FileIO):
        return open_table(io).compact(full=True).id

    (_, _, seen), table = met(base, [compact, expire, look], drawn)
    assert rows_of(table.to_arrow()) == rows
    assert all(actual in (rows, None) for _, actual in seen)
    table.maintenance.expire_snapshots(retain_max=1)
    assert stored(base) == needed_files(table.store)
