"""Missing and corrupt files: a read fails unless options allow it to continue without their rows."""

import pytest

from paimon_core.errors import CorruptedError, OutOfRangeError
from paimon_core.options import warn_once
from tests.support.tables import append_table, keyed_table, orders

LOST, CORRUPT = {"scan.ignore-lost-files": "true"}, {"scan.ignore-corrupt-files": "true"}
TABLES = {"append": append_table, "keys": keyed_table}


@pytest.fixture(autouse=True)
def _as_in_a_new_process():
    warn_once.cache_clear()


def made(path, name):
    """Return a table with two snapshots, where the second updates keys of the first, and the second's file."""
    table = TABLES[name](path / "t", **{"write-only": "true"} | ({"bucket": "1"} if name == "keys" else {}))
    table.write(orders(*((k, "old", k) for k in range(4))))
    before = set((path / "t").rglob("data-*"))
    table.write(orders(*((k, "new", k) for k in range(2, 6))))
    (second,) = set((path / "t").rglob("data-*")) - before
    return table, second


OLD = [(k, "old") for k in range(4)]


def shown(table):
    rows = table.to_arrow(columns=["id", "v"]).sort_by("id")
    return list(zip(*(rows.column(name).to_pylist() for name in ("id", "v")), strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_missing_file_fails_read_unless_ignored(tmp_path, name):
    table, file = made(tmp_path, name)
    file.unlink()
    for options in ({}, CORRUPT):
        with pytest.raises(CorruptedError, match="missing"):
            table.with_options(options).to_arrow()
    with pytest.warns(UserWarning, match="is missing; 'scan.ignore-lost-files' leaves its rows out"):
        assert shown(table.with_options(LOST)) == OLD
    assert table.with_options(LOST).to_arrow(columns=[]).num_rows == len(OLD)


@pytest.mark.parametrize("name", TABLES)
def test_corrupt_file_fails_read_unless_ignored(tmp_path, name):
    table, file = made(tmp_path, name)
    file.write_bytes(b"nothing of the sort" * 100)
    for options in ({}, LOST):
        with pytest.raises(CorruptedError):
            table.with_options(options).to_arrow()
    with pytest.warns(UserWarning, match="'scan.ignore-corrupt-files' leaves out rows of a corrupt file"):
        assert shown(table.with_options(CORRUPT)) == OLD


def test_file_of_expired_snapshot_is_not_ignored(tmp_path):
    table, file = made(tmp_path, "append")
    table = table.with_options(LOST)
    scan = table.scan()
    splits, read = scan.plan().splits, table.reader()
    file.unlink()
    (tmp_path / "t/snapshot/snapshot-2").unlink()
    with pytest.raises(OutOfRangeError, match="expired"):
        [batch for split in splits for batch in read.to_batches(split)]


@pytest.mark.parametrize("name", TABLES)
def test_rewrite_never_ignores_files(tmp_path, name):
    table, file = made(tmp_path, name)
    file.write_bytes(b"nothing of the sort" * 100)
    table = table.with_options(LOST | CORRUPT)
    with pytest.raises(CorruptedError):
        table.with_options({"write-only": "false"}).compact(full=True)
    with pytest.raises(CorruptedError):
        table.delete("id < 10")
