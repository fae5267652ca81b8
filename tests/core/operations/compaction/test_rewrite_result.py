"""RewriteResult: the files and bytes of a compaction or a rescale, before and after."""

import pytest

from paimon_core import CompactionRequest, RescaleRequest, Table
from paimon_core.metrics import CommitMetrics, collect
from paimon_core.operations.compaction.rewrite_result import RewrittenFiles, measure_rewrite
from tests.support.tables import append_table, keyed_table, orders


def data_files(table: Table) -> list[tuple[str, int, int]]:
    """Return name, bytes and rows of the data files of the newest snapshot."""
    files = {f.file_name: f for split in table.scan().plan().splits for f in split.files}
    return [(name, file.file_size, file.row_count) for name, file in sorted(files.items())]


def totals(files) -> tuple[int, int, int]:
    return len(files), sum(size for _, size, _ in files), sum(rows for _, _, rows in files)


@pytest.mark.parametrize("make", [append_table, keyed_table])
def test_compaction_returns_files_bytes_and_rows(tmp_path, make):
    table = make(tmp_path / "t", **({"bucket": "1"} if make is keyed_table else {}))
    for number in range(3):
        table.write(orders((number, "v", number), (9, "w", number)))
    before = data_files(table)
    result = table.maintenance.run(CompactionRequest(full=True))
    assert result.snapshot == table.snapshot()
    assert result.rewritten == RewrittenFiles(*totals(before), *totals(data_files(table)))
    assert repr(result).startswith(f"RewriteResult(snapshot {result.snapshot.id}, 3 files, ")
    assert result.seconds > 0
    again = table.maintenance.run(CompactionRequest(full=True))
    assert (again.snapshot, again.rewritten) == (None, RewrittenFiles())
    assert repr(again).startswith("RewriteResult(nothing to do, ")


def test_rescale_counts_intermediate_files_on_neither_side(tmp_path):
    """With a lookup changelog, a compaction runs before the overwrite, and its files are replaced at once."""
    table = keyed_table(tmp_path / "t", bucket="1", **{"changelog-producer": "lookup", "write-only": "true"})
    for number in range(2):
        table.write(orders((number, "v", number), (9, "w", number)))
    stored = table.system_table("files").to_arrow().to_pylist()
    result = table.maintenance.run(RescaleRequest(buckets=2))
    assert result.rewritten.files_before == len(stored) == 2
    assert result.rewritten.bytes_before == sum(row["file_size_in_bytes"] for row in stored)
    now = Table.open(table.path)
    assert (result.rewritten.files_after, result.rewritten.bytes_after) == totals(data_files(now))[:2]


def test_expired_snapshots_leave_files_unknown(tmp_path):
    table = append_table(tmp_path / "t")

    def run():
        table.write(orders((1, "v", 1)))
        table.write(orders((2, "v", 2)))
        table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
        return table.snapshot()

    assert measure_rewrite(table.store, run).rewritten is None


def test_only_commits_are_collected(tmp_path):
    table = append_table(tmp_path / "t")
    with collect() as everything, collect(only=CommitMetrics) as commits:
        table.write(orders((1, "v", 1)))
        table.to_arrow()
    assert [type(event) for event in commits.events] == [CommitMetrics]
    assert len(everything.events) > 1
