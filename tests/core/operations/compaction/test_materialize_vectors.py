"""Materializing deletion vectors: no vector is left, no row changes, and only files with vectors are rewritten."""

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.table import Table
from tests.support.tables import append_table, keyed_table, orders, rows_of


def with_vectors(path, **options: str) -> Table:
    """Three files without row 1 of the first and all rows of the second, marked as deleted."""
    table = append_table(path, **{"deletion-vectors.enabled": "true", "compaction.min.file-num": "100", **options})
    for low in (0, 10, 20):
        table.write(orders(*((low + i, "v", i) for i in range(4))))
    table.delete("id = 1 OR (id >= 10 AND id < 20)")
    return table


def vectors(table: Table) -> int:
    kinds = table.system_table("table_indexes").to_arrow()["index_type"].to_pylist()
    return kinds.count("DELETION_VECTORS")


def names(table: Table) -> set[str]:
    return set(table.system_table("files").to_arrow()["file_path"].to_pylist())


@pytest.mark.parametrize("bucket", ["-1", "1"])
def test_files_with_vectors_are_rewritten_without_key(tmp_path, bucket):
    more = {"bucket-key": "id"} if bucket == "1" else {}
    table = with_vectors(tmp_path / "t", bucket=bucket, **more)
    before, files = rows_of(table.to_arrow()), names(table)
    assert vectors(table) > 0
    result = table.maintenance.materialize_deletion_vectors()
    assert result.commit_kind == "COMPACT"
    assert (rows_of(table.to_arrow()), vectors(table)) == (before, 0)
    assert len(names(table) & files) == 1  # the file without deleted rows
    assert result.total_record_count == len(before)
    assert table.verify(deep=True).sound
    assert table.maintenance.materialize_deletion_vectors() is None


def test_buckets_with_vectors_are_compacted_with_key(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"deletion-vectors.enabled": "true"})
    table.write(orders(*((i, "v", i) for i in range(5000))))
    table.compact(full=True)
    table.write(orders((7, "w", 7)))
    before = rows_of(table.to_arrow())
    assert vectors(table) > 0
    table.maintenance.materialize_deletion_vectors()
    assert (rows_of(table.to_arrow()), vectors(table)) == (before, 0)
    assert table.verify(deep=True).sound


def test_tables_without_vectors_and_without_rows(tmp_path):
    assert append_table(tmp_path / "a").maintenance.materialize_deletion_vectors() is None
    plain = keyed_table(tmp_path / "k")
    plain.write(orders((1, "a", 1)))
    assert plain.maintenance.materialize_deletion_vectors() is None
    with pytest.raises(InvalidInputError, match="'n' is no partition column"):
        plain.maintenance.materialize_deletion_vectors(filter="n = 1")
