"""Plans of some partitions: decoders that skip entries return the plan of decoders that read all of them."""

import subprocess
import sys
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.manifest import manifests
from paimon_core.manifest.entry import ADD, DELETE
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind, split_by
from paimon_core.scan import entries
from paimon_core.scan.entries import PartitionFilter, live_entries, live_in_parts

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
            patch.setattr(manifests, "_DECODED", manifests.DecodedFiles(0))
            plan = table.scan(filter=text).plan()
            assert (plan.splits, plan.steps, plan.manifests_read) == (
                expected.splits,
                expected.steps,
                expected.manifests_read,
            )
            assert table.to_arrow(filter=text).to_pylist() == rows


def test_partition_filter_needs_no_statistics(tables, monkeypatch):
    requested = []
    from_scan = "paimon_core.scan.table_scan.live_entries"
    monkeypatch.setattr(from_scan, lambda *a, **k: requested.append(k["with_stats"]) or live_entries(*a, **k))
    for text in ("d > '2024-01-02'", "v = 3", "d > '2024-01-02' and v = 3"):
        tables[0].scan(filter=text).plan()
    tables[0].scan().plan()
    assert requested == [False, True, True, False]


@pytest.mark.parametrize("text", [text for text in FILTERS if "v" not in text])
def test_parts_of_partitions_leave_out_deleted_files(tables, monkeypatch, text):
    for table in tables:
        predicate = bind(parse_predicate(text), table.schema.fields)
        partition, _ = split_by(predicate, set(table.schema.partition_keys))
        store, base = table.store, table.snapshot()
        live = live_entries(store, base).live
        deleted = [replace(entry, kind=DELETE) for entry in live[::2]]
        again = [replace(entry, kind=ADD) for entry in deleted[::3]]
        lists = [store.manifests.write_list(store.manifests.write(lines)) for lines in (live + deleted, again)]
        (first, first_size), (second, second_size) = lists
        snapshot = replace(
            base,
            base_manifest_list=first,
            base_manifest_list_size=first_size,
            delta_manifest_list=second,
            delta_manifest_list_size=second_size,
        )
        expected = [*live[1::2], *again]
        if partition is not None:
            matching = PartitionFilter(partition, table.schema.partition_arrow).matching({e.partition for e in live})
            expected = [entry for entry in expected if entry.partition in matching]
        for most in (0, 20_000):
            monkeypatch.setattr(manifests, "MAX_ENTRIES", most)
            assert list(chain.from_iterable(live_in_parts(store, snapshot, partition=partition))) == expected


def test_plans_with_filters_do_not_import_pandas(tmp_path):
    """The import takes longer than the plan."""
    schema = Schema(pa.schema([("k", pa.int32()), ("id", pa.int64())]), ["k", "id"], ["k"], options={"bucket": "1"})
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(pa.table({"k": [7, 8], "id": [5, 5]}))
    code = """if True:
        import sys
        from paimon_core import Table
        table = Table.open(sys.argv[1])
        for text in "k = 7", "k in (7, 8)", "k > 7 and id = 5":
            print(len(table.scan(filter=text).plan().splits), "pandas" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code, table.path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False", "2", "False", "1", "False"]
