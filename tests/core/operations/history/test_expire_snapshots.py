"""Expiry of snapshots: kept snapshots read as before, and every file that stays is needed."""

import threading

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, InvalidInputError, OutOfRangeError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.branches import branch_root, list_branches
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import draws
from tests.support.faulty_io import FaultyIO, MemoryIO
from tests.support.tables import ORDERS, orders, rows_of
from tests.support.timeline import all_files, make_branch, make_tag, needed_files

ROOT = "memory://w/t"
KEPT = {"snapshot.num-retained.min": "100", "file.format": "avro", "commit.max-retry-wait": "0 ms"}
KEYED = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
KINDS: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "append": ([], [], {"compaction.min.file-num": "2"}),
    "append, deleted rows marked": ([], [], {"deletion-vectors.enabled": "true"}),
    "partitioned": ([], ["v"], {"bucket": "1", "bucket-key": "id", "compaction.min.file-num": "2"}),
    "keyed": (["id"], [], KEYED),
    "input": (["id"], [], {**KEYED, "changelog-producer": "input"}),
    "lookup": (["id"], [], {**KEYED, "changelog-producer": "lookup"}),
    "marked": (["id"], [], {**KEYED, "deletion-vectors.enabled": "true"}),
    "dynamic buckets": (["id"], [], {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}),
    "indexes beside": ([], [], {"file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": "1 b"}),
}


def open_table(io: FileIO, branch: str = "main", **options: str) -> Table:
    schema = Schemas(io, branch_root(ROOT, branch)).latest()
    assert schema is not None
    store = FileStore(io, ROOT, schema, branch)
    return Table(store.with_options({key.replace("_", "-"): value for key, value in options.items()}))


def table_of(kind: str, **more: str) -> MemoryIO:
    io = MemoryIO()
    keys, partitions, options = KINDS[kind]
    create_table(io, ROOT, Schema(ORDERS, keys, partitions, {**KEPT, **options, **more}))
    return io


def act(table: Table, move: str, at: int) -> None:
    """Make one move; every move has different rows."""
    match move:
        case "compact":
            table.compact(full=True)
        case "overwrite":
            table.overwrite(orders((at, "over", at)))
        case "delete":
            table.delete(f"id = {at % 4}")
        case _:
            table.write(orders(*((k % 5, f"v{k % 2}", at) for k in range(at, at + 3))))


def what_shows(io: FileIO) -> dict[tuple, list]:
    """The rows of every snapshot and tag of every branch."""
    shown = {}
    for branch in ("main", *list_branches(io, ROOT)):
        table = open_table(io, branch)
        for snapshot in table.snapshots():
            shown[branch, snapshot.id] = rows_of(table.to_arrow(snapshot_id=snapshot.id), ("id", "n", "v"))
        for name in table.store.tags.names():
            shown[branch, name] = rows_of(table.to_arrow(tag=name), ("id", "n", "v"))
    return shown


def stored(io: FileIO) -> set[str]:
    """Files of data, changes and metadata, of all branches."""
    own = tuple(f"{ROOT}/{name}/" for name in ("snapshot", "tag", "schema", "changelog", "branch", "consumer"))
    return {path for path in all_files(io, ROOT) if not path.startswith(own)}


moves = st.lists(st.sampled_from(["write", "write", "write", "compact", "overwrite", "delete", "tag"]), max_size=6)


histories = given(kind=st.sampled_from(sorted(KINDS)), before=moves, on_branch=moves, after=moves, data=st.data())


@settings(draws(8), phases=[Phase.generate])
@histories
def test_remaining_snapshots_read_as_before_and_other_files_are_deleted(kind, before, on_branch, after, data):
    """Whichever timeline expires, whichever way the branch shares its files with main."""
    check_expiry(kind, before, on_branch, after, data)


@pytest.mark.slow
@draws(300)
@histories
def test_expiry_after_random_histories_changes_no_remaining_snapshot(kind, before, on_branch, after, data):
    check_expiry(kind, before, on_branch, after, data)


