"""Compaction of manifests, purge, removal of missing files, empty directories."""

from pathlib import Path

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.schema.change import SetOption
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.core.operations.history.test_orphan_files import ROOT, history, opened
from tests.support.faulty_io import FaultyIO
from tests.support.tables import ORDERS, append_table, keyed_table, orders, rows_of
from tests.support.timeline import all_files, needed_files


def test_manifests_become_few(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1")
    for i in range(5):
        table.write(orders((i, "a", i), (9, "b", i)))
    rows, before = rows_of(table.to_arrow()), table.snapshot()
    result = table.maintenance.compact_manifests()
    assert (result.commit_kind, result.delta_record_count, result.id) == ("COMPACT", 0, before.id + 1)
    assert result.total_record_count == before.total_record_count
    manifests = table.store.manifests
    assert len(manifests.read_list(result.base_manifest_list)) == 1
    assert manifests.read_list(result.base_manifest_list)[0].num_deleted_files == 0
    assert rows_of(table.to_arrow()) == rows
    assert table.maintenance.compact_manifests() is None
    assert table.changes(before.id).num_rows == 0
    assert append_table(tmp_path / "empty").maintenance.compact_manifests() is None


def test_purge_leaves_one_snapshot_without_rows():
    io = history(**{"changelog-producer": "lookup", "changelog.num-retained.min": "101"})
    table = opened(io)
    table.consumers.reset("c", 3)
    io.write(f"{ROOT}/bucket-0/data-x-0.avro", b"stray")
    table.maintenance.purge()
    table = opened(io)
    assert (table.to_arrow().num_rows, len(table.snapshots())) == (0, 1)
    assert (table.tags.list(), table.branches.list(), table.consumers.list()) == ([], [], {})
    assert table.store.changelogs.ids() == []
    stored = {path for path in io.files if "/manifest/" in path or "/bucket-" in path}
    assert stored == needed_files(table.store)
    table.write(orders((1, "a", 1)))
    assert opened(io).to_arrow().num_rows == 1


def test_purge_refuses_table_that_reads_branch():
    io = history()
    store = opened(io).store
    store.alter([SetOption("scan.fallback-branch", "b")])
    before = set(io.files)
    with pytest.raises(InvalidInputError, match=r"'scan\.fallback-branch'"):
        opened(io).maintenance.purge()
    assert set(io.files) == before


def test_purge_of_empty_table(tmp_path):
    table = append_table(tmp_path / "t")
    assert table.maintenance.purge().count == 0
    assert table.snapshot() is None


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_missing_files_are_removed_from_metadata(tmp_path, vectors):
    table = Table.create(str(tmp_path / "t"), Schema(ORDERS, options={"deletion-vectors.enabled": vectors}))
    for i in range(3):
        table.write(orders((i, "a", i), (10 + i, "b", i)))
    table.delete("id IN (0, 10, 1)") if vectors == "false" else table.delete("id = 1")
    assert table.maintenance.remove_missing_files() == []
    newest = table.snapshot()
    paths = sorted((tmp_path / "t" / "bucket-0").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    live = {split_file.file_name for split in table.scan().plan().splits for split_file in split.files}
    lost = next(path for path in paths if path.name in live)
    lost.unlink()
    assert table.maintenance.remove_missing_files(dry_run=True) == [lost.name]
    assert table.snapshot() == newest
    assert table.maintenance.remove_missing_files() == [lost.name]
    assert table.snapshot().commit_kind == "OVERWRITE"
    assert 0 < table.to_arrow().num_rows < 5
    assert table.maintenance.remove_missing_files() == []


def test_expiry_removes_empty_directories_if_asked(tmp_path):
    for clean in ("true", "false"):
        table = Table.create(
            str(tmp_path / clean),
            Schema(ORDERS, ["id", "n"], ["n"], {"bucket": "1", "snapshot.clean-empty-directories": clean}),
        )
        table.write(orders((1, "a", 1), (2, "b", 2)))
        table.drop_partitions([{"n": 1}])
        table.maintenance.expire_snapshots(older_than=2**50, retain_max=1, retain_min=1)
        left = {path.name for path in Path(table.path).iterdir()}
        assert ("n=1" in left) == (clean == "false")
        assert "n=2" in left
        assert table.to_arrow().num_rows == 1


def test_branch_of_snapshot_has_tag_that_goes_with_it():
    io = history()
    table = opened(io)
    table.write(orders((7, "x", 7)))
    number = table.snapshot().id
    rows = rows_of(table.to_arrow())
    table.branches.create("s", snapshot_id=number)
    assert table.tags.get("branch-s").snapshot.id == number
    table.write(orders((8, "x", 8)))
    table.compact(full=True)
    table.maintenance.expire_snapshots(older_than=2**50, retain_max=1, retain_min=1)
    table.branches.rename("s", "u")
    assert [tag.name for tag in table.tags.list()] == ["v1", "branch-u"]
    assert rows_of(opened(io, "u").to_arrow()) == rows
    opened(io, "u").write(orders((9, "y", 9)))
    assert table.maintenance.remove_orphan_files(dry_run=True).count == 0
    table.branches.delete("u")
    assert [tag.name for tag in table.tags.list()] == ["v1"]
    table.maintenance.remove_orphan_files()
    searched = {path for path in all_files(io, ROOT) if "/manifest/" in path or "/bucket-" in path}
    assert searched == needed_files(table.store)
    with pytest.raises(InvalidInputError, match="pass either tag or snapshot_id"):
        table.branches.create("z", tag="v1", snapshot_id=number)


def test_branch_that_cannot_be_created_leaves_no_tag():
    io = history()
    table = opened(io)
    faulty = FaultyIO(io)
    number = table.snapshot().id
    opened(faulty).branches.create("s", snapshot_id=number)
    opened(io).branches.delete("s")
    before = set(io.files)
    for at, (verb, path) in enumerate(faulty.log):
        if verb == "write" and "/branch-s/" in path and not path.endswith("EST"):
            with pytest.raises(OSError, match="injected"):
                opened(FaultyIO(io, at)).branches.create("s", snapshot_id=number)
            assert set(io.files) == before, path
