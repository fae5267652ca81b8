"""Tags, branches, consumers and rollback: the result of each method, without lost or remaining files."""

from dataclasses import replace
from datetime import timedelta

import pytest

from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.fileio.fileio import FileIO
from paimon_core.operations.history import rollback
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.branches import branch_root
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import MemoryIO
from tests.support.tables import ORDERS, orders
from tests.support.timeline import all_files, needed_files

ROOT = "memory://w/t"
OPTIONS = {"bucket": "1", "file.format": "avro", "snapshot.num-retained.min": "100"}


def opened(io: FileIO, branch: str = "main") -> Table:
    schema = Schemas(io, branch_root(ROOT, branch)).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema, branch))


@pytest.fixture
def table() -> Table:
    """A table with the snapshots 1 to 4, each with one more order; a full compaction before the last."""
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, ["id"], [], OPTIONS))
    made = opened(io)
    made.write(orders((1, "a", 1)))
    made.write(orders((2, "b", 2)))
    made.compact(full=True)
    made.write(orders((3, "c", 3)))
    assert [s.id for s in made.snapshots()] == [1, 2, 3, 4]
    return made


def ids(table: Table, **when: object) -> list[object]:
    return sorted(table.to_arrow(columns=["id"], **when).column("id").to_pylist())


def orphans(table: Table) -> set[str]:
    """Return the data and metadata files that nothing names."""
    files = {path for path in all_files(table.store.io, ROOT) if "/manifest/" in path or "/bucket-" in path}
    return files - needed_files(table.store)


def expire(table: Table) -> None:
    table.maintenance.expire_snapshots(older_than=2**50, retain_max=1, retain_min=1)


def test_tag_outlives_its_snapshot_and_its_deletion_leaves_no_file(table):
    assert table.tags.create("one", 1).snapshot.id == 1
    table.tags.create("two", 2)
    expire(table)
    assert [ids(table, tag=name) for name in ("one", "two")] == [[1], [1, 2]]
    table.tags.rename("one", "first")
    assert [tag.name for tag in table.tags.list()] == ["first", "two"]
    table.tags.delete("two")
    assert (ids(table, tag="first"), ids(table), orphans(table)) == ([1], [1, 2, 3], set())
    table.tags.replace("first")
    assert table.tags.get("first").snapshot.id == 4
    assert (ids(table), orphans(table)) == ([1, 2, 3], set())


def test_wrong_tags_are_refused(table):
    table.tags.create("v", 1)
    assert table.tags.create("v", 2, ignore_if_exists=True).snapshot.id == 1
    assert table.tags.create("v", 1, "3 d").time_retained == timedelta(days=3)  # of the same snapshot
    with pytest.raises(AlreadyExistsError, match=r"'v' of .* already exists, for snapshot 1"):
        table.tags.create("v", 2)
    with pytest.raises(OutOfRangeError, match="available: 1 to 4"):
        table.tags.create("w", 9)
    for age in (timedelta(days=-1), "-1 d"):
        with pytest.raises(InvalidInputError, match="the retention time of a tag"):
            table.tags.create("w", 1, age)
    for name in ("", " ", "a/b"):
        with pytest.raises(InvalidInputError, match="cannot name a tag"):
            table.tags.create(name)
    for verb in (table.tags.delete, table.tags.get, table.tags.replace, lambda name: table.tags.rename(name, "x")):
        with pytest.raises(NotFoundError, match="there are v"):
            verb("nope")
    with pytest.raises(AlreadyExistsError):
        table.tags.rename("v", "v")
    with pytest.raises(InvalidInputError, match="duration"):
        table.tags.create("w", 1, "long")
    assert [tag.name for tag in table.tags.list()] == ["v"]


def test_tag_by_time_and_retention_time(table):
    times = [s.time_millis for s in table.snapshots()]
    actual = table.tags.create("t", timestamp=times[1])
    assert actual.snapshot.time_millis >= times[1]
    assert actual.expires is None
    with pytest.raises(OutOfRangeError, match="at or after"):
        table.tags.create("u", timestamp=times[-1] + 10**9)
    table.tags.create("short", 2, timedelta(hours=1))
    table.tags.create("long", 3, "1 d")
    again = table.tags.get("long")
    assert (again.time_retained, again.create_time is None) == (timedelta(days=1), False)
    assert table.tags.expire() == []
    later = Table(replace(table.store, now=lambda: table.store.now() + 2 * 3_600_000))
    assert later.tags.expire() == ["short"]
    assert table.tags.expire(older_than=later.store.now()) == ["t", "long"]


