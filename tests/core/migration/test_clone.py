"""Copies of tables: equal rows and metadata, only what is new on the way, a refusal once the copy has changed."""

import threading
from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import (
    AlreadyExistsError,
    CorruptedError,
    InvalidInputError,
    NotFoundError,
    OutOfRangeError,
    UnsupportedError,
)
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.migration import clone as module
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn, SetOption
from paimon_core.schema.schema import Schema
from paimon_core.types.datatype import INT
from tests.support.tables import ORDERS, files_below, orders, rows_of

KEYED = {"bucket": "2", "write-only": "true"}
KINDS = {
    "append": ([], {}),
    "buckets": ([], {"bucket": "2", "bucket-key": "id"}),
    "keys": (["id"], KEYED),
    "compacted": (["id"], {"bucket": "2", "num-sorted-run.compaction-trigger": "2"}),
    "dynamic buckets": (["id"], {"bucket": "-1"}),
    "postponed": (["id"], {"bucket": "-2"}),
    "sums": (["id"], {**KEYED, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}),
    "partial update": (["id"], {**KEYED, "merge-engine": "partial-update"}),
    "first row": (["id"], {"bucket": "1", "merge-engine": "first-row"}),
    "changelog": (["id"], {"bucket": "1", "changelog-producer": "lookup"}),
    "vectors": ([], {"deletion-vectors.enabled": "true"}),
    "vectors and keys": (["id"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "row ids": ([], {"row-tracking.enabled": "true"}),
    "data evolution": (
        [],
        {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"},
    ),
    "indexes": ([], {"file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": "1 b"}),
    "avro": ([], {"file.format": "avro"}),
}


@pytest.fixture
def catalogs(tmp_path):
    made = [FileSystemCatalog(str(tmp_path / name)) for name in ("here", "there")]
    for one in made:
        one.create_database("db")
    return made


def source_table(catalog, keys=(), options=None, name="db.t"):
    table = catalog.create_table(name, Schema(ORDERS, primary_keys=list(keys), options=options or {}))
    for i in range(3):
        table.write(orders(*((k, f"v{i}", i) for k in range(i, i + 4))))
    return table


def contents(table):
    fields = ("id", "v", "n")
    return rows_of(table.to_arrow(columns=list(fields)), fields)


def files_of(table):
    return {entry.identity for entry in live_entries(table.store, table.snapshot()).live}


SOME = ("append", "keys", "compacted", "vectors", "data evolution")


@pytest.mark.parametrize("kind", [k if k in SOME else pytest.param(k, marks=pytest.mark.more) for k in KINDS])
def test_every_kind_of_table_is_copied_and_brought_up_to_date(catalogs, kind):
    here, there = catalogs
    source = source_table(here, *KINDS[kind])
    if kind in ("append", "vectors", "vectors and keys", "keys", "data evolution"):
        source.delete("id = 2")
    copy = here.clone("db.t", there, "db.copy")
    assert contents(copy) == contents(source)
    assert files_of(copy) == files_of(source)
    assert copy.verify(deep=True).sound
    source.write(orders((90, "new", 1), (1, "again", 2)))
    if kind == "vectors":
        source.delete("id = 3")
    else:
        source.compact(full=True)
    again = here.clone("db.t", there, "db.copy")
    assert contents(again) == contents(source)
    assert files_of(again) == files_of(source)
    assert again.verify(deep=True).sound
    assert [s.commit_kind for s in again.snapshots()] == ["APPEND", "OVERWRITE"]
    if "row ids" in kind or "evolution" in kind:
        ids = ["_ROW_ID"]
        assert again.to_arrow(columns=ids).sort_by("_ROW_ID") == source.to_arrow(columns=ids).sort_by("_ROW_ID")
        again.write(orders((99, "own", 9)))
        actual = again.to_arrow(columns=ids).column(0).to_pylist()
        assert len(set(actual)) == len(actual)
        return
    again.write(orders((99, "own", 9)))
    assert again.verify(deep=True).sound


def test_repeated_clone_copies_only_new_files(catalogs, monkeypatch):
    here, there = catalogs
    source = source_table(here)
    copied = []
    copy = module.copy_file
    monkeypatch.setattr(module, "copy_file", lambda io, path, *rest: (copied.append(path), copy(io, path, *rest)))
    here.clone("db.t", there, "db.copy")
    assert len(copied) == 3
    here.clone("db.t", there, "db.copy")
    assert len(copied) == 3
    source.write(orders((7, "x", 7)))
    made = here.clone("db.t", there, "db.copy")
    assert len(copied) == 4
    assert [s.id for s in made.snapshots()] == [1, 2]
    assert made.snapshot().properties[module.SOURCE_SNAPSHOT] == "4"


def test_at_snapshot_or_tag_and_then_forward(catalogs):
    here, there = catalogs
    source = source_table(here)
    source.tags.create("v2", 2)
    old = here.clone("db.t", there, "db.copy", snapshot_id=1)
    assert contents(old) == rows_of(source.to_arrow(snapshot_id=1), ("id", "v", "n"))
    tagged = here.clone("db.t", there, "db.copy", tag="v2")
    assert contents(tagged) == rows_of(source.to_arrow(tag="v2"), ("id", "v", "n"))
    assert contents(here.clone("db.t", there, "db.copy")) == contents(source)
    with pytest.raises(InvalidInputError, match=r"a copy of snapshot 3 .* asked for at snapshot 1"):
        here.clone("db.t", there, "db.copy", snapshot_id=1)
    with pytest.raises(OutOfRangeError):
        here.clone("db.t", there, "db.other", snapshot_id=9)


def test_changes_of_schema_come_along(catalogs):
    here, there = catalogs
    source = source_table(here)
    here.clone("db.t", there, "db.copy", snapshot_id=2)
    source = source.alter([AddColumn("extra", INT), SetOption("target-file-size", "7 mb")])
    source.write(pa.table({"id": [50], "v": ["x"], "n": pa.array([1], pa.int32()), "extra": pa.array([5], pa.int32())}))
    past = here.clone("db.t", there, "db.copy", snapshot_id=3)
    assert past.schema.id == 0
    copy = here.clone("db.t", there, "db.copy")
    assert (copy.schema, copy.schema.options["target-file-size"]) == (source.schema, "7 mb")
    assert copy.to_arrow().sort_by("id").equals(source.to_arrow().sort_by("id"))
    assert contents(here.clone("db.t", there, "db.fresh")) == contents(source)


def test_copy_does_not_show_deleted_rows_again(catalogs):
    here, there = catalogs
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}
    source = source_table(here, [], options)
    source.delete("id = 2")
    source.store.alter([SetOption("deletion-vectors.enabled", "false")])  # Java checks nothing
    with pytest.raises(InvalidInputError, match=r"'deletion-vectors.enabled' was changed after snapshot 4, but"):
        here.clone("db.t", there, "db.copy")
    copy = here.clone("db.t", there, "db.copy", snapshot_id=4)
    assert contents(copy) == contents(here.table("db.t"))
    assert copy.verify(deep=True).sound


def test_copy_is_brought_up_to_date_over_new_producer(catalogs):
    here, there = catalogs
    source = source_table(here, ["id"], {"bucket": "1"})
    here.clone("db.t", there, "db.copy")
    source.compact(full=True)
    here.table("db.t").alter([SetOption("changelog-producer", "lookup")]).write(orders((7, "x", 7)))
    copy = here.clone("db.t", there, "db.copy")
    assert contents(copy) == contents(here.table("db.t"))
    copy.write(orders((8, "y", 8)))
    assert len(contents(here.clone("db.t", there, "db.other"))) == 7


def test_branch_and_table_without_rows(catalogs):
    here, there = catalogs
    source = source_table(here)
    source.branches.create("b", source.tags.create("v").name)
    here.table("db.t$branch_b").write(orders((70, "only there", 1)))
    assert contents(here.clone("db.t$branch_b", there, "db.b")) == contents(here.table("db.t$branch_b"))
    here.create_table("db.empty", Schema(ORDERS))
    empty = here.clone("db.empty", there, "db.empty")
    assert (empty.snapshot(), empty.to_arrow().num_rows) == (None, 0)
    here.table("db.empty").write(orders((1, "a", 1)))
    assert here.clone("db.empty", there, "db.empty").to_arrow().num_rows == 1


def test_copy_that_has_changed_is_left_alone(catalogs):
    here, there = catalogs
    source = source_table(here)
    copy = here.clone("db.t", there, "db.copy")
    copy.write(orders((1000, "own", 1)))
    before = files_below(copy.path)
    source.write(orders((7, "x", 7)))
    with pytest.raises(AlreadyExistsError, match=r"its snapshot 2 \(APPEND\) was not copied from there"):
        here.clone("db.t", there, "db.copy")
    assert files_below(copy.path) == before
    altered = here.clone("db.t", there, "db.altered")
    altered.alter([AddColumn("mine", INT)])
    with pytest.raises(AlreadyExistsError, match="it has a schema 1 that the source lacks"):
        here.clone("db.t", there, "db.altered")
    there.create_table("db.other", Schema(pa.schema([("x", pa.int32())])))
    with pytest.raises(AlreadyExistsError, match="its schema 0 differs"):
        here.clone("db.t", there, "db.other")
    source_table(here, name="db.second")
    here.clone("db.t", there, "db.mine")
    with pytest.raises(AlreadyExistsError):
        here.clone("db.second", there, "db.mine")


def test_unsupported_clones_are_refused(catalogs):
    here, there = catalogs
    source = source_table(here)
    with pytest.raises(InvalidInputError, match="is the table itself"):
        here.clone("db.t", here, "db.t")
    with pytest.raises(NotFoundError, match="no database 'nope'"):
        here.clone("db.t", there, "nope.t")
    with pytest.raises(UnsupportedError, match="system table"):
        here.clone("db.t$files", there, "db.f")
    source.branches.create("b")
    source.alter([SetOption("scan.fallback-branch", "b")])
    with pytest.raises(UnsupportedError, match="reads missing partitions from branch 'b'"):
        here.clone("db.t", there, "db.copy")


def test_files_outside_of_table_come_into_copy(catalogs, tmp_path):
    here, there = catalogs
    other, outside = source_table(here, name="db.other"), f"{tmp_path}/outside"
    (location,) = {entry.location for entry in live_entries(other.store, other.snapshot()).live}
    (tmp_path / "outside").mkdir()
    files = []
    for entry in live_entries(other.store, other.snapshot()).live:
        path = f"{outside}/{entry.file.file_name}"
        other.store.io.write(path, other.store.io.read(other.store.file_path(entry.bucket_ref, entry.file)))
        files.append(replace(entry.file, external_path=path))
    here.create_table("db.t", Schema(ORDERS))
    source = here.table("db.t", {"data-file.external-paths.allowed": outside})
    source.committer().commit([CommitMessage(*location, new_files=tuple(files))])
    copy = here.clone_table(source, there, "db.copy")
    assert contents(copy) == contents(other)
    assert {file.external_path for file in copy.scan().plan().splits[0].files} == {None}
    with pytest.raises(CorruptedError, match="is below no root"):
        here.clone("db.t", there, "db.again")
    again = here.clone_table(source, there, "db.copy")
    assert len(again.snapshots()) == 1


def test_file_that_is_lost_is_named(catalogs):
    here, there = catalogs
    source = source_table(here)
    (path,) = source.scan().plan().splits[0].files[:1]
    source.store.io.delete(f"{source.path}/bucket-0/{path.file_name}")
    with pytest.raises(Exception, match=rf"missing.*{path.file_name}"):
        here.clone("db.t", there, "db.copy")
    assert not there.table_exists("db.copy")


def test_snapshot_that_expires_while_it_is_copied(catalogs, monkeypatch):
    here, there = catalogs
    source = source_table(here)

    def gone(_, path, *__):
        source.store.io.delete(source.store.snapshots.path(3))
        raise FileNotFoundError(2, "no such file", path)

    monkeypatch.setattr(module, "copy_file", gone)
    with pytest.raises(OutOfRangeError, match=r"snapshot 3 of .* expired while it was read"):
        here.clone("db.t", there, "db.copy")
    assert not there.table_exists("db.copy")


def test_file_that_crash_left_half_is_copied_again(catalogs):
    here, there = catalogs
    source = source_table(here)
    for file in source.scan().plan().splits[0].files:
        path = f"{there.location('db.copy')}/bucket-0/{file.file_name}"
        source.store.io.write(path, b"half")
    copy = here.clone("db.t", there, "db.copy")
    assert contents(copy) == contents(source)
    assert copy.verify(deep=True).sound


def test_clones_at_same_time_make_one_copy(catalogs):
    here, there = catalogs
    source = source_table(here)
    errors = []

    def run():
        try:
            here.clone("db.t", there, "db.copy")
        except AlreadyExistsError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    copy = there.table("db.copy")
    assert errors == []
    assert (len(copy.snapshots()), contents(copy)) == (1, contents(source))


def test_source_that_was_dropped_is_not_cloned(catalogs):
    here, there = catalogs
    source = source_table(here)
    here.drop_table("db.t")
    with pytest.raises(NotFoundError, match="was dropped or renamed at the same time"):
        module.clone(source.store, None, source.store.io, there.location("db.copy"), newest=True)
    assert not there.table_exists("db.copy")
