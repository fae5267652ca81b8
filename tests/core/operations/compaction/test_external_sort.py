import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.operations.compaction.cluster_key import ClusterKey
from paimon_core.operations.compaction.external_sort import SAMPLE_ROWS, SortLimits, sample_rows, sort_stream
from paimon_core.options.option import Options
from tests.support.draws import draws

KEY = ClusterKey("order", ("a", "b"))


def pieces_of(rows, size):
    return [rows.slice(at, size) for at in range(0, rows.num_rows, size)]


def sort(rows, limits, size=50):
    ordered = sort_stream(pieces_of(rows, size), rows.num_rows, KEY, lambda: sample_rows([rows], rows.num_rows), limits)
    return pa.concat_tables([rows.schema.empty_table(), *ordered])


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 20), st.sampled_from(["", "x", "yy"])), max_size=300),
    st.integers(1, 4000),
    st.integers(1, 9),
    st.sampled_from([None, "zstd", "lz4"]),
)
@draws(60)
def test_equals_a_stable_sort(found, memory, files, codec):
    rows = pa.table(
        {
            "a": pa.array([a for a, _ in found], pa.int64()),
            "b": pa.array([b for _, b in found], pa.string()),
            "at": pa.array(range(len(found)), pa.int64()),
        }
    )
    limits = SortLimits(memory, files, pa.Codec(codec) if codec else None)
    expected = rows.to_pylist()
    expected.sort(key=lambda row: (row["a"] is not None, row["a"] or 0, row["b"]))
    assert sort(rows, limits).to_pylist() == expected


@pytest.mark.parametrize("values", [np.zeros(20_000, np.int64), np.arange(20_000) // 19_000], ids=["one", "skewed"])
def test_any_number_of_equal_keys(values):
    rows = pa.table({"a": values, "b": ["x"] * len(values), "at": np.arange(len(values))})
    assert sort(rows, SortLimits(1 << 12, 5), 1000).equals(rows)


def test_spilled_rows_are_deleted_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = pa.table({"a": np.random.default_rng(0).integers(0, 1000, 10_000), "b": ["x"] * 10_000})

    def stream(limit):
        return sort_stream(pieces_of(rows, 100), rows.num_rows, KEY, lambda: rows, SortLimits(limit, 7))

    ordered = stream(1 << 14)
    next(ordered)
    assert list(Path(tmp_path).iterdir())
    ordered.close()
    assert not list(Path(tmp_path).iterdir())
    assert sum(piece.num_rows for piece in stream(1 << 14)) == 10_000
    assert not list(Path(tmp_path).iterdir())
    next(stream(1 << 30))
    assert not list(Path(tmp_path).iterdir())


def test_sample_is_bounded_and_spread():
    many = pa.table({"a": np.arange(4 * SAMPLE_ROWS)})
    sampled = sample_rows(pieces_of(many, 1000), many.num_rows)
    assert abs(sampled.num_rows - SAMPLE_ROWS) < SAMPLE_ROWS // 10
    assert abs(np.median(sampled.column("a").to_numpy()) - 2 * SAMPLE_ROWS) < SAMPLE_ROWS // 10
    long = pa.table({"a": ["x" * (1 << 20)] * 40})
    assert sample_rows([long] * 8, 320).nbytes <= 65 << 20


def test_limits_come_from_options():
    limits = SortLimits.of(Options({"write-buffer-size": "64 mb", "local-sort.max-num-file-handles": "9"}))
    assert (limits.bytes, limits.files, limits.codec.name) == (16 << 20, 9, "lz4")
    assert SortLimits.of(Options({"spill-compression": "none"})).codec is None
