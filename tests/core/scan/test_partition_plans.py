"""Plans of some partitions: decoders that skip entries return the plan of decoders that read all of them."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.manifest import manifests
from paimon_core.scan import entries

COLUMNS = pa.schema([("d", pa.date32()), ("s", pa.string()), ("f", pa.float64()), ("v", pa.int64())])
FILTERS = [
    "d = '2024-01-02' and s = 'long text of a partition' and f = 0.0",
    "s = 'b' and d in ('2024-01-01', '2024-01-03')",
    "s = ''",
    "s is null",
    "d > '2024-01-02'",
    "f = 0.0",
    "f >= 1.5 and v = 3",
    "v = 3",
    "d = '2024-01-02' or s = 'b'",
    "s = 'none'",
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    root = tmp_path_factory.mktemp("plans")
    result = []
    for keys in (["d"], ["s"], ["d", "s"], ["s", "d", "f"]):
        schema = Schema(COLUMNS, partition_keys=keys, options={"write-only": "true"})
        table = Table.create(str(root / "_".join(keys)), schema)
        for turn in range(3):
            rows = [
                (19_723 + day, text, number, turn)
                for day in range(3)
                for text in ("", "b", "long text of a partition", None)
                for number in (0.0, -0.0, 1.5)
            ]
            values = zip(*rows, strict=True)
            table.write(pa.table([pa.array(v, f.type) for v, f in zip(values, COLUMNS, strict=True)], schema=COLUMNS))
        result.append(table)
    return result


@pytest.mark.parametrize("text", FILTERS)
def test_filtered_decoding_returns_same_plan(tables, monkeypatch, text):
    for table in tables:
        expected = table.scan(filter=text).plan()
        rows = table.to_arrow(filter=text).to_pylist()
        with monkeypatch.context() as patch:
            patch.setattr(entries, "_FEW_ENTRIES", 0)
            patch.setattr(manifests, "_DECODED", manifests.DecodedManifests(0))
            plan = table.scan(filter=text).plan()
            assert (plan.splits, plan.steps, plan.manifests_read) == (
                expected.splits,
                expected.steps,
                expected.manifests_read,
            )
            assert table.to_arrow(filter=text).to_pylist() == rows


def test_partition_filter_needs_no_statistics(tables, monkeypatch):
    requested = []
    live_entries = entries.live_entries
    from_scan = "paimon_core.scan.table_scan.live_entries"
    monkeypatch.setattr(from_scan, lambda *a, **k: requested.append(k["with_stats"]) or live_entries(*a, **k))
    for text in ("d > '2024-01-02'", "v = 3", "d > '2024-01-02' and v = 3"):
        tables[0].scan(filter=text).plan()
    tables[0].scan().plan()
    assert requested == [False, True, True, False]
