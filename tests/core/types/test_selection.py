"""Rows kept by a mask: the same as Arrow's own filter gives, for every type, with nulls and without, sliced too."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.types.selection import bits, filter_rows

COLUMNS = {
    pa.bool_(): [True, False],
    pa.int32(): [1, -7],
    pa.float64(): [0.5, float("inf")],
    pa.decimal128(20, 2): [Decimal("1.25"), Decimal(-3)],
    pa.timestamp("us"): [datetime.datetime(2020, 1, 1), datetime.datetime(1970, 1, 1)],
    pa.string(): ["", "wide \u20ac"],
    pa.binary(): [b"", b"\0x"],
    pa.list_(pa.int32()): [[1, None], []],
    pa.struct([("a", pa.int8())]): [{"a": 1}, {"a": None}],
    pa.dictionary(pa.int8(), pa.string()): ["a", "b"],
    pa.null(): [None, None],
}


@pytest.mark.parametrize("kind", COLUMNS, ids=str)
@pytest.mark.parametrize("nulls", [False, True])
def test_same_rows_as_arrows_filter(kind, nulls):
    rng = np.random.default_rng(7)
    values = [*COLUMNS[kind], None]
    drawn = pa.array([values[i] for i in rng.integers(0, 3 if nulls else 2, 300)], kind)
    for column in (drawn, drawn.slice(13, 200), pa.concat_arrays([pa.array([None], kind), drawn]).slice(1)):
        rows, mask = pa.record_batch([column], ["c"]), rng.random(len(column)) < 0.9
        assert bits(mask).to_pylist() == mask.tolist()
        for of in (rows, pa.concat_tables([pa.Table.from_batches([rows.slice(0, 90), rows.slice(90)])])):
            found = filter_rows(of, bits(mask))
            assert found.equals(of.filter(pa.array(mask)))
            found.validate(full=True)


def test_rows_of_no_column_are_counted():
    batch = pa.record_batch([pa.array([1, 2, 3])], ["c"]).select([])
    assert filter_rows(batch, bits(np.array([True, False, True]))).num_rows == 2


@pytest.mark.parametrize(
    "kind", [*COLUMNS, pa.map_(pa.string(), pa.int32()), pa.list_(pa.map_(pa.string(), pa.int8()))]
)
def test_no_row_of_a_column_without_chunks(kind):
    rows = pa.table({"c": pa.chunked_array([], kind)})
    assert filter_rows(rows, pa.array([], pa.bool_())).equals(rows)