def test_rollback_removes_newer_snapshots_and_tags(table):
    table.tags.create("old", 2)
    table.tags.create("new", 4)
    assert table.rollback_to(2).id == 2
    assert (ids(table), [s.id for s in table.snapshots()]) == ([1, 2], [1, 2])
    assert [tag.name for tag in table.tags.list()] == ["old"]
    table.write(orders((9, "z", 9)))
    assert ids(table) == [1, 2, 9]
    for target, error in ((7, OutOfRangeError), ("nope", NotFoundError)):
        with pytest.raises(error):
            table.rollback_to(target)
    assert table.rollback_to("old").id == 2


def test_rollback_to_tag_whose_snapshot_expired(table):
    table.tags.create("old", 2)
    expire(table)
    assert [s.id for s in table.snapshots()] == [4]
    assert table.rollback_to("old").id == 2
    assert (ids(table), [s.id for s in table.snapshots()]) == ([1, 2], [2])
    table.write(orders((9, "z", 9)))
    assert (ids(table), ids(table, tag="old"), table.snapshot().id) == ([1, 2, 9], [1, 2], 3)
    table.tags.create("other", 3)
    assert table.rollback_to("other").id == 3


def test_branches_are_created_listed_and_deleted(table):
    table.tags.create("v", 2)
    branches = table.branches
    branches.create("empty")
    branches.create("dev", tag="v")
    branches.create("dev", ignore_if_exists=True)
    assert branches.list() == ["dev", "empty"]
    io = table.store.io
    dev = opened(io, "dev")
    assert (ids(dev), ids(opened(io, "empty"))) == ([1, 2], [])
    dev = dev.alter([AddColumn("more", "INT")])
    dev.write(orders((7, "branch", 7)))
    assert (ids(dev), ids(table)) == ([1, 2, 7], [1, 2, 3])
    branches.rename("dev", "work")
    branches.fast_forward("work")
    main = opened(io)
    assert (ids(main), main.schema.names, [s.id for s in main.snapshots()]) == (
        [1, 2, 7],
        (*ORDERS.names, "more"),
        [1, 2, 3],
    )
    branches.delete("work")
    branches.delete("empty")
    assert (branches.list(), ids(main), ids(main, tag="v")) == ([], [1, 2, 7], [1, 2])


def test_fast_forward_to_branch_that_begins_after_main(table):
    table.branches.create("dev", snapshot_id=4)
    table.tags.create("old", 2)
    table.rollback_to(2)
    table.branches.fast_forward("dev")
    main = opened(table.store.io)
    assert (ids(main), ids(main, tag="old"), [s.id for s in main.snapshots()]) == ([1, 2, 3], [1, 2], [4])
    assert main.verify(deep=True).sound
    main.maintenance.remove_orphan_files(older_than=main.store.now())
    assert (orphans(main), ids(main), ids(main, tag="old")) == (set(), [1, 2, 3], [1, 2])


def test_fast_forward_drops_snapshots_and_tags_with_other_schemas(table):
    table.branches.create("dev", snapshot_id=3)
    table.tags.create("kept", 1)
    opened(table.store.io, "dev").alter([AddColumn("theirs", "STRING")])
    opened(table.store.io, "dev").write(orders((7, "branch", 7)))
    table.rollback_to(1)
    opened(table.store.io).alter([AddColumn("ours", "INT")])
    opened(table.store.io).write(orders((8, "main", 8)))
    opened(table.store.io).tags.create("lost", 2)
    table.branches.fast_forward("dev")
    main = opened(table.store.io)
    assert [tag.name for tag in main.tags.list()] == ["kept", "branch-dev"]
    assert (main.schema.names[-1], [s.id for s in main.snapshots()]) == ("theirs", [3, 4])
    assert (ids(main), ids(main, tag="kept")) == ([1, 2, 7], [1])
    assert main.verify(deep=True).sound


