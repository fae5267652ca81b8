"""The bytes of an expiry: the sizes of the deleted files, as far as metadata stores them."""

from pathlib import Path

import pytest

from tests.support.tables import append_table, keyed_table, orders


def sizes(root: str) -> dict[Path, int]:
    """Return the bytes of all files below a directory."""
    return {path: path.stat().st_size for path in Path(root).rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "options",
    [{}, {"changelog-producer": "input"}, {"changelog-producer": "input", "changelog.num-retained.max": "20"}],
    ids=["no changelog", "changelog", "changelog outlives snapshots"],
)
def test_bytes_are_sizes_of_deleted_files(tmp_path, options):
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    for number in range(4):
        table.write(orders((number, "v", number), (9, "w", number)))
    table.compact(full=True)
    before = sizes(table.path)
    planned = table.maintenance.expire_snapshots(retain_max=1, retain_min=1, dry_run=True)
    expired = table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    gone = {path: size for path, size in before.items() if not path.exists()}
    files = [size for path, size in gone.items() if path.parent.name not in ("snapshot", "changelog")]
    assert (expired.files, expired.bytes) == (len(files), sum(files))
    assert planned.bytes == expired.bytes > 0
    assert (expired + expired).bytes == 2 * expired.bytes


def test_index_files_beside_data_are_left_out_of_bytes(tmp_path):
    options = {"file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": "1 b"}
    table = append_table(tmp_path / "t", **options)
    table.write(orders((1, "v", 1)))
    table.overwrite(orders((2, "w", 2)))
    before = sizes(table.path)
    expired = table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    gone = {path: size for path, size in before.items() if not path.exists() and path.parent.name != "snapshot"}
    indexes = [size for path, size in gone.items() if path.suffix == ".index"]
    assert len(indexes) == 1
    assert (expired.files, expired.bytes) == (len(gone), sum(gone.values()) - sum(indexes))
