"""Frames of pandas, Polars and DuckDB: what is written is what is read, and what cannot be is refused by its column."""

import datetime as dt
import sys

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, MissingDependencyError, UnsupportedError
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.samples import EVERYWHERE, NANOS, fields_of, rows_of

YEARS = 10**15  # microseconds: timestamps from 1938 on


def table_of(path, *columns, name="t"):
    return Table.create(str(path / name), Schema(pa.schema(columns)))


def sampled(path, types, seed=3):
    """A table with a column of each type, and another one like it that is empty."""
    rows = rows_of(fields_of(types), seed, 50, earliest=-YEARS)
    full, empty = (Table.create(str(path / name), Schema(rows.schema)) for name in ("full", "empty"))
    full.write(rows)
    return full, empty


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def polars():
    return pytest.importorskip("polars")


@pytest.fixture
def duckdb():
    return pytest.importorskip("duckdb")


# ---- every type there and back


def test_pandas_with_arrow_types_keeps_every_value(tmp_path, pandas):
    full, empty = sampled(tmp_path, EVERYWHERE + NANOS)
    empty.write(full.to_pandas(dtype_backend="pyarrow"))
    assert empty.to_arrow() == full.to_arrow()


@pytest.mark.parametrize("backend", [None, "numpy_nullable"])
def test_pandas_with_its_own_types_keeps_every_value(tmp_path, pandas, backend):
    full, empty = sampled(tmp_path, EVERYWHERE + NANOS)
    empty.write(full.to_pandas(dtype_backend=backend))
    assert empty.to_arrow() == full.to_arrow()


def test_polars_keeps_every_value(tmp_path, polars):
    types = [t for t in EVERYWHERE + NANOS if "MAP" not in t and "MULTISET" not in t]
    full, empty = sampled(tmp_path, types)
    empty.write(full.to_polars())
    assert empty.to_arrow() == full.to_arrow()


def test_duckdb_keeps_every_value(tmp_path, duckdb):
    types = [t for t in EVERYWHERE if "MULTISET" not in t] + ["TIMESTAMP(9)"]
    full, empty = sampled(tmp_path, types)
    empty.write(full.to_duckdb(connection=duckdb.connect()))
    assert empty.to_arrow() == full.to_arrow()


# ---- pandas


def test_integers_and_booleans_of_pandas_are_exact_with_nulls(tmp_path, pandas):
    table = table_of(tmp_path, ("n", pa.int64()), ("b", pa.bool_()), ("l", pa.list_(pa.int64())), ("f", pa.float64()))
    large = 2**53 + 1
    table.write(pa.table({"n": [large, None], "b": [True, None], "l": [[large, None], None], "f": [0.5, None]}))
    frame = table.to_pandas()
    assert frame["n"].dtype == "Int64"
    assert frame["b"].dtype == "boolean"
    assert frame["f"].dtype == "float64"
    assert frame["n"].tolist() == [large, pandas.NA]
    assert list(frame["l"][0]) == [large, None]
    assert table.to_pandas(dtype_backend="numpy_nullable")["f"].dtype == "Float64"


def test_nan_is_null_in_numpys_floats_and_number_in_arrows(tmp_path, pandas):
    table = table_of(tmp_path, ("f", pa.float64()))
    arrow = pandas.Series(pandas.arrays.ArrowExtensionArray(pa.array([float("nan"), None, 1.0])))
    table.write(pandas.DataFrame({"f": arrow}))
    assert str(table.to_arrow()["f"].to_pylist()) == "[nan, None, 1.0]"
    assert str(table.to_pandas(dtype_backend="pyarrow")["f"].tolist()) == "[nan, <NA>, 1.0]"
    table.overwrite(table.to_pandas())
    assert table.to_arrow()["f"].to_pylist() == [None, None, 1.0]


def test_nullable_integers_and_categories_of_pandas(tmp_path, pandas):
    table = table_of(tmp_path, ("n", pa.int32()), ("c", pa.string()))
    frame = pandas.DataFrame(
        {"n": pandas.array([1, None], dtype="Int64"), "c": pandas.Categorical(["b", None], categories=["a", "b"])}
    )
    table.write(frame)
    assert table.to_arrow().to_pylist() == [{"n": 1, "c": "b"}, {"n": None, "c": None}]


