"""Runs on local disk: where they are cut, and merges in several passes that change no row."""

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.memory import MemoryShares
from paimon_core.merge.deduplicate import deduplicate
from paimon_core.merge.kway import MergeOrder
from paimon_core.options.option import Options
from paimon_core.read.external_merge import (
    SpilledRun,
    cuts_at,
    merge_from_disk,
    multi_pass_merge,
    open_runs,
    spill_codec,
)


@pytest.mark.parametrize(
    ("starts", "rows", "parts"),
    [
        ([0, 1, 2, 3, 4, 5], 2, [(0, 2), (2, 4), (4, 6)]),
        ([0, 3], 2, [(0, 3), (3, 6)]),
        ([0, 5], 2, [(0, 5), (5, 6)]),
        ([0], 2, [(0, 6)]),
        ([0, 3], 100, [(0, 6)]),
    ],
)
def test_cuts_begin_at_allowed_rows(starts, rows, parts):
    assert list(cuts_at(np.array(starts), 6, rows)) == parts


def test_spilled_run_is_read_once(tmp_path):
    run = SpilledRun(tmp_path / "run.arrow", 64)
    run.put([pa.table({"a": [1, 2]})], None)
    run.put([pa.table({"a": [3]})], None)
    assert [row for batch in run(1) for row in batch.column("a").to_pylist()] == [1, 2, 3]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("columns", "batches", "open_at_once"), [(3, 24, 100), (2_000, 8, 4)])
def test_batches_of_thousands_of_columns_are_larger_than_their_objects(tmp_path, columns, batches, open_at_once):
    """A batch of eight rows of 2 000 columns would take more memory for its columns than for its values."""
    run = SpilledRun(tmp_path / "run.arrow", 1 << 16)
    rows = batches * ((1 << 16) // 24 if columns == 3 else 2_000 * 1_024 // 16_000)
    run.put([pa.table([np.arange(rows)] * columns, [f"c{i}" for i in range(columns)])], None)
    assert len(list(run(1))) == batches
    shares = MemoryShares(batches=8 << 20)
    assert open_runs(shares, 100, run.row_bytes) == open_at_once


def test_empty_run_has_no_file_to_read(tmp_path):
    run = SpilledRun(tmp_path / "run.arrow", 64)
    run.put([], None)
    assert list(run(1)) == []


@pytest.mark.parametrize(("name", "codec"), [("zstd", "zstd"), ("LZ4", "lz4"), ("none", None)])
def test_spill_codec_follows_options(name, codec):
    result = spill_codec(Options({"spill-compression": name}))
    assert (None if result is None else result.name) == codec


def stored_run(*rows):
    """Return a run of rows (key, sequence number, value)."""
    keys, numbers, values = zip(*rows, strict=True)
    batch = pa.record_batch(
        {"k": keys, "_SEQUENCE_NUMBER": numbers, "_VALUE_KIND": pa.array([0] * len(rows), pa.int8()), "v": values}
    )
    return lambda parallel_files: iter([batch])


RUNS = [
    stored_run((1, 0, "a"), (2, 1, "b")),
    stored_run((2, 2, "c")),
    stored_run((1, 3, "d"), (3, 4, "e")),
    stored_run((3, 5, "f")),
    stored_run((4, 6, "g")),
]
NEWEST = [(1, "d"), (2, "c"), (3, "f"), (4, "g")]
ORDER = MergeOrder(("k",))


def rows_of(tables):
    return [(row["k"], row["v"]) for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("at_once", [2, 3, 5])
def test_multi_pass_merge_equals_one_merge(at_once):
    assert rows_of(multi_pass_merge(RUNS, ORDER, deduplicate(), at_once, Options({}))) == NEWEST


def test_merge_from_disk_equals_one_merge():
    assert rows_of(merge_from_disk(RUNS, ORDER, deduplicate(), Options({}))) == NEWEST


def test_fewer_spilled_runs_are_open_if_rows_are_long():
    shares = MemoryShares(batches=1 << 20)
    assert [open_runs(shares, 128, size) for size in (1, 1 << 14, 1 << 16, 1 << 20, 1 << 30)] == [128, 128, 32, 2, 2]


def concatenated(window):
    """A merge function that depends on all rows of a key, in their order."""
    kept = window.take(window.starts)
    values = window.column("v").to_pylist()
    ends = [*window.starts[1:].tolist(), len(values)]
    joined = ["".join(values[low:high]) for low, high in zip(window.starts.tolist(), ends, strict=True)]
    return kept.set_column(kept.column_names.index("v"), "v", pa.array(joined))


@pytest.mark.parametrize(("fold", "group_fold"), [(deduplicate(), deduplicate()), (concatenated, None)])
@pytest.mark.parametrize("by_run", [False, True])
def test_long_rows_are_merged_from_disk_in_groups(monkeypatch, fold, group_fold, by_run):
    order = MergeOrder(("k",), by_run=by_run)
    whole = rows_of(merge_from_disk(RUNS, order, fold, Options({}), None, group_fold))
    monkeypatch.setattr(MemoryShares, "of", lambda options: MemoryShares(batches=1))
    opened = []
    original = SpilledRun.__call__
    monkeypatch.setattr(SpilledRun, "__call__", lambda run, count: opened.append(count) or original(run, count))
    assert rows_of(merge_from_disk(RUNS, order, fold, Options({}), None, group_fold)) == whole
    assert set(opened) == {2}
    assert whole == (NEWEST if group_fold else [(1, "ad"), (2, "bc"), (3, "ef"), (4, "g")])
