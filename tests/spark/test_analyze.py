"""ANALYZE on the cluster: the statistics describe the visible rows of the table."""

from datetime import datetime
from decimal import Decimal

import pytest

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.operations.analyze import ColumnStatistics, read_statistics
from paimon_core.table import Table
from paimon_spark import PaimonTable

COLUMNS = (
    "id long, s string, d decimal(10,2), t timestamp, n timestamp_ntz, x double, a array<int>, b boolean, day date"
)


@pytest.fixture
def path(spark, tmp_path):
    path = str(tmp_path / "t")
    at = datetime(2024, 1, 1, 12, 0, 0, 500000)
    rows = [
        (1, "a", Decimal("1.50"), at, at, 1.5, [1], True, at.date()),
        (2, "bcd", None, None, None, None, None, None, None),
        (3, "bcd", Decimal("-2.25"), at, at, -1e10, [1], False, at.date()),
    ]
    frame = spark.createDataFrame(rows, COLUMNS)
    keyed = {"primary-key": "id", "bucket": "1"}
    frame.write.format("paimon").options(**keyed).mode("append").save(path)
    frame.where("id = 3").write.format("paimon").mode("append").save(path)  # the same key: not counted twice
    return path


@pytest.fixture
def estimates(spark):
    """Spark's optimizer with estimates, for one test."""
    spark.conf.set("spark.sql.cbo.enabled", "true")
    yield
    spark.conf.unset("spark.sql.cbo.enabled")


def statistics(path):
    store = Table.open(path).store
    return read_statistics(store, store.snapshots.latest())


@pytest.mark.everywhere
def test_statistics_of_all_columns(spark, path):
    result = PaimonTable.forPath(spark, path).analyze("*")
    assert result.commit_kind == "ANALYZE"
    actual = statistics(path)
    assert (actual.snapshot_id, actual.record_count) == (result.id - 1, 3)
    assert actual.size > 0
    text = "2024-01-01 12:00:00.500"
    assert actual.columns == {
        "id": ColumnStatistics(0, 3, "1", "3", 0, 8, 8),
        "s": ColumnStatistics(1, 2, None, None, 0, 2, 3),
        "d": ColumnStatistics(2, 2, "-2.25", "1.50", 1, 8, 8),
        "t": ColumnStatistics(3, 1, text, text, 1, 8, 8),
        "n": ColumnStatistics(4, 1, text, text, 1, 8, 8),
        "x": ColumnStatistics(5, 2, "-1.0E10", "1.5", 1, 8, 8),
        "b": ColumnStatistics(7, 2, "false", "true", 1, 1, 1),
        "day": ColumnStatistics(8, 1, "19723", "19723", 1, 4, 4),
    }


@pytest.mark.more
def test_statistics_of_table_and_of_some_columns(spark, path):
    table = PaimonTable.forPath(spark, path)
    table.analyze()
    assert statistics(path).columns == {}
    table.analyze(["ID"])
    assert list(statistics(path).columns) == ["id"]
    with pytest.raises(InvalidInputError, match="nope"):
        table.analyze(["nope"])
    with pytest.raises(UnsupportedError, match="'a' of type ARRAY"):
        table.analyze(["a"])
    assert list(statistics(path).columns) == ["id"]


def test_statistics_do_not_break_filters_that_spark_estimates(spark, path, estimates):
    """Spark cannot estimate a range of TIMESTAMP_NTZ, and fails if the column has statistics."""
    PaimonTable.forPath(spark, path).analyze("*")
    at, day = "'2024-01-01 12:00:00.5'", "DATE '2024-01-01'"
    bounds = {"id": "2", "s": "'b'", "d": "0", "t": f"TIMESTAMP {at}", "n": f"TIMESTAMP_NTZ {at}", "day": day}
    for name, bound in bounds.items():
        rows = spark.read.format("paimon").load(path)
        assert rows.where(f"{name} >= {bound}").join(rows.select(name), name).count() > 0, name


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_years_that_python_does_not_know(spark, tmp_path, zone, request):
    """Bounds of dates are days; times outside of the years 1 to 9999 have no bounds."""
    before = spark.conf.get("spark.sql.session.timeZone")
    request.addfinalizer(lambda: spark.conf.set("spark.sql.session.timeZone", before))
    spark.conf.set("spark.sql.session.timeZone", zone)
    path = str(tmp_path / "t")
    for year in ("-0044", "+12345", "2024"):
        day = f"'{year}-03-15'"
        gap = "TIMESTAMP_NTZ '2024-03-10 02:30:00.5' gap"  # an hour that Los Angeles does not have
        rows = spark.sql(f"SELECT DATE {day} day, TIMESTAMP_NTZ {day} n, TIMESTAMP {day} t, {gap}")
        rows.write.format("paimon").mode("append").save(path)
    PaimonTable.forPath(spark, path).analyze("*")
    columns = statistics(path).columns
    assert columns["day"] == ColumnStatistics(0, 3, "-735525", "3789464", 0, 4, 4)
    assert columns["n"] == ColumnStatistics(1, 3, None, None, 0, 8, 8)
    assert columns["t"] == ColumnStatistics(2, 3, None, None, 0, 8, 8)
    assert (columns["gap"].min, columns["gap"].max) == ("2024-03-10 02:30:00.500",) * 2
