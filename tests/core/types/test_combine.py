"""Tables joined to tables of a least size."""

import pyarrow as pa
import pytest

from paimon_core.types.combine import gathered


@pytest.mark.parametrize(("size", "lengths"), [(1, [2, 3, 1, 4]), (40, [5, 5]), (48, [6, 4]), (1000, [10])])
def test_tables_are_joined_in_order(size, lengths):
    rows, parts, start = pa.table({"n": range(10)}), [], 0
    for length in (2, 3, 1, 4):
        parts.append(rows.slice(start, length))
        start += length
    joined = list(gathered(iter(parts), size))
    assert [table.num_rows for table in joined] == lengths
    assert pa.concat_tables(joined).equals(rows)


def test_no_table_without_tables():
    assert list(gathered([], 10)) == []