@pytest.mark.parametrize("used", [False, True])
def test_branch_that_crash_left_is_created_again(table, used):
    table.tags.create("v", 2)
    table.branches.create("dev", tag="v")
    dev = opened(table.store.io, "dev")
    dev.alter([AddColumn("more", "INT")])
    if used:
        opened(table.store.io, "dev").write(orders((7, "branch", 7)))
    dev.store.io.delete(dev.store.schemas.path(0))
    if used:
        with pytest.raises(AlreadyExistsError, match="dev"):
            table.branches.create("dev", tag="v")
        assert opened(table.store.io, "dev").snapshots()[-1].id == 3
    else:
        table.branches.create("dev", tag="v")
        assert ids(opened(table.store.io, "dev")) == [1, 2]


def test_wrong_branches_are_refused(table):
    branches = table.branches
    branches.create("b")
    for name in ("main", "12", " ", "a/b"):
        with pytest.raises(InvalidInputError, match="cannot name"):
            branches.create(name)
    with pytest.raises(AlreadyExistsError, match="'b'"):
        branches.create("b")
    with pytest.raises(NotFoundError, match="tag 'nope'"):
        branches.create("c", tag="nope")
    with pytest.raises(OutOfRangeError, match="snapshot 99"):
        branches.create("c", snapshot_id=99)
    with pytest.raises(InvalidInputError, match="has no snapshot"):
        branches.fast_forward("b")
    for verb in (branches.delete, branches.fast_forward, lambda name: branches.rename(name, "x")):
        with pytest.raises(NotFoundError, match="there are b"):
            verb("nope")
        with pytest.raises(InvalidInputError, match=r"the table .* itself"):
            verb("main")
    assert (branches.list(), ids(table)) == (["b"], [1, 2, 3])


def test_consumers_are_set_listed_and_cleared(table):
    consumers = table.consumers
    for name in ("app-1", "app-2", "web"):
        consumers.reset(name, 3)
    assert Consumers(table.store.io, ROOT).get("web") == 3
    consumers.reset("web", 1)
    consumers.reset("app-2")
    assert consumers.list() == {"app-1": 3, "web": 1}
    assert consumers.clear("app.*", "app-1") == []
    assert consumers.clear(".*", "web") == ["app-1"]
    with pytest.raises(NotFoundError, match="there are: web"):
        consumers.reset("nope")
    with pytest.raises(InvalidInputError, match="1 or more"):
        consumers.reset("web", 0)
    with pytest.raises(InvalidInputError, match="not a regular expression"):
        consumers.clear("(")
    assert consumers.clear() == ["web"]


def test_no_more_snapshots_expire_than_asked(table):
    requested = {"older_than": 2**50, "retain_max": 1, "retain_min": 1}
    verbs = table.maintenance
    assert verbs.expire_snapshots(**requested, max_deletes=2, dry_run=True).snapshots == (1, 2)
    assert verbs.expire_snapshots(**requested, max_deletes=2).snapshots == (1, 2)
    with pytest.raises(InvalidInputError, match="max_deletes"):
        verbs.expire_snapshots(**requested, max_deletes=0)
    assert verbs.expire_snapshots(**requested).snapshots == (3,)


class LateIO(MemoryIO):
    """Calls ``late`` once, after snapshot 2 was deleted."""

    def __init__(self, files, late):
        super().__init__()
        self.files, self._late = files, late

    def delete(self, path):
        super().delete(path)
        if path.endswith("/snapshot-2") and self._late is not None:
            late, self._late = self._late, None
            late()


def test_rollback_leaves_late_snapshot_to_its_committer(monkeypatch):
    """A commit on a deleted snapshot deletes its own file; commits on the target stay."""
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS))
    table = opened(io)
    made = [table.write(orders((number, "a", number))) for number in (1, 2, 3)]
    path, waited = table.store.snapshots.path(4), []
    orphan = replace(made[2], id=4, delta_manifest_list="late", parent_delta_manifest_list=made[2].fingerprint)

    def late():
        io.write(path, orphan.to_json())
        table.write(orders((9, "new", 9)))

    def wait(seconds):
        waited.append(seconds)
        io.delete(path)  # as the committer does

    monkeypatch.setattr(rollback.time, "sleep", wait)
    rollback.rollback(replace(table.store, io=LateIO(io.files, late)), made[0])
    assert waited == [0.05]
    assert table.store.snapshots.ids() == [1, 2]
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 9]
    assert table.verify().sound
