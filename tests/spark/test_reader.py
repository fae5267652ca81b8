"""A reader of batches as Spark's tasks use it, without a session."""

import datetime as dt
import gc
import operator
import pickle

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.options import read_request
from paimon_spark.reader import FilteringReader, PaimonReader, freeze_modules
from paimon_spark.types import spark_schema
from tests.support.far_timestamps import FAR, far_table
from tests.support.tables import append_table, orders


def test_modules_are_exempt_from_garbage_collection_once(tmp_path, monkeypatch):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    request = read_request({"path": table.path})
    reader = PaimonReader(table, request, spark_schema(table.schema.fields))
    (task,) = reader.partitions()
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    freeze_modules.cache_clear()
    for _ in range(2):
        batches = pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(task)))
        assert sum(batch.num_rows for batch in batches) == 1
    assert frozen == [True]


def _micros(value):
    return dt.datetime(2020, 1, 1) + dt.timedelta(microseconds=value)


COMPARISONS = {
    spark.EqualTo: operator.eq,
    spark.EqualNullSafe: operator.eq,
    spark.GreaterThan: operator.gt,
    spark.GreaterThanOrEqual: operator.ge,
    spark.LessThan: operator.lt,
    spark.LessThanOrEqual: operator.le,
}


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("kind", [*COMPARISONS, spark.In])
def test_filters_of_spark_see_microseconds_of_finer_timestamps(tmp_path, kind, negated):
    nanos = [*range(-2500, 2501, 500), None, 999, -1, 1001]
    start = 1_577_836_800_000_000_000  # 2020-01-01
    table = Table.create(str(tmp_path / "t"), Schema(pa.schema([("n", pa.int64()), ("ts", pa.timestamp("ns"))])))
    stamps = pa.array([None if n is None else start + n for n in nanos], pa.int64()).cast(pa.timestamp("ns"))
    table.write(pa.table({"n": nanos, "ts": stamps}))
    for shown in (-2, -1, 0, 1, 2):
        value = (_micros(shown), _micros(2)) if kind is spark.In else _micros(shown)
        reader = FilteringReader(table, read_request({"path": table.path}), spark_schema(table.schema.fields))
        filter_ = spark.Not(kind(("ts",), value)) if negated else kind(("ts",), value)
        assert list(reader.pushFilters([filter_])) == [filter_]
        found = [n for task in reader.partitions() for rows in reader.read(task) for n in rows["n"].to_pylist()]
        seen = {n: n // 1000 for n in nanos if n is not None}
        if kind is spark.In:
            wanted = {n for n, micros in seen.items() if (micros in (shown, 2)) != negated}
        else:
            wanted = {n for n, micros in seen.items() if COMPARISONS[kind](micros, shown) != negated}
        if kind is spark.EqualNullSafe and negated:
            wanted.add(None)
        assert (set(found), len(found)) == (wanted, len(wanted)), shown


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_timestamps_that_nanoseconds_cannot_hold_are_read_in_the_microseconds_of_spark(tmp_path, format_):
    table = far_table(tmp_path / "t", file_format=format_)
    source = PaimonDataSource({"path": table.path})
    reader = source.reader(source.schema())
    rows = [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    assert [row["ts"] for row in sorted(rows, key=lambda row: row["n"])] == FAR


@pytest.mark.parametrize("named", [False, True])
def test_a_reader_of_the_read_optimized_view_keeps_the_view(tmp_path, named):
    table = far_table(tmp_path / "d.db" / "t", keys="n", bucket="1", **{"write-only": "true"})
    place = {"warehouse": str(tmp_path), "table": "d.t$ro"} if named else {"path": table.path + "$ro"}
    source = PaimonDataSource(place)
    reader = source.reader(source.schema())
    assert [batch.num_rows for task in reader.partitions() for batch in reader.read(task)] == []
    source = PaimonDataSource({key: value.removesuffix("$ro") for key, value in place.items()})
    reader = source.reader(source.schema())
    assert sum(batch.num_rows for task in reader.partitions() for batch in reader.read(task)) == 4
