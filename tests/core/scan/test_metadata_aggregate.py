"""COUNT, MIN and MAX from metadata equal the result of a read, or there is no result."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from paimon_core import Schema, Table
from paimon_core.scan.metadata_aggregate import Function, aggregate
from paimon_core.schema.change import AddColumn, UpdateType
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import BIGINT, INT, DataField
from paimon_core.types.parse import parse_type
from tests.support.tables import append_table, orders

ROWS = pa.schema(
    [pa.field("k", pa.int64(), False), ("n", pa.int32()), ("d", pa.date32()), ("s", pa.string()), ("p", pa.string())]
)
KEYED = pa.schema([field if field.name != "p" else pa.field("p", pa.string(), False) for field in ROWS])
VECTORS = {"deletion-vectors.enabled": "true"}
EVOLVED = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
TABLES = {
    "append": {},
    "deletion vectors": VECTORS,
    "tracked": {"row-tracking.enabled": "true"},
    "evolved": EVOLVED,
    "evolved with vectors": {**EVOLVED, **VECTORS},
    "keyed": {"bucket": "2"},
    "keyed with vectors": {**VECTORS, "bucket": "2"},
    "partial update": {"bucket": "1", "merge-engine": "partial-update"},
}
FUNCTIONS = [
    Function("count"), Function("count", "k"), Function("count", "n"), Function("count", "p"), Function("min", "k"),
    Function("max", "n"), Function("min", "d"), Function("max", "p"), Function("min", "p"),
]  # fmt: skip
COUNTED = [[Function("count")], [Function("count", "k")], [Function("min", "p")]]
"""Functions that row counts and partitions alone determine, so that rows of unkeyed tables are never read for them."""
FILTERS = (None, "p = 'a'", "p IS NULL OR p > 'a'", "p = 'nowhere'")


def rows_of(keys, partitions, salt):
    columns = [
        keys,
        [None if (k + salt) % 3 == 0 else k * salt for k in keys],
        [None if k % 4 == 0 else dt.date(2020, 1, 1) + dt.timedelta(k) for k in keys],
        [f"s{k}" for k in keys],
        [partitions[k % len(partitions)] for k in keys],
    ]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, ROWS, strict=True)], schema=ROWS)


def expected(rows: pa.Table, groups, functions):
    """Return the result from the rows, with groups in any order."""
    keys = sorted({tuple(r[g] for g in groups) for r in rows.to_pylist()}, key=str) if groups else [()]
    result = []
    for key in keys:
        part = [r for r in rows.to_pylist() if tuple(r[g] for g in groups) == key]
        row = list(key)
        for f in functions:
            values = [r[f.column] for r in part if r[f.column] is not None] if f.column else part
            plain = [(v - dt.date(1970, 1, 1)).days if isinstance(v, dt.date) else v for v in values]
            row.append(
                len(values) if f.name == "count" else None if not plain else {"min": min, "max": max}[f.name](plain)
            )
        result.append(tuple(row))
    return result


@pytest.mark.cases(4)
@examples(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("kind", TABLES)
def test_metadata_aggregates_equal_rows(tmp_path_factory, kind, data):
    keyed = kind.startswith(("keyed", "partial"))
    options = {**TABLES[kind], "commit.sync": "false"}
    keys = ["k", "p"] if keyed else []
    schema = Schema(KEYED if keyed else ROWS, primary_keys=keys, partition_keys=["p"], options=options)
    table = Table.create(str(tmp_path_factory.mktemp("t") / "t"), schema)
    partitions = ["b", "a", "c" if keyed else None]
    for salt in range(1, data.draw(st.integers(0, 3), "commits") + 1):
        drawn = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=12, unique=True))
        table.write(rows_of(drawn, partitions, salt).cast(table.arrow_schema))
    if data.draw(st.booleans(), "compacted"):
        table.compact(full=True)
    if kind.startswith("evolved"):
        stored = table.to_arrow(["_ROW_ID"]).column(0).to_pylist()
        for column in ("n", "s")[: data.draw(st.integers(0, 2), "replaced")] if stored else ():
            changed = pa.table({"_ROW_ID": stored[::2], column: [None] * len(stored[::2])})
            table.update_columns(changed.cast(pa.schema([("_ROW_ID", pa.int64()), ROWS.field(column)])))
    if kind.endswith("vectors") and not keyed and data.draw(st.booleans(), "deleted"):
        table.delete("k < 9")
    answers = 0
    reader = table.reader()

    def live_rows(plan):
        return [sum(batch.num_rows for batch in reader.to_batches(split)) for split in plan.splits]

    for text in FILTERS:
        scan, rows = table.scan(filter=text), table.to_arrow(filter=text)
        for groups in ([], ["p"]):
            for functions in ([f] for f in FUNCTIONS):
                for count in (None, live_rows):
                    got = aggregate(scan, groups, functions, count)
                    assert got is not None or keyed or functions not in COUNTED
                    if got is not None:
                        answers += 1
                        assert sorted(got, key=str) == sorted(expected(rows, groups, functions), key=str)
    assert answers or keyed


def test_bounds_of_superseded_rows_never_answer_aggregate(tmp_path):
    options = {"bucket": "1", "write-only": "true"}
    schema = Schema(KEYED, primary_keys=["k", "p"], partition_keys=["p"], options=options)
    table = Table.create(str(tmp_path / "t"), schema)
    for salt in (1, 5):
        table.write(rows_of([1, 2, 4], ["a"], salt).cast(table.arrow_schema))
    plans = []
    scan, count = table.scan(), lambda plan: plans.append(plan) or [3]
    for function in (Function("max", "n"), Function("min", "k"), Function("count", "n")):
        assert aggregate(scan, ["p"], [Function("count"), function], count) is None
    assert plans == []
    answered = [Function("count"), Function("count", "k"), Function("count", "p"), Function("max", "p")]
    assert aggregate(scan, ["p"], answered, count) == [("a", 3, 3, 3, "a")]
    assert aggregate(scan, ["p"], answered, lambda plan: [0]) == []
    assert aggregate(scan, [], answered, lambda plan: [0]) == [(0, 0, 0, None)]
    assert aggregate(scan, [], answered, lambda plan: None) is None
    assert aggregate(scan, [], answered) is None


def test_inexact_metadata_does_not_answer_aggregate(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, None, None)))
    scan = table.scan()
    assert aggregate(scan, [], [Function("min", "v")]) is None  # bounds of text may be cut
    assert aggregate(table.scan(filter="id = 1"), [], [Function("count")]) is None
    assert aggregate(scan, ["id"], [Function("count")]) is None
    assert aggregate(scan, [], [Function("count"), Function("count", "v"), Function("max", "n")]) == [(2, 1, 1)]


def test_min_max_without_statistics_reads_rows(tmp_path):
    table = append_table(tmp_path / "t")
    table = table.with_options({"metadata.stats-mode": "none"})
    table.write(orders((1, "a", 1)))
    assert aggregate(table.scan(), [], [Function("max", "n")]) is None
    assert aggregate(table.scan(), [], [Function("count")]) == [(1,)]


def test_aggregates_of_altered_columns(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", 5)))
    table = table.alter([AddColumn("later", INT)])
    table = Table.open(table.path)
    assert aggregate(table.scan(), [], [Function("count", "later"), Function("max", "later")]) == [(0, None)]
    Table.open(table.path).alter([UpdateType("n", BIGINT)])
    table = Table.open(table.path)
    assert aggregate(table.scan(), [], [Function("max", "n")]) is None
    assert aggregate(table.scan(), [], [Function("count", "n")]) == [(2,)]


@pytest.mark.parametrize(
    ("stored", "read", "answer"),
    [("DECIMAL(9, 2)", "DECIMAL(4, 2)", None), ("INT", "DECIMAL(3, 0)", None), ("INT", "BIGINT", [(3,)])],
)
def test_count_excludes_values_that_cast_to_null(tmp_path, stored, read, answer):
    """123.45 does not fit DECIMAL(4, 2) and is read as null, which the stored null count does not include."""
    kind = parse_type(stored)
    table = Table.create(str(tmp_path / "t"), Schema([DataField(0, "v", kind)]))
    numbers = [12345, 1, 2, None] if kind.root == "INT" else [Decimal("123.45"), Decimal(1), Decimal(2), None]
    table.write(pa.table({"v": pa.array(numbers, to_arrow(kind))}))
    table.alter([UpdateType("v", read)])
    table = Table.open(table.path)
    values = table.to_arrow().column("v")
    assert len(values) - values.null_count == (2 if answer is None else 3)
    assert aggregate(table.scan(), [], [Function("count", "v")]) == answer


def test_empty_table_has_one_row_without_groups(tmp_path):
    scan = append_table(tmp_path / "t").scan()
    assert aggregate(scan, [], [Function("count"), Function("max", "n")]) == [(0, None)]


def test_limit_with_partition_filter_ends_planning(tmp_path):
    schema = pa.schema([("k", pa.int64()), ("p", pa.int32())])
    options = {"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], options=options))
    for n in range(6):
        table.write(pa.table([[n], [n % 2]], schema=schema))
    assert len(table.scan(filter="p = 1", limit=2).plan().splits) == 2
    assert len(table.scan(filter="p = 1 AND k > 0", limit=2).plan().splits) == 3
    assert pc.unique(table.to_arrow(filter="p = 1", limit=2)["p"]).to_pylist() == [1]


def test_row_ranges_are_counted_from_metadata_of_any_snapshot(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("b", pa.large_binary())])
    options = {**EVOLVED, **VECTORS, "blob-field": "b"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, options=options))
    table.write(pa.table({"id": range(6), "v": ["x"] * 6, "b": [b"b"] * 6}, schema))
    table.update_columns(pa.table({"_ROW_ID": [1, 4], "v": ["y", "z"]}))
    table.delete("id IN (1, 2)")
    table.update_columns(pa.table({"_ROW_ID": [0], "id": [60]}))
    table.delete("id = 60")
    for path in Path(table.path).rglob("data-*"):
        path.write_bytes(b"unreadable")
    for snapshot, rows in ((1, 6), (2, 6), (3, 4), (4, 4), (5, 3)):
        assert aggregate(table.scan(snapshot_id=snapshot), (), [Function("count")]) == [(rows,)]
    assert table.to_arrow([]).num_rows == 3
    for name, unknown in (("count", "v"), ("min", "id")):
        assert aggregate(table.scan(), (), [Function(name, unknown)]) is None
