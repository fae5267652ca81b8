"""Orphan files: everything that nothing names is found, nothing else is touched."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.commit.intents import Intent, Intents
from paimon_core.errors import CorruptedError, InvalidInputError, OutOfRangeError
from paimon_core.fileio.fileio import FileIO
from paimon_core.operations.history import referenced_names
from paimon_core.operations.history.referenced_names import ReferencedNames, name_hashes
from paimon_core.operations.jobs.runner import LOCAL
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.branches import branch_root
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import MemoryIO
from tests.support.tables import ORDERS, keyed_table, orders, rows_of
from tests.support.timeline import all_files, needed_files

ROOT = "memory://w/t"
OPTIONS = {"bucket": "1", "file.format": "avro", "snapshot.num-retained.min": "100"}
STRAYS = (
    "manifest/manifest-x-0", "manifest/manifest-list-x-0", "index/index-x-0", "statistics/stats-x-0",
    "bucket-0/data-x-0.avro", "bucket-7/data-x-1.avro", "bucket-postpone/data-x-2.avro", "snapshot/.snapshot-9.x.tmp",
    "snapshot/other", "changelog/.changelog-1.x.tmp", "tag/.tag-v1.x.tmp", "schema/.schema-1.x.tmp",
    "consumer/.consumer-c.x.tmp", "branch/branch-b/snapshot/.snapshot-1.x.tmp",
)  # fmt: skip
"""What crashed writes leave."""
OTHERS = ("schema/other", "tag/other", "notes/readme", "intent/user-u/batch-1", "consumer/consumer-c", "bucket-x/y")
"""What is none of the files of a crashed write."""


def opened(io: FileIO, branch: str = "main") -> Table:
    schema = Schemas(io, branch_root(ROOT, branch)).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema, branch))


def history(**options: str) -> MemoryIO:
    """Commits, compactions, a tag and a branch that outlive their snapshots, changes on the branch, changelogs."""
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, ["id"], [], OPTIONS | options))
    table = opened(io)
    for i in range(3):
        table.write(orders((i, "a", i), (9, "b", i)))
    table.tags.create("v1", 2)
    table.branches.create("b", tag="v1")
    opened(io, "b").write(orders((20, "there", 1)))
    opened(io, "b").tags.create("w")
    opened(io, "b").write(orders((21, "there", 1)))
    table.compact(full=True)
    table.write(orders((4, "d", 4)))
    opened(io).maintenance.expire_snapshots(older_than=2**50, retain_max=2, retain_min=1)
    opened(io, "b").maintenance.expire_snapshots(older_than=2**50, retain_max=1, retain_min=1)
    return io


def searched(io: FileIO) -> set[str]:
    """The files in the directories where orphans are searched."""
    return {
        p for p in all_files(io, ROOT) if any(f"/{d}" in p for d in ("manifest/", "index/", "statistics/", "bucket-"))
    }


def shown(io: FileIO) -> list[object]:
    found = []
    for branch in ("main", "b"):
        table = opened(io, branch)
        found += [rows_of(table.to_arrow(snapshot_id=s.id)) for s in table.snapshots()]
        found += [rows_of(table.to_arrow(tag=t.name)) for t in table.tags.list()]
    return found


KINDS = {
    "plain": {},
    "changelogs": {"changelog-producer": "lookup", "changelog.num-retained.min": "101"},
    "changes": {"changelog.num-retained.min": "101"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "hash indexes": {"bucket": "-1"},
    "indexed": {"file-index.bloom-filter.columns": "v", "file-index.in-manifest-threshold": "1 b"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_stray_files_are_removed_and_other_files_stay(kind):
    io = history(**KINDS[kind])
    before, rows = set(io.files), shown(io)
    nothing = opened(io).maintenance.remove_orphan_files(dry_run=True)
    assert nothing.paths == []
    assert needed_files(opened(io).store) <= before
    for name in (*STRAYS, *OTHERS):
        io.write(f"{ROOT}/{name}", b"stray")
    strays = {f"{ROOT}/{name}" for name in STRAYS}
    dry = opened(io).maintenance.remove_orphan_files(dry_run=True)
    assert set(dry.paths) == strays <= set(io.files)
    done = opened(io).maintenance.remove_orphan_files()
    assert (done.count, done.bytes, set(done.paths)) == (len(STRAYS), 5 * len(STRAYS), strays)
    assert set(io.files) == before | {f"{ROOT}/{name}" for name in OTHERS if "bucket-x" not in name} | {
        f"{ROOT}/bucket-x/y"
    }
    assert shown(io) == rows
    assert opened(io, "b").maintenance.remove_orphan_files().count == 0


def test_rollbacks_deleted_branches_and_expiries_that_died_leave_orphans():
    io = history()
    table = opened(io)
    table.write(orders((5, "e", 5)))
    table.rollback_to(table.snapshots()[-2].id)
    table.write(orders((6, "f", 6)))
    table.branches.delete("b")
    oldest = table.snapshots()[0]
    io.delete(table.store.snapshots.path(oldest.id))  # an expiry that died before it deleted files
    rows = rows_of(table.to_arrow())
    assert opened(io).maintenance.remove_orphan_files().count > 0
    assert searched(io) == needed_files(opened(io).store) & searched(io)
    assert rows_of(opened(io).to_arrow()) == rows
    assert rows_of(opened(io).to_arrow(tag="v1"))


def test_tables_with_partitions_lose_files_and_empty_directories(tmp_path):
    table = keyed_table(tmp_path / "t", keys=("id", "n"), bucket="1")
    table = Table.create(str(tmp_path / "p"), Schema(ORDERS, ["id", "n", "v"], ["n", "v"], {"bucket": "1"}))
    table.write(orders((1, "a", 1), (2, "b", 2)))
    root = Path(table.path)
    for stray in (
        "n=1/v=a/bucket-0/x",
        "n=3/v=c/bucket-0/x",
        "n=3/v=d/bucket-1/x",
        "n=4/v=e/notes",
        "n=5/v=f/bucket-0/x",
    ):
        (root / stray).parent.mkdir(parents=True, exist_ok=True)
        (root / stray).write_text("x")
    (root / "n=6/v=g/bucket-0").mkdir(parents=True)
    young = time.time() - 3600
    for path in sorted(root.rglob("*"), reverse=True):
        os.utime(path, (young - 90_000, young - 90_000))
    os.utime(root / "n=5/v=f/bucket-0/x", (young, young))
    os.utime(root / "n=6/v=g/bucket-0", (young, young))
    actual = table.maintenance.remove_orphan_files()
    assert {str(Path(p).relative_to(root)) for p in actual.paths} == {
        "n=1/v=a/bucket-0/x", "n=3/v=c/bucket-0/x", "n=3/v=d/bucket-1/x",
    }  # fmt: skip
    assert not (root / "n=3").exists()
    assert (root / "n=4/v=e/notes").exists()
    assert (root / "n=5/v=f/bucket-0/x").exists()
    assert (root / "n=6/v=g/bucket-0").exists(), "a writer may have made it for its first file"
    assert table.to_arrow().num_rows == 2
    assert table.maintenance.remove_orphan_files(older_than=int((young + 1) * 1000)).count == 1
    assert not (root / "n=5").exists()
    assert not (root / "n=6").exists()


def test_files_younger_than_day_stay_unless_moment_is_given(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    stray = Path(table.path) / "bucket-0" / "data-x-0.parquet"
    stray.write_text("x")
    now = table.store.now()
    assert table.maintenance.remove_orphan_files().count == 0
    hours = (now - 23 * 3_600_000) / 1000
    os.utime(stray, (hours, hours))
    assert table.maintenance.remove_orphan_files().count == 0
    assert table.maintenance.remove_orphan_files(older_than=now - 24 * 3_600_000).count == 0
    with pytest.raises(InvalidInputError, match="are not referenced yet"):
        table.maintenance.remove_orphan_files(older_than=now + 60_000)
    assert table.maintenance.remove_orphan_files(older_than=now - 22 * 3_600_000, dry_run=True).count == 1
    assert stray.exists()
    days = (now - 25 * 3_600_000) / 1000
    os.utime(stray, (days, days))
    assert table.maintenance.remove_orphan_files().count == 1


class ThreadsIO(MemoryIO):
    """Remembers which threads read manifests, and which list or delete data files; pauses, so that threads start."""

    def __init__(self, files):
        super().__init__(files)
        self.reading, self.maintenance = set(), set()

    def read(self, path):
        if "/manifest-" in path and "-list-" not in path:
            self.reading.add(threading.current_thread())
            time.sleep(0.01)
        return super().read(path)

    def list(self, path):
        self.maintenance.add(threading.current_thread())
        time.sleep(0.01)
        return super().list(path)

    def delete(self, path):
        self.maintenance.add(threading.current_thread())
        time.sleep(0.01)
        super().delete(path)


@pytest.mark.parametrize("threads", ["1", None])
def test_options_bound_threads_of_maintenance_and_of_scans(threads):
    io = ThreadsIO(history(**{"manifest.merge-min-count": "100"}).files)
    for number in range(3):
        for stray in STRAYS:
            io.write(f"{ROOT}/{stray}{number}", b"x")
    table = opened(io)
    if threads is not None:
        table = table.with_options({"file-operation.thread-num": threads, "scan.manifest.parallelism": threads})
    io.reading, io.maintenance = set(), set()
    assert table.to_arrow().num_rows == 5
    caller = {threading.current_thread()}
    assert (io.reading <= caller) == (threads == "1")
    assert table.maintenance.remove_orphan_files().count > 3
    table.maintenance.expire_snapshots(older_than=2**50, retain_max=1, retain_min=1)
    assert (io.maintenance <= caller) == (threads == "1")


def test_open_commit_keeps_files_of_day(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    stray = Path(table.path) / "bucket-0" / "data-x-0.parquet"
    stray.write_text("x")
    now = table.store.now()
    os.utime(stray, (now / 1000 - 60, now / 1000 - 60))
    intents = Intents(table.store.io, table.store.branch_root, "query")
    intents.begin(3, Intent(1))
    assert table.maintenance.remove_orphan_files(older_than=now - 10_000).count == 0
    intents.finish(3, 2)
    assert table.maintenance.remove_orphan_files(older_than=now - 10_000).count == 1
    stray.write_text("x")
    os.utime(stray, (now / 1000 - 60, now / 1000 - 60))
    intents.begin(4, Intent(1))
    path = Path(table.path) / "intent" / "user-query" / "batch-4"
    os.utime(path, (now / 1000 - 90_000, now / 1000 - 90_000))  # no process continues this commit
    assert table.maintenance.remove_orphan_files(older_than=now - 10_000).count == 1


def test_finished_stream_does_not_count_as_open(tmp_path):
    table = keyed_table(tmp_path / "t")
    writer = table.writer()
    writer.write(orders((1, "a", 1)))
    IdempotentCommits(table.store, "query").commit(writer.prepare_commit(), 0)
    stray = Path(table.path) / "bucket-0" / "data-x-0.parquet"
    stray.write_text("x")
    now = table.store.now()
    os.utime(stray, (now / 1000 - 60, now / 1000 - 60))
    assert table.maintenance.remove_orphan_files(older_than=now - 10_000).count == 1


@pytest.mark.parametrize("which", ["manifest-list", "manifest-", "index-manifest"])
def test_nothing_is_removed_if_metadata_are_missing(which):
    io = history(bucket="-1")
    io.write(f"{ROOT}/bucket-0/data-x-0.avro", b"x")
    store = opened(io).store
    snapshot = store.snapshots.latest()
    lost = {
        "manifest-list": snapshot.delta_manifest_list,
        "manifest-": store.manifests.read_list(snapshot.base_manifest_list)[0].file_name,
        "index-manifest": snapshot.index_manifest,
    }[which]
    assert lost is not None
    io.delete(store.manifests.path(lost))
    before = set(io.files)
    with pytest.raises(CorruptedError, match=f"{lost} is missing.*the needed files are unknown"):
        opened(io).maintenance.remove_orphan_files()
    assert set(io.files) == before


def test_damaged_metadata_stop_removal():
    io = history()
    store = opened(io).store
    io.write(store.manifests.path(store.snapshots.latest().delta_manifest_list), b"damaged")
    before = set(io.files)
    with pytest.raises(CorruptedError):
        opened(io).maintenance.remove_orphan_files()
    assert set(io.files) == before


def test_branch_that_cannot_be_read_stops_removal():
    io = history()
    io.write(f"{ROOT}/branch/branch-half/snapshot/snapshot-1", b"{}")
    with pytest.raises(CorruptedError, match="branch-half"):
        opened(io).maintenance.remove_orphan_files()


def test_branch_without_schema_keeps_its_files():
    """It is being created, or a call was killed on the way."""
    io = history()
    store = opened(io).store
    first = store.snapshots.earliest()
    io.write(f"{ROOT}/branch/branch-half/snapshot/snapshot-{first.id}", first.to_json())
    needed = needed_files(store)
    opened(io).maintenance.expire_snapshots(older_than=2**50, retain_max=1, retain_min=1)
    opened(io).maintenance.remove_orphan_files()
    lists = {f"{ROOT}/manifest/{name}" for name in (first.base_manifest_list, first.delta_manifest_list)}
    assert lists <= needed & set(io.files)


class Restless(MemoryIO):
    """Runs an action once, before the call with this number among the calls that list states."""

    def __init__(self, files, at=-1, act=None):
        super().__init__(files)
        self.calls, self.at, self.act = 0, at, act

    def _pass(self, path):
        if any(text in path for text in ("/snapshot", "/tag", "/branch")):
            self.calls += 1
            if self.calls == self.at:
                self.act(plain_io(self))

    def read(self, path):
        self._pass(path)
        return super().read(path)

    def list(self, directory):
        self._pass(directory)
        return super().list(directory)


def plain_io(io):
    """The same files, without the action."""
    plain = MemoryIO()
    plain.files = io.files
    return plain


def other_writer(io):
    """A commit that keeps some manifests of its base, whose snapshot then expires."""
    opened(io).write(orders((30, "z", 1)))
    opened(io).maintenance.expire_snapshots(older_than=2**50, retain_max=1, retain_min=1)


def renamed(io):
    opened(io).branches.create("late", tag="v1")
    opened(io).tags.delete("v1")


def renamed_branch(io):
    opened(io).branches.rename("b", "c")


def renamed_tag(io):
    opened(io).tags.rename("v1", "a-first-name")


@pytest.mark.parametrize("act", [other_writer, renamed, renamed_branch, renamed_tag])
def test_changes_while_names_are_read_do_not_hide_files(act):
    base = history()
    before = needed_files(opened(base).store)
    dry = Restless(base.files)
    ReferencedNames(opened(dry).store, LOCAL).read()
    assert dry.calls > 10
    for at in range(1, dry.calls + 1):
        io = Restless(base.files, at, act)
        names = ReferencedNames(opened(io).store, LOCAL).read()
        needed = before & needed_files(opened(plain_io(io)).store)
        assert np.isin(name_hashes([path.rpartition("/")[2] for path in needed]), names).all(), at


def test_hashes_are_joined_part_by_part(monkeypatch):
    monkeypatch.setattr(referenced_names, "_WAITING", 3)
    draw = np.random.default_rng(7)
    parts = [draw.integers(0, 40, size, np.uint64) for size in (0, 2, 5, 1, 9, 0, 30, 4, 4, 4)]
    known = referenced_names.union(parts)
    assert known.tolist() == sorted(set(np.concatenate(parts).tolist()))
    assert referenced_names.union([]).tolist() == []
    requested = np.arange(45, dtype=np.uint64)
    assert referenced_names.contains(known, requested).tolist() == np.isin(requested, known).tolist()
    assert not referenced_names.contains(known[:0], requested).any()


@pytest.mark.parametrize("what", ["base", "delta", "changelog"])
def test_manifest_lists_of_another_size_stop_removal(what):
    io = history(**KINDS["changelogs"])
    store = opened(io).store
    name = getattr(store.snapshots.latest(), f"{what}_manifest_list")
    io.files[store.manifests.path(name)] += b"more"
    with pytest.raises(CorruptedError, match=f"{name} has .* bytes, but"):
        opened(io).maintenance.remove_orphan_files()


def test_snapshots_that_never_stop_vanishing_are_error():
    io = history()

    class Vanishing(MemoryIO):
        def read(self, path):
            if "/snapshot/snapshot-" in path:
                raise FileNotFoundError(path)
            return super().read(path)

    with pytest.raises(OutOfRangeError, match="disappeared 10 times"):
        ReferencedNames(replace(opened(io).store, io=Vanishing(io.files)), LOCAL).read()
