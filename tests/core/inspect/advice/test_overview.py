"""The overview of a table: the files and bytes of its newest snapshot, and its advice."""

import pytest

from paimon_core.inspect.advice.advise import advise, overview
from tests.support.tables import append_table, keyed_table, orders


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (append_table, {}),
        (keyed_table, {"bucket": "2"}),
        (keyed_table, {"bucket": "-2"}),
        (keyed_table, {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}),
    ],
    ids=["append", "keyed", "postponed buckets", "hidden rows"],
)
def test_overview_counts_all_live_files(tmp_path, make, options):
    table = make(tmp_path / "t", **options)
    assert (overview(table.store).snapshot, overview(table.store).files, overview(table.store).bytes) == (None, 0, 0)
    for number in range(3):
        table.write(orders((number, "v", number), (9, "w", number)))
    files = table.system_table("files").to_arrow().to_pylist()
    measured = overview(table.store)
    assert (measured.files, measured.bytes) == (len(files), sum(file["file_size_in_bytes"] for file in files))
    assert measured.snapshot == table.snapshot()
    assert measured.advice == advise(table.store)