def check_expiry(kind, before, on_branch, after, data) -> None:
    """Two timelines are written and tagged, and each expires in turn."""
    io, at = table_of(kind), 0
    branches = ["main"]
    for branch, steps in (("main", ["write", *before]), ("b", on_branch), ("main", after)):
        if branch == "b":
            if not data.draw(st.booleans()):
                continue
            table = open_table(io)
            make_tag(table.store, "branched", data.draw(st.integers(1, table.snapshot().id)))
            make_branch(table.store, "b", "branched")
            branches.append("b")
        for step in steps:
            table, at = open_table(io, branch), at + 1
            if step == "tag":
                make_tag(table.store, f"tag{at}", table.snapshot().id)
            else:
                act(table, step, at)
    if "b" in branches and data.draw(st.booleans()):
        io.delete(f"{ROOT}/tag/tag-branched")  # nothing of main protects the branch any more
    assert stored(io) >= needed_files(open_table(io).store)
    for branch in ("main", "b", "main"):
        if branch not in branches:
            continue
        table = open_table(io, branch)
        ids, shown = [s.id for s in table.snapshots()], what_shows(io)
        most, reads_from = data.draw(st.integers(1, len(ids))), data.draw(st.none() | st.integers(ids[0], ids[-1]))
        consumers = Consumers(io, table.store.branch_root)
        if reads_from is not None:
            consumers.record("reader", reads_from)
        would = table.maintenance.expire_snapshots(retain_max=most, retain_min=1, dry_run=True)
        assert what_shows(io) == shown
        files = stored(io)
        gone = table.maintenance.expire_snapshots(retain_max=most, retain_min=1)
        assert gone == would
        assert gone.files == len(files - stored(io))
        first = min(ids[-most], ids[-1] + 1 if reads_from is None else reads_from)
        assert list(gone.snapshots) == [i for i in ids if i < first]
        assert what_shows(io) == {k: v for k, v in shown.items() if k not in {(branch, i) for i in gone.snapshots}}
        consumers.delete("reader")
    assert stored(io) == needed_files(open_table(io).store)


LONGER = {"changelog.num-retained.min": "101"}


@settings(draws(4), phases=[Phase.generate])
@given(kind=st.sampled_from(["append", "keyed", "input", "lookup"]), steps=moves, data=st.data())
def test_changes_outlive_their_snapshots(kind, steps, data):
    io = table_of(kind, **LONGER)
    for at, step in enumerate(["write", "write", *steps]):
        if step == "tag":
            make_tag(open_table(io).store, f"tag{at}", open_table(io).snapshot().id)
        else:
            act(open_table(io), step, at)
    latest = open_table(io).snapshot().id
    told = {i: open_table(io).changes(i, i + 1).to_pylist() for i in range(latest)}
    for most in sorted(data.draw(st.sets(st.integers(1, latest), min_size=1)), reverse=True):
        table, shown = open_table(io), what_shows(io)
        gone = table.maintenance.expire_snapshots(retain_max=most, retain_min=1)
        assert not gone.changelogs
        assert what_shows(io) == {k: v for k, v in shown.items() if k not in {("main", i) for i in gone.snapshots}}
        assert {i: table.changes(i, i + 1).to_pylist() for i in range(latest)} == told
    assert stored(io) >= needed_files(open_table(io).store)
    kept = Changelogs(io, ROOT)
    fewer = data.draw(st.integers(1, latest))
    rules = {"snapshot.num-retained.min": "1", "changelog.num-retained.min": "1"}
    bounds = {"snapshot.num-retained.max": "1", "changelog.num-retained.max": str(fewer)}
    table = Table(open_table(io).store.with_options(rules | bounds))
    table.maintenance.expire_snapshots()
    if fewer > 1:
        assert [c.id for c in kept.all()] == list(range(max(1, latest - fewer + 1), latest))
        for i in range(latest - fewer, latest):
            assert table.changes(i, i + 1).to_pylist() == told[i]
        table = Table(open_table(io).store.with_options({**rules, "snapshot.num-retained.max": "1"}))
        table.maintenance.expire_snapshots()  # changes are not to be kept longer any more
    assert not list(kept.all())
    assert stored(io) == needed_files(table.store)


def test_commit_expires_old_snapshots():
    clock = [1_000_000]
    io = table_of("keyed", **{"snapshot.num-retained.min": "2", "snapshot.time-retained": "10 s"})
    table = Table(FileStore(io, ROOT, Schemas(io, ROOT).latest(), now=lambda: clock[0]))
    for i in range(6):
        table.with_options({"write-only": "true"}).write(orders((i, "v", i)))
        clock[0] += 4_000
    assert len(table.snapshots()) == 6
    plain = Table(FileStore(io, ROOT, table.schema, now=lambda: clock[0])).with_options({"write-only": "false"})
    plain.with_options({"snapshot.expire.limit": "1"}).write(orders((9, "v", 9)))
    assert table.snapshots()[0].id == 2
    plain.write(orders((9, "v", 9)))
    left = table.snapshots()
    assert all(clock[0] - s.time_millis <= 10_000 for s in left)
    clock[0] += 1_000_000
    plain.write(orders((9, "v", 9)))
    newest = table.snapshot().id
    assert [s.id for s in table.snapshots()] == [newest - 1, newest]
    assert rows_of(table.to_arrow(), ("id",))[-1]["id"] == 9
    assert stored(io) == needed_files(table.store)


