"""Batches for Spark: the same rows, small neighbours joined, none too large."""

import pyarrow as pa
import pytest

from paimon_spark import reader
from paimon_spark.reader import resized


@pytest.mark.parametrize("close_enough", [-1, 64 << 10])
@pytest.mark.parametrize("sizes", [[], [5], [3, 4, 3], [20, 1, 1, 25], [1] * 40, [10, 0, 11]])
def test_rows_stay_and_no_batch_has_more_than_asked(monkeypatch, sizes, close_enough):
    monkeypatch.setattr(reader, "_CLOSE_ENOUGH", close_enough)
    numbers = iter(range(10_000))
    batches = [pa.record_batch({"v": pa.array([next(numbers) for _ in range(n)], pa.int64())}) for n in sizes]
    made = list(resized(batches, 10))
    assert [v for batch in made for v in batch["v"].to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows <= 10 for batch in made)
    if sizes == [1] * 40:
        assert len(made) == 4


def test_pieces_of_a_large_batch_count_as_the_bytes_they_use():
    large = pa.record_batch({"v": pa.array(range(1 << 18), pa.int64())})
    pieces = [large.slice(i * 10, 10) for i in range(1000)]
    (made,) = resized(pieces, 1 << 20)
    assert made.equals(large.slice(0, 10_000))
    wide = pa.record_batch({"s": pa.array(["x" * (1 << 20)] * 40)})
    assert [batch.num_rows for batch in resized(iter([wide]), 1000)] == [15, 15, 10]