def test_nanoseconds_and_zones_of_pandas(tmp_path, pandas):
    table = table_of(
        tmp_path, ("at", pa.timestamp("us")), ("fine", pa.timestamp("ns")), ("z", pa.timestamp("us", "UTC"))
    )
    moment = pandas.Timestamp("2026-01-02 03:04:05.000000001")
    table.write(pandas.DataFrame({"fine": [moment], "z": [pandas.Timestamp("2026-01-02 03:00", tz="Europe/Berlin")]}))
    actual = table.to_pandas()
    assert actual["fine"][0] == moment
    assert actual["z"][0] == pandas.Timestamp("2026-01-02 02:00", tz="UTC")
    assert [str(kind) for kind in actual.dtypes] == ["datetime64[us]", "datetime64[ns]", "datetime64[us, UTC]"]
    with pytest.raises(InvalidInputError, match=r"column 'at', row 0: .* would lose data"):
        table.write(pandas.DataFrame({"at": [moment]}))
    with pytest.raises(InvalidInputError, match=r"column 'at': .* it has a time zone and the column has none"):
        table.write(pandas.DataFrame({"at": [pandas.Timestamp("2026-01-02", tz="UTC")]}))
    with pytest.raises(InvalidInputError, match=r"column 'z': .* it has no time zone"):
        table.write(pandas.DataFrame({"z": [pandas.Timestamp("2026-01-02")]}))


REFUSED = {
    "mixed": lambda pd: ["a", 1],
    "large": lambda pd: [2**70],
    "complex": lambda pd: [1 + 2j],
    "sparse": lambda pd: pd.arrays.SparseArray([0, 1]),
    "period": lambda pd: pd.period_range("2026", periods=2, freq="M"),
    "interval": lambda pd: pd.interval_range(0, 2),
    "timedelta": lambda pd: [pd.Timedelta(days=1)],
    "object": lambda pd: [object()],
}


@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED)
def test_column_of_pandas_that_cannot_be_stored_is_named(tmp_path, pandas, values):
    table = table_of(tmp_path, ("good", pa.int64()), ("x y", pa.int64()))
    bad = pandas.DataFrame({"x y": values(pandas)})
    bad.insert(0, "good", 1)
    with pytest.raises(InvalidInputError, match="column 'x y'"):
        table.write(bad)
    assert table.snapshot() is None


def test_index_that_would_be_lost_in_part_is_refused(tmp_path, pandas):
    table = table_of(tmp_path, ("id", pa.int64()), ("v", pa.int64()))
    partly = pandas.MultiIndex.from_tuples([(1, 2)], names=["id", None])
    with pytest.raises(InvalidInputError, match=r"\['id', None\]. Name all of them"):
        table.write(pandas.DataFrame({"v": [1]}, index=partly))
    with pytest.raises(InvalidInputError, match="'v' is the name of a column and of the index"):
        table.write(pandas.DataFrame({"v": [1]}, index=pandas.Index([5], name="v")))
    with pytest.raises(InvalidInputError, match="column 'v' more than once"):
        table.write(pandas.DataFrame([[1, 2]], columns=["v", "v"]))


def test_unknown_backend_is_refused(tmp_path, pandas):
    with pytest.raises(InvalidInputError, match="not 'numpy'"):
        table_of(tmp_path, ("id", pa.int64())).to_pandas(dtype_backend="numpy")


# ---- Polars


def test_categories_enums_and_missing_columns_of_polars(tmp_path, polars):
    table = table_of(tmp_path, ("c", pa.string()), ("e", pa.string()), ("n", pa.int64()))
    text = polars.DataFrame({"c": ["a", None, "b"]})
    frame = text.select(
        polars.col("c").cast(polars.Categorical),
        polars.col("c").cast(polars.Enum(["b", "a"])).alias("e"),
        polars.lit(None).alias("n"),
    )
    table.write(frame)
    assert table.to_arrow().to_pylist() == [{"c": v, "e": v, "n": None} for v in ["a", None, "b"]]


def test_column_of_polars_that_cannot_be_stored_is_named(tmp_path, polars):
    table = table_of(tmp_path, ("good", pa.int64()), ("x", pa.binary()))
    for bad in ([dt.timedelta(1)], polars.Series([1]).cast(polars.Int128), [object()]):
        with pytest.raises(InvalidInputError, match="column 'x'"):
            table.write(polars.DataFrame({"good": [1], "x": bad}))
    with pytest.raises(InvalidInputError, match=r"frame.collect\(\)"):
        table.write(polars.LazyFrame({"good": [1]}))
    with pytest.raises(InvalidInputError, match="Arrow stream of this Series"):
        table.write(polars.Series([1]))


def test_frame_of_polars_carries_row_kinds(tmp_path, polars):
    schema = Schema(pa.schema([("id", pa.int64())]), ["id"], options={"bucket": "1"})
    table = Table.create(str(tmp_path / "k"), schema)
    table.write(polars.DataFrame({"id": [1, 2]}))
    table.write(polars.DataFrame({"id": [1]}), ["-D"])
    assert table.to_polars()["id"].to_list() == [2]
    assert polars.DataFrame(table).equals(table.to_polars())
    assert table.get(polars.DataFrame({"id": [2, 1]}))["id"].to_pylist() == [2]