def test_commit_need_not_wait_for_expiry():
    few = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    io = table_of("append", **few, **{"snapshot.expire.execution-mode": "async"})
    for i in range(3):
        open_table(io).write(orders((i, "v", i)))
        for thread in threading.enumerate():
            if thread.name == "paimon-expire":
                thread.join()
        assert [s.id for s in open_table(io).snapshots()] == [i + 1]


def test_dedicated_compaction_expires_for_writers_that_do_not():
    io = table_of("keyed", **{"write-only": "true", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"})
    for i in range(4):
        open_table(io).write(orders((i, "v", i)))
    assert len(open_table(io).snapshots()) == 4
    open_table(io).compact(full=True)
    assert [s.id for s in open_table(io).snapshots()] == [5]
    assert len([path for path in stored(io) if "/bucket-" in path]) == 1


def test_consumers_expire_by_age_and_hold_snapshots_until_then(tmp_path):
    options = {**KEPT, "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    table = Table.create(str(tmp_path / "t"), Schema(ORDERS, options=options))
    consumers = Consumers(table.store.io, table.path)
    table.write(orders((1, "v", 1)))
    consumers.record("slow", 2)
    for i in range(3):
        table.write(orders((i, "v", i)))
    assert [s.id for s in table.snapshots()] == [2, 3, 4]
    for i in range(2):
        table.with_options({"consumer.expiration-time": "1 h"}).write(orders((i, "v", i)))
    assert consumers.list() == {"slow": 2}
    table.with_options({"consumer.changelog-only": "true"}).write(orders((5, "v", 5)))
    assert [s.id for s in table.snapshots()] == [7]
    table.with_options({"consumer.expiration-time": "0 ms"}).write(orders((5, "v", 5)))
    assert consumers.list() == {}


def test_failed_expiry_fails_no_commit(caplog):
    class Locked(MemoryIO):
        def delete(self, path: str) -> None:
            raise PermissionError(13, "read-only", path)

    io = Locked(table_of("append", **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}).files)
    for i in range(3):
        assert open_table(io).write(orders((i, "v", i))).id == i + 1
    assert len(open_table(io).snapshots()) == 3
    assert "were not expired" in caplog.text
    with pytest.raises(PermissionError):
        open_table(io).maintenance.expire_snapshots()


def test_reader_of_expired_snapshot_gets_out_of_range_error():
    io = table_of("keyed")
    for i in range(4):
        open_table(io).write(orders((1, "v", i)))
    table = open_table(io)
    oldest = table.snapshots()[0]
    scan, reader = table.scan(snapshot_id=oldest.id), table.reader(snapshot_id=oldest.id)
    splits = scan.plan().splits
    table.maintenance.expire_snapshots(retain_max=1)
    with pytest.raises(OutOfRangeError, match=r"snapshot 1 of .* expired while it was read"):
        scan.plan()
    with pytest.raises(OutOfRangeError, match=r"snapshot 1 of .* expired while it was read"):
        list(reader.to_batches(splits[0]))
    damaged = table.scan().plan().splits[0]
    io.delete(table.store.file_path(damaged.bucket_ref, damaged.files[0]))
    with pytest.raises(CorruptedError, match="is missing"):
        list(table.reader().to_batches(damaged))


def test_nothing_expires_if_tag_or_branch_is_unreadable():
    io = table_of("keyed")
    for i in range(3):
        open_table(io).write(orders((1, "v", i)))
        open_table(io).compact(full=True)
    table = open_table(io)
    make_tag(table.store, "broken", 2)
    io.delete(table.store.manifests.path(table.store.tags.get("broken").snapshot.base_manifest_list))
    files = set(io.files)
    with pytest.raises(CorruptedError, match="tag 'broken' cannot be read"):
        table.maintenance.expire_snapshots(retain_max=1)
    assert set(io.files) == files


def test_branch_of_tag_without_changelog_files_does_not_keep_others_from_expiring():
    io = table_of("input")
    open_table(io).write(orders((1, "v", 1)))
    open_table(io).tags.create("v")
    open_table(io).write(orders((1, "v", 2)))
    open_table(io).maintenance.expire_snapshots(
        retain_max=1, retain_min=1
    )  # with the changelog files of the tag's snapshot
    open_table(io).rollback_to("v")
    open_table(io).branches.create("b", tag="v")
    open_table(io).write(orders((1, "v", 3)))
    shown = what_shows(io)
    assert open_table(io).maintenance.expire_snapshots(retain_max=1, retain_min=1).snapshots[0] == 1
    kept = {key: rows for key, rows in shown.items() if key[0] == "b" or key[1] == "v"}
    assert kept.items() <= what_shows(io).items()


def test_bad_arguments_of_expiry_are_refused():
    io = table_of("append")
    open_table(io).write(orders((1, "v", 1)))
    with pytest.raises(InvalidInputError, match="at least 5 snapshots, but at most 3"):
        open_table(io).maintenance.expire_snapshots(retain_max=3, retain_min=5)
    with pytest.raises(InvalidInputError, match="the minimum is 1"):
        open_table(io).maintenance.expire_snapshots(retain_min=0)
    with pytest.raises(InvalidInputError, match="neither epoch milliseconds"):
        open_table(io).maintenance.expire_snapshots(older_than="yesterday")


def test_older_than_moment():
    io, clock = table_of("append", **{"snapshot.num-retained.min": "1"}), [1_000]
    table = Table(FileStore(io, ROOT, Schemas(io, ROOT).latest(), now=lambda: clock[0]))
    for i in range(5):
        table.with_options({"write-only": "true"}).write(orders((i, "v", i)))
        clock[0] += 1_000
    assert table.maintenance.expire_snapshots(older_than=3_000).snapshots == (1, 2)
    assert table.maintenance.expire_snapshots(older_than="1970-01-01 00:00:04+00:00").snapshots == (3,)
    assert table.maintenance.expire_snapshots(older_than=10_000, retain_min=2).snapshots == ()
    assert table.maintenance.expire_snapshots(older_than=10_000).snapshots == (4,)


@pytest.mark.parametrize(("hint", "missing"), [(4, ()), (6, ()), (4, (3,)), (5, (2, 4)), (9, ()), (None, (3, 4))])
def test_wrong_hint_does_not_change_expired_snapshots(hint, missing):
    """With any ``EARLIEST``, and with gaps of other engines, no snapshot stays that names deleted files."""
    io = table_of("append")
    for i in range(8):
        open_table(io).write(orders((i, "v", i)))
        if i % 2:
            open_table(io).compact(full=True)
    table = open_table(io)
    for number in missing:
        io.delete(table.store.snapshots.path(number))
    if hint is not None:
        table.store.snapshots.write_hint("EARLIEST", hint)
    newest = table.snapshot().id
    table.maintenance.expire_snapshots(retain_max=3, retain_min=1)
    kept = table.store.snapshots.ids()
    assert kept == [newest - 2, newest - 1, newest]
    for number in kept:
        assert table.to_arrow(snapshot_id=number).num_rows
    assert stored(io) >= needed_files(table.store)


@pytest.mark.parametrize("hint", [None, 1, 3, 4])
def test_wrong_hint_does_not_change_expired_changelogs(hint):
    io = table_of("input", **LONGER)
    for i in range(8):
        open_table(io).write(orders((i, "v", i)))
    table = open_table(io)
    latest = table.snapshot().id
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    changelogs = Changelogs(io, table.store.branch_root)
    assert changelogs.ids() == list(range(1, latest))
    if hint is not None:
        io.write(f"{ROOT}/changelog/EARLIEST", b"%d" % hint)
    rules = {"snapshot.num-retained.min": "1", "changelog.num-retained.min": "1"}
    bounds = {"snapshot.num-retained.max": "1", "changelog.num-retained.max": "3"}
    Table(table.store.with_options(rules | bounds)).maintenance.expire_snapshots()
    assert changelogs.ids() == [latest - 2, latest - 1]
    assert stored(io) >= needed_files(table.store)


def test_commit_with_nothing_due_costs_few_requests():
    """The newest snapshot is read once for all that may be due, and consumers only if a snapshot may expire."""
    rules = {"tag.automatic-creation": "process-time", "partition.expiration-time": "9 d"}
    rules |= {"partition.timestamp-formatter": "yyyy", "partition.expiration-check-interval": "9 d", **LONGER}
    io = table_of("partitioned", **rules, **{"snapshot.num-retained.min": "1", "changelog.time-retained": "2 h"})
    for number in range(3):
        open_table(io).write(orders((number, "2999", number)))
    Consumers(io, ROOT).record("reader", 1)
    counting = FaultyIO(io)
    open_table(counting).write(orders((4, "2999", 4)))
    log = [f"{verb} {path.removeprefix(ROOT)}" for verb, path in counting.log]
    last_commit = max(number for number, request in enumerate(log) if request == "write /snapshot/LATEST")
    assert log[last_commit + 2 :] == [
        "read /snapshot/LATEST",
        "exists /snapshot/snapshot-8",
        "read /snapshot/snapshot-7",
        "list /tag",  # automatic tags
        "list /tag",  # expired tags
        "read /snapshot/snapshot-6",  # whether partitions are to be checked
        "read /snapshot/snapshot-5",
        "read /snapshot/snapshot-4",
        "read /snapshot/EARLIEST",
        "list /snapshot",
        "read /snapshot/snapshot-1",
        "read /changelog/EARLIEST",
        "list /changelog",
    ]
