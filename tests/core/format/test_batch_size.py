"""The number of rows of a batch of a Parquet file: few rows are not decoded to measure them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.format import batch_size
from paimon_core.format.batch_size import parquet_row_bytes

LIMIT = 1 << 20


def parquet(columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return pq.ParquetFile(pa.BufferReader(sink.getvalue()))


@pytest.mark.parametrize(
    ("columns", "measured"),
    [
        ({"n": [1] * 1000}, False),
        ({"n": [1] * 100, "s": ["text"] * 100}, False),
        ({"n": [1] * 1000, "s": ["repeated " * 100] * 1000}, True),
        ({"l": [[n] * 20 for n in range(5000)]}, True),
        ({"l": [[f"text {n}"] * 20 for n in range(5000)], "s": ["text"] * 5000}, True),
    ],
)
def test_columns_are_decoded_only_if_their_rows_may_exceed_limit(monkeypatch, columns, measured):
    decoded = []
    real = batch_size._measured
    monkeypatch.setattr(batch_size, "_measured", lambda *given: decoded.append(1) or real(*given))
    file = parquet(columns)
    row_bytes = parquet_row_bytes(file, [0], [*columns], LIMIT)
    assert bool(decoded) == measured
    assert row_bytes * file.metadata.num_rows >= 0.7 * file.read().nbytes
