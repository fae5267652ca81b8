"""Batches for Spark: the same rows, small batches joined, no batch too large."""

import pyarrow as pa
import pytest

from paimon_spark import reader
from paimon_spark.reader import resized


@pytest.mark.parametrize("exact_above", [-1, 64 << 10])
@pytest.mark.parametrize("sizes", [[], [5], [3, 4, 3], [20, 1, 1, 25], [1] * 40, [10, 0, 11]])
def test_batches_keep_all_rows_and_most_rows(monkeypatch, sizes, exact_above):
    monkeypatch.setattr(reader, "_EXACT_ABOVE", exact_above)
    numbers = iter(range(10_000))
    batches = [pa.record_batch({"v": pa.array([next(numbers) for _ in range(n)], pa.int64())}) for n in sizes]
    actual = list(resized(batches, 10))
    assert [v for batch in actual for v in batch["v"].to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows <= 10 for batch in actual)
    if sizes == [1] * 40:
        assert len(actual) == 4


def test_slices_of_large_batch_count_as_bytes_they_use():
    large = pa.record_batch({"v": pa.array(range(1 << 18), pa.int64())})
    slices = [large.slice(i * 10, 10) for i in range(1000)]
    (joined,) = resized(slices, 1 << 20)
    assert joined.equals(large.slice(0, 10_000))
    wide = pa.record_batch({"s": pa.array(["x" * (1 << 20)] * 40)})
    assert [batch.num_rows for batch in resized(iter([wide]), 1000)] == [15, 15, 10]
