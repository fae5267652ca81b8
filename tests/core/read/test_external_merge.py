"""Runs on local disk: where they are cut, and merges in several passes that change no row."""

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.merge.deduplicate import deduplicate
from paimon_core.merge.kway import MergeOrder
from paimon_core.options.option import Options
from paimon_core.read.external_merge import SpilledRun, cuts_at, merge_from_disk, multi_pass_merge, spill_codec


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