# ---- DuckDB


def test_relation_of_duckdb_is_written_in_bounded_memory(tmp_path, duckdb):
    table = table_of(tmp_path, ("id", pa.int64()), ("note", pa.string())).with_options({"write-buffer-size": "2 mb"})
    numbers = duckdb.connect().sql("SELECT range AS id, 'note ' || range AS note FROM range(300000)")
    table.write(numbers)
    assert table.to_duckdb(connection=duckdb.connect()).aggregate("count(*), sum(id)").fetchall() == [
        (300_000, 299_999 * 150_000)
    ]


def test_sum_and_enum_of_duckdb_fit_and_interval_does_not(tmp_path, duckdb):
    table, connection = table_of(tmp_path, ("n", pa.int64()), ("s", pa.string())), duckdb.connect()
    table.write(connection.sql("SELECT sum(range) AS n, any_value('a'::ENUM('a', 'b')) AS s FROM range(10)"))
    assert table.to_arrow().to_pylist() == [{"n": 45, "s": "a"}]
    with pytest.raises(InvalidInputError, match="column 'n': month_day_nano_interval"):
        table.write(connection.sql("SELECT INTERVAL '1 day' AS n"))


def test_query_of_duckdb_that_fails_late_leaves_no_row(tmp_path, duckdb):
    table = table_of(tmp_path, ("x", pa.int64()))
    late = "SELECT CASE WHEN range = 2000000 THEN error('late') ELSE range END AS x FROM range(2000001)"
    # By chance before the first batch or after it; or DuckDB reports another thread, which it has interrupted.
    with pytest.raises((OSError, duckdb.Error), match=r"late|Interrupted"):
        table.write(duckdb.connect().sql(late))
    assert table.snapshot() is None
    assert not list(tmp_path.rglob("*.parquet"))


def test_relation_reads_its_snapshot_again_for_each_query(tmp_path, duckdb, monkeypatch):
    table = table_of(tmp_path, ("id", pa.int64()), ("note", pa.string()))
    table.write(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}))
    plans, original = [], TableScan.plan
    monkeypatch.setattr(TableScan, "plan", lambda self: plans.append(self) or original(self))
    relation = table.to_duckdb(["id"], "id > 1", connection=duckdb.connect())
    assert not plans
    assert relation.columns == ["id"]
    table.write(pa.table({"id": [4], "note": ["d"]}))
    assert sorted(relation.fetchall()) == [(2,), (3,)]
    assert relation.filter("id = 3").fetchall() == [(3,)]
    joined = relation.set_alias("a").join(relation.set_alias("b"), "a.id = b.id")
    assert sorted(joined.fetchall()) == [(2, 2), (3, 3)]
    assert len(plans) >= 4


def test_duckdb_finds_table_by_name_of_its_variable(tmp_path, duckdb):
    orders = table_of(tmp_path, ("id", pa.int64()))
    orders.write(pa.table({"id": [1, 2]}))
    assert duckdb.connect().sql("SELECT sum(id) FROM orders").fetchall() == [(3,)]
    assert orders.to_duckdb().fetchall() == [(1,), (2,)]


def test_error_of_read_reaches_query(tmp_path, duckdb):
    table = table_of(tmp_path, ("id", pa.int64()))
    table.write(pa.table({"id": [1]}))
    relation = table.to_duckdb(connection=duckdb.connect())
    table.truncate()
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than="2999-01-01 00:00:00")
    with pytest.raises(duckdb.Error, match="expired"):
        relation.fetchall()


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns", "UTC"), pa.list_(pa.struct([("x", pa.timestamp("ns", "UTC"))]))], ids=str
)
def test_instants_that_duckdb_would_cut_are_refused(tmp_path, kind):
    table = table_of(tmp_path, ("id", pa.int64()), ("z", kind))
    with pytest.raises(UnsupportedError, match=r"column 'z' has instants with nanoseconds"):
        table.to_duckdb()


# ---- without the packages


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_extra_is_named_where_package_is_missing(tmp_path, monkeypatch, package):
    table = table_of(tmp_path, ("id", pa.int64()))
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"to_{package} needs {package}: pip install 'pyspark-paimon\[frames\]'"
    with pytest.raises(MissingDependencyError, match=message):
        getattr(table, f"to_{package}")()


def test_numpy_numbers_equal_numbers_of_table(tmp_path, pandas):
    table = table_of(tmp_path, ("f", pa.float64()))
    table.write(pandas.DataFrame({"f": np.arange(3.0)}))
    assert table.to_pandas()["f"].to_numpy().tolist() == [0.0, 1.0, 2.0]
