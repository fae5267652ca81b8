"""System tables of files return the same rows from columns of entries as from entries."""

from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pytest

from paimon_core import Schema, SystemTable, Table
from paimon_core.inspect.advice.live_files import read_files
from paimon_core.inspect.system_tables import groups
from paimon_core.inspect.system_tables.groups import grouped
from paimon_core.manifest import decode, manifests
from paimon_core.manifest.entry import ADD, DELETE
from paimon_core.manifest.stats import SimpleStats
from paimon_core.scan import entries
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn
from paimon_core.store.layout import POSTPONE_BUCKET
from paimon_core.types.datatype import BIGINT
from tests.support.manifests import entry

COLUMNS = pa.schema([("p", pa.string()), ("k", pa.int64()), ("v", pa.string())])
_COUNT = 36


def _without_counts(stats):
    return SimpleStats(stats.min_values, stats.max_values, (None, *stats.null_counts[1:]))


CHANGES = {
    "equal files": lambda file, i: file,
    "another schema": lambda file, i: replace(file, schema_id=1 if i > 30 else 0),
    "unknown values": lambda file, i: replace(
        file, creation_time=None, delete_row_count=None if i % 2 else i, file_source=None if i % 3 else 1
    ),
    "external path": lambda file, i: replace(file, external_path=f"/elsewhere/{file.file_name}" if i == 7 else None),
    "other statistics": lambda file, i: replace(file, value_stats_cols=("v",) if i > 20 else None),
    "unknown null count": lambda file, i: replace(file, value_stats=_without_counts(file.value_stats)),
    "written columns": lambda file, i: replace(file, write_cols=("p", "k", "v"), first_row_id=i * 10),
    "no key": lambda file, i: replace(file, min_key=bytes(12), max_key=bytes(12)),
    "other names": lambda file, i: replace(file, file_name=f"{i}.csv.gz", level=i % 4),
}
GROUPED = ("equal files", "unknown values", "other names")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    options = {"bucket": "2", "write-only": "true"}
    schema = Schema(COLUMNS, primary_keys=["p", "k"], partition_keys=["p"], options=options)
    table = Table.create(str(tmp_path_factory.mktemp("files") / "t"), schema)
    table.write(pa.table([["a", "a", "a long partition"], [1, 2, 3], ["x", None, "y"]], schema=COLUMNS))
    table.alter([AddColumn("w", BIGINT)])
    table = Table.open(table.path)
    return table, live_entries(table.store, table.snapshot()).live


def _with_files(table, live, change):
    """Return the snapshot with manifests of many changed files; some of them are deleted later."""
    added = [
        replace(e, file=change(replace(e.file, file_name=f"data-{i}-{n}.parquet"), i))
        for n, e in enumerate(live)
        for i in range(_COUNT)
    ]
    lines = [added, [replace(added[3], kind=DELETE)], [replace(added[3], kind=ADD)]]
    store = table.store.manifests
    base, size = store.write_list([meta for part in lines for meta in store.write(part)])
    delta, delta_size = store.write_list([])
    return replace(
        table.snapshot(),
        base_manifest_list=base,
        base_manifest_list_size=size,
        delta_manifest_list=delta,
        delta_manifest_list_size=delta_size,
    )


@pytest.mark.cases(8)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        *(("files", change) for change in CHANGES.values()),
        ("file_key_ranges", CHANGES["no key"]),
        *((name, CHANGES[change]) for name in ("partitions", "buckets") for change in GROUPED),
    ],
    ids=[*CHANGES, "key ranges", *(f"{name}, {change}" for name in ("partitions", "buckets") for change in GROUPED)],
)
def test_columns_of_entries_return_rows_of_entries(written, monkeypatch, name, change):
    table, live_files = written
    monkeypatch.setattr(manifests, "_BLOCK_RECORDS", 4)
    snapshot = _with_files(table, live_files, change)
    table.store.io.write(table.store.snapshots.path(snapshot.id), snapshot.to_json())
    monkeypatch.setattr(decode, "_BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr(decode, "_MIN_BLOCKS", 1)
    monkeypatch.setattr(decode, "_MIN_ENTRIES", 0)
    rows = SystemTable.open(f"{table.path}${name}")
    filters = {"partitions": "partition = 'p=a'", "buckets": "bucket = 1 and partition = '{a}'"}
    filters = [filters.get(name, "bucket = 1 and level = 0")]
    reads = [{}, *({"filter": f} for f in filters), *({"columns": [f.name]} for f in rows.schema.fields)]
    expected = [_sorted(rows.to_arrow(**read)) for read in reads]
    monkeypatch.setattr(manifests, "MAX_ENTRIES", 0)
    parts = []
    live = entries._live
    monkeypatch.setattr(entries, "_live", lambda *a: (parts.append(type(b)) or b for b in live(*a)))
    different = [read for read, rows_ in zip(reads, expected, strict=True) if _sorted(rows.to_arrow(**read)) != rows_]
    assert not different
    assert entries.EntryColumns in parts


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "no key"])
def test_advice_counts_same_files_from_columns(written, monkeypatch, name):
    table, live_files = written
    monkeypatch.setattr(manifests, "_BLOCK_RECORDS", 4)
    monkeypatch.setattr(decode, "_BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr(decode, "_MIN_BLOCKS", 1)
    monkeypatch.setattr(decode, "_MIN_ENTRIES", 0)
    snapshot = _with_files(table, [*live_files, replace(live_files[0], bucket=POSTPONE_BUCKET)], CHANGES[name])
    expected = read_files(table.store, snapshot)
    monkeypatch.setattr(manifests, "MAX_ENTRIES", 0)
    found = read_files(table.store, snapshot)
    assert (found.postponed_files, found.buckets, found.names) == (_COUNT, expected.buckets, expected.names)
    numbers = [f.name for f in fields(found) if f.name not in ("buckets", "names")]
    assert [n for n in numbers if not np.array_equal(getattr(found, n), getattr(expected, n))] == []


def test_sums_of_many_parts_equal_sums_of_one(monkeypatch):
    """Sums are added up in between, when there are more of them than groups."""
    entries_ = [replace(entry(), partition=bytes([i % 3]), bucket=i % 5) for i in range(60)]
    entries_ = [
        replace(e, file=replace(e.file, row_count=i, creation_time=i % 7 or None)) for i, e in enumerate(entries_)
    ]
    whole = [grouped([entries_], by_bucket=by_bucket) for by_bucket in (False, True)]
    monkeypatch.setattr(groups, "_PENDING", 4)
    parts = [entries_[i : i + 2] for i in range(0, 60, 2)]
    assert [grouped(parts, by_bucket=by_bucket) for by_bucket in (False, True)] == whole
    assert whole[0]["rows"].to_pylist() == [sum(range(i, 60, 3)) for i in range(3)]
    assert whole[1].num_rows == 15


def _sorted(table):
    """Return the rows in one order: files of several layouts are in the order of their layouts."""
    return sorted(map(repr, table.to_pylist()))
