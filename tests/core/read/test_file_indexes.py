"""Indexes exclude files and rows that cannot match, and never a row that matches."""

import random

import pyarrow as pa
import pytest

import paimon_core
from paimon_core.errors import CorruptedError
from paimon_core.scan.entries import live_entries

KINDS = {
    "bloom-filter": {"file-index.bloom-filter.columns": "k,s", "file-index.bloom-filter.k.items": "100",
                     "file-index.bloom-filter.s.items": "100"},
    "bitmap": {"file-index.bitmap.columns": "k,s,n"},
    "bsi": {"file-index.bsi.columns": "k,n"},
    "range-bitmap": {"file-index.range-bitmap.columns": "k,s,n"},
}  # fmt: skip
NO_STATS = {"metadata.stats-mode": "none", "file.format": "parquet"}
BESIDE = {"file-index.in-manifest-threshold": "1 b"}
EMBEDDED = {"file-index.in-manifest-threshold": "1 mb"}
FIELDS = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), ("s", pa.string()), ("n", pa.int32()), ("p", pa.string())]
)
FILTERS = (
    "k = 7", "k = 7000", "s = 'x3'", "s IN ('x3', 'none')", "n IS NULL", "n = 4 AND s = 'x1'", "n = 4 OR s = 'x1'",
    "n > 6 AND k < 20", "NOT (n = 4)", "s <> 'x1' AND n IN (1, 2)", "p = 'a' AND n = 3", "s LIKE 'x1%' AND n = 5",
)  # fmt: skip


def made(tmp_path, options, keys=(), name="t"):
    options = {**({"bucket": "1"} if keys else {}), **NO_STATS, **options}
    return paimon_core.Table.create(str(tmp_path / name), paimon_core.Schema(FIELDS, keys, options=options))


def rows(rng, numbers):
    return pa.table(
        {
            "k": numbers,
            "s": [rng.choice([None, f"x{n % 12}"]) for n in numbers],
            "n": [rng.choice([None, n % 9]) for n in numbers],
            "p": [rng.choice("ab") for _ in numbers],
        },
        FIELDS,
    )


def read(table, text):
    return sorted(map(str, table.to_arrow(filter=text).to_pylist()))


def plain(table):
    return table.with_options({"file-index.read.enabled": "false"})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [BESIDE, EMBEDDED], ids=["beside", "embedded"])
@pytest.mark.parametrize("keys", [(), ("k",)], ids=["append", "keys"])
@pytest.mark.cases(5)
def test_filters_find_same_rows_with_indexes(tmp_path, kind, place, keys):
    rng = random.Random(f"{kind}{keys}")
    table = made(tmp_path, {**KINDS[kind], **place, "write-only": "true"}, keys)
    for turn in range(5):
        table.write(rows(rng, sorted(rng.sample(range(60), 25))))
        if turn == 2:
            table.with_options({"write-only": "false"}).compact(full=True)
    for text in FILTERS:
        assert read(table, text) == read(plain(table), text), text
    table.with_options({"write-only": "false"}).compact(full=True)
    for text in FILTERS:
        assert read(table, text) == read(plain(table), text), text


def test_index_pruning_keeps_older_row_version_hidden(tmp_path):
    table = made(tmp_path, {**KINDS["bitmap"], **EMBEDDED, "write-only": "true"}, ("k",))
    table.write(pa.table({"k": [1, 2], "s": ["old", "b"], "n": [1, 1], "p": ["a", "a"]}, FIELDS))
    table.write(pa.table({"k": [1], "s": ["new"], "n": [2], "p": ["a"]}, FIELDS))
    assert table.to_arrow(filter="s = 'old'").num_rows == 0
    assert table.to_arrow(filter="s = 'b'").num_rows == 1


def test_embedded_index_prunes_files_in_planning(tmp_path):
    table = made(tmp_path, {**KINDS["bitmap"], **EMBEDDED})
    for n in range(4):
        table.write(rows(random.Random(n), list(range(100 * n, 100 * n + 10))))
    plan = table.scan(filter="k = 203").plan()
    assert (plan.files_in_partitions, plan.files, plan.files_skipped_by_index) == (4, 1, 3)
    assert [(step.name, step.before, step.after) for step in plan.steps][-1] == ("index", 4, 1)
    assert plain(table).scan(filter="k = 203").plan().files == 4


def test_index_file_prunes_data_file(tmp_path):
    table = made(tmp_path, {**KINDS["bloom-filter"], **BESIDE})
    table.write(rows(random.Random(1), list(range(10))))
    (entry,) = live_entries(table.store, table.snapshot()).live
    table.store.io.delete(table.store.file_path(entry.bucket_ref, entry.file))
    assert table.to_arrow(filter="k = 7000").num_rows == 0
    with pytest.raises(CorruptedError, match=r"data file .* is missing"):
        table.to_arrow(filter="k = 7")


@pytest.mark.parametrize("marked", [False, True], ids=["plain", "deletion-vectors"])
def test_index_positions_span_row_groups(tmp_path, marked):
    options = {**KINDS["bitmap"], **BESIDE, "file.block-size": "1 kb", "deletion-vectors.enabled": str(marked).lower()}
    table = made(tmp_path, options)
    table.write(rows(random.Random(3), list(range(5000))))
    if marked:
        table.delete("k = 4000 OR n = 2")
    assert table.to_arrow(filter="k IN (17, 4000, 4999)")["k"].to_pylist() == (
        [17, 4999] if marked else [17, 4000, 4999]
    )
    for text in FILTERS:
        assert read(table, text) == read(plain(table), text), text


def test_index_uses_columns_of_its_file(tmp_path):
    table = made(tmp_path, {**KINDS["bitmap"], **EMBEDDED})
    table.write(pa.table({"k": [1, 2], "s": ["a", "b"], "n": [1, 2], "p": ["a", "a"]}, FIELDS))
    table = table.alter([paimon_core.RenameColumn(("s",), "t"), paimon_core.RenameColumn(("p",), "s")])
    assert table.to_arrow(filter="t = 'a'")["k"].to_pylist() == [1]
    assert table.to_arrow(filter="s = 'a'")["k"].to_pylist() == [1, 2]
    assert table.to_arrow(filter="s = 'b'").num_rows == 0


@pytest.mark.parametrize("place", [BESIDE, EMBEDDED], ids=["beside", "embedded"])
def test_corrupt_index_error_names_index_and_option(tmp_path, place):
    table = made(tmp_path, {**KINDS["bitmap"], **place})
    table.write(rows(random.Random(1), list(range(10))))
    (entry,) = live_entries(table.store, table.snapshot()).live
    paths = table.store.deletable_paths(entry.bucket_ref, entry.file)
    if place is BESIDE:
        table.store.io.write(paths[1], table.store.io.read(paths[1])[:-20])
        with pytest.raises(CorruptedError, match=rf"{paths[1]}.*file-index.read.enabled"):
            table.to_arrow(filter="n = 5")
        table.store.io.delete(paths[1])
        with pytest.raises(CorruptedError, match=rf"{paths[1]} is missing.*file-index.read.enabled"):
            table.to_arrow(filter="n = 5")
    assert plain(table).to_arrow(filter="k = 5").num_rows == 1
    assert table.to_arrow().num_rows == 10
