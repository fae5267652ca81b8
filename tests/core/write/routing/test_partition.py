"""Partitions of the rows of a batch."""

import pyarrow as pa

from paimon_core.row.binary_row import EMPTY_ROW, deserialize
from paimon_core.write.routing.partition import partition_codes


def partitions(rows, *keys):
    codes, found = partition_codes(rows, keys)
    schema = pa.schema([rows.schema.field(key) for key in keys])
    values = [tuple(deserialize(one, schema)) for one in found]
    assert len(set(values)) == len(values)
    return [values[code] for code in codes]


def test_table_without_partition_columns_has_one_partition():
    codes, actual = partition_codes(pa.record_batch({"a": [1, 2]}), ())
    assert (codes.tolist(), actual) == ([0, 0], [EMPTY_ROW])


def test_each_distinct_row_of_columns_is_partition():
    rows = pa.record_batch({"a": [1, 1, 2, 1], "b": ["x", "y", "x", "x"]})
    assert partitions(rows, "a", "b") == [(1, "x"), (1, "y"), (2, "x"), (1, "x")]


def test_null_empty_and_blank_texts_are_three_partitions():
    rows = pa.record_batch({"a": pa.array([None, "", " ", None])})
    assert partitions(rows, "a") == [(None,), ("",), (" ",), (None,)]


def test_both_zeros_are_partitions_of_their_own():
    rows = pa.record_batch({"a": [0.0, -0.0, 0.0]})
    codes, actual = partition_codes(rows, ("a",))
    assert len(actual) == 2
    assert codes[0] == codes[2] != codes[1]
