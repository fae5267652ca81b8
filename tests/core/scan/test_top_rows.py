"""The first rows of an order by statistics: none of these rows is ever pruned."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from paimon_core.predicate.expr import conjunction
from paimon_core.scan.top_rows import TopRows, first_rows
from paimon_core.schema.change import AddColumn, UpdateType
from paimon_core.types.datatype import BIGINT, INT
from tests.support.tables import append_table, keyed_table

VALUES = {
    "n": (pa.int32(), lambda i: i),
    "s": (pa.string(), lambda i: f"ä{i:04}" if i % 2 else f"z{i}" * 9),
    "d": (pa.date32(), lambda i: dt.date(2020, 1, 1) + dt.timedelta(i)),
    "t": (pa.timestamp("us"), lambda i: dt.datetime(2020, 1, 1) + dt.timedelta(microseconds=i)),
    "m": (pa.decimal128(9, 2), lambda i: Decimal(i) / 4),
    "f": (pa.float64(), lambda i: float("nan") if i == 7 else float(i)),
}
ROWS = pa.schema([pa.field("k", pa.int64(), False), *(pa.field(name, kind) for name, (kind, _) in VALUES.items())])


def rows_of(numbers, first=0):
    """Return a row for each number; None: a row of nulls."""
    made = {"k": range(first, first + len(numbers))}
    for name, (_, value) in VALUES.items():
        made[name] = [None if number is None else value(number) for number in numbers]
    return pa.table([pa.array(made[f.name], f.type) for f in ROWS], schema=ROWS)


def first(rows, wanted):
    """Return the values of the first rows, computed from all rows."""
    values = rows.column(wanted.column).to_pylist()
    key = (lambda v: v.encode()) if wanted.column == "s" else None
    present = sorted((v for v in values if v is not None), key=key, reverse=wanted.descending)
    nulls = [None] * (len(values) - len(present))
    return ([*nulls, *present] if wanted.nulls_first else [*present, *nulls])[: wanted.count]


def read(table, wanted):
    """Return the rows of a scan without files that cannot have first rows, and True if files were left out."""
    scan = table.scan()
    result = first_rows(scan, wanted)
    narrowed = replace(scan, predicate=conjunction([] if result is None else [result]))
    files = sum(len(split.files) for split in narrowed.plan().splits)
    batches = table.to_batches(filter=result)
    return pa.Table.from_batches(batches, ROWS), files < sum(len(split.files) for split in scan.plan().splits)


@examples(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    parts=st.lists(st.lists(st.none() | st.integers(0, 40), min_size=1, max_size=6), min_size=1, max_size=5),
    wanted=st.builds(
        TopRows, st.sampled_from(["n", "s", "d", "t", "m"]), st.integers(1, 12), st.booleans(), st.booleans()
    ),
)
def test_top_rows_are_never_pruned(tmp_path_factory, parts, wanted):
    table = append_table(tmp_path_factory.mktemp("top") / "t", ROWS)
    for part in parts:
        table.write(rows_of(part))
    rows, _ = read(table, wanted)
    assert first(rows, wanted) == first(table.to_arrow(), wanted)


@pytest.mark.parametrize("column", ["n", "s", "d", "t", "m"])
@pytest.mark.parametrize("descending", [False, True])
def test_files_beyond_top_rows_are_pruned(tmp_path, column, descending):
    table = append_table(tmp_path / "t", ROWS)
    for start in range(1, 80, 20):  # texts of odd numbers are in the order of the numbers
        table.write(rows_of(range(start, start + 20, 2)))
    expected = TopRows(column, 5, descending)
    rows, narrower = read(table, expected)
    assert narrower
    assert rows.num_rows == 10
    assert first(rows, expected) == first(table.to_arrow(), expected)


def test_top_rows_without_statistics_prune_nothing(tmp_path):
    table = append_table(tmp_path / "t", ROWS, **{"deletion-vectors.enabled": "true"})
    assert first_rows(table.scan(), TopRows("n", 1)) is None  # no snapshot
    table.write(rows_of(range(10)))
    table.write(rows_of(range(20, 30)))
    assert str(first_rows(table.scan(), TopRows("n", 10))) == "n <= 9"
    assert str(first_rows(table.scan(), TopRows("n", 10, nulls_first=True))) == "n IS NULL OR n <= 9"
    assert str(first_rows(table.scan(), TopRows("n", 11))) == "n <= 29"
    for expected in (TopRows("n", 21), TopRows("n", 0), TopRows("f", 1), TopRows("nothing", 1)):
        assert first_rows(table.scan(), expected) is None, expected
    assert first_rows(table.scan(filter="s > 'a'"), TopRows("n", 1)) is None  # rows that do not match are counted
    table.delete("n < 3")
    assert str(first_rows(table.scan(), TopRows("n", 7))) == "n <= 9"
    assert str(first_rows(table.scan(), TopRows("n", 8))) == "n <= 29"


def test_files_of_other_column_type_are_not_counted(tmp_path):
    table = append_table(tmp_path / "t", pa.schema([("n", pa.int32())]))
    table.write(pa.table({"n": pa.array(range(10), pa.int32())}))
    table.alter([UpdateType("n", BIGINT), AddColumn("x", INT)])
    table = type(table).open(table.path)
    assert first_rows(table.scan(), TopRows("n", 1)) is None
    assert first_rows(table.scan(), TopRows("x", 1)) is None
    table.write(pa.table({"n": [4, 5], "x": pa.array([1, None], pa.int32())}))
    assert str(first_rows(table.scan(), TopRows("n", 2))) == "n <= 5"
    assert str(first_rows(table.scan(), TopRows("x", 1))) == "`x` <= 1"


def test_rows_that_must_be_merged_are_not_counted(tmp_path):
    table = keyed_table(tmp_path / "t", ROWS, ("k",), bucket="1", **{"write-only": "true"})
    table.write(rows_of(range(10)))
    assert str(first_rows(table.scan(), TopRows("n", 10))) == "n <= 9"
    table.write(rows_of(range(30, 40)))
    assert first_rows(table.scan(), TopRows("n", 10)) is None
