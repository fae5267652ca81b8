"""The first line of an error says what to do, for the mistakes of the first hour."""

import re
import warnings
from functools import partial

import pytest
from pyspark.errors import PythonException
from pyspark.sql.types import StructType

import paimon_spark
from paimon_core import UpdateDefault
from paimon_core.errors import InvalidInputError
from paimon_core.options import warn_once
from paimon_spark import error_advice, internals
from paimon_spark.options import read_request, write_request
from paimon_spark.writer import PaimonWriter
from tests.support.tables import append_table, keyed_table, orders

pytestmark = pytest.mark.spark

OWN_CATALOG = "Spark's own catalog cannot hold a Paimon table: for names in SQL and saveAsTable call"
INSTALL = "paimon_spark.catalog(spark, 'paimon', warehouse='/warehouse')"


def first_line(action):
    """Return the first line of the error of an action."""
    with pytest.raises(Exception, match=r".") as caught:
        action()
    return str(caught.value).partition("\n")[0]


@pytest.fixture
def table(tmp_path):
    """A table with a primary key and two rows."""
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", 2)))
    return table


def test_table_in_catalog_of_spark_is_refused(spark, table):
    line = first_line(lambda: spark.sql(f"CREATE TABLE in_spark USING paimon LOCATION '{table.path}'"))
    assert f"{OWN_CATALOG} {INSTALL}" in line


@pytest.mark.parametrize("key", ["owner", "location"])
def test_properties_of_spark_name_catalog(key):
    for parse in (read_request, partial(write_request, column_names=())):
        with pytest.raises(InvalidInputError, match=re.escape(f"{OWN_CATALOG} {INSTALL}")):
            parse({"path": "/t", key: "x"})


def test_table_without_path_names_catalog():
    with pytest.raises(InvalidInputError, match=f"no table is named: .*{re.escape(INSTALL)}"):
        write_request({}, ())


def test_error_of_first_write_has_no_cause(spark, tmp_path):
    rows = spark.range(3).write.format("paimon").mode("append").option("primary-key", "nothing")
    with pytest.raises(Exception, match="column 'nothing' does not exist") as caught:
        rows.save(str(tmp_path / "new"))
    assert "caused by" not in str(caught.value)


@pytest.fixture
def advice(spark, catalog_name):
    """Spark's errors with advice, as in each session with a catalog."""
    error_advice.advise_on_errors()


@pytest.mark.versions
@pytest.mark.usefixtures("advice")
def test_errors_of_spark_have_advice(spark, tmp_path):
    frame = spark.range(3).selectExpr("id", "'d' AS dt")
    partitioned = frame.write.format("paimon").mode("append").partitionBy("dt")
    assert '.option("partition", "dt").' in first_line(lambda: partitioned.save(str(tmp_path / "p")))
    line = first_line(lambda: spark.sql("SELECT * FROM nowhere.shop.orders"))
    assert "install it: paimon_spark.catalog(spark, 'nowhere', warehouse=...). SQLSTATE" in line
    line = first_line(lambda: spark.sql("CALL sys.compact(table => 't')"))
    assert "Name the catalog: CALL paimon.sys.compact(...). SQLSTATE" in line


@pytest.mark.parametrize("condition", ["DATA_SOURCE_NOT_FOUND", "DATA_SOURCE_NOT_EXIST"])
def test_missing_format_names_worker_python(condition):
    text = f"[{condition}] Failed to find the data source: paimon. Make sure"
    assert 'os.environ["PYSPARK_PYTHON"] = sys.executable' in error_advice._amended(text)
    assert error_advice._amended(text.replace("paimon", "orc")) is None


def test_spark_without_change_feed_names_other_reads():
    text = "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'. SQLSTATE: 42601\n"
    text += "== SQL ==\nSELECT * FROM t CHANGES FROM VERSION 1"
    assert "paimon_incremental_query('t', 0, 5)" in error_advice._amended(text, before_changes=True).split("\n")[0]
    assert error_advice._amended(text, before_changes=False) is None


@pytest.mark.more
@pytest.mark.versions
def test_error_of_task_is_on_first_line(spark, catalog_name, table, python_writes):
    rows = spark.createDataFrame([("x", "v", 1)], "id string, v string, n long")
    action = partial(rows.write.format("paimon").mode("append").save, table.path)
    with pytest.raises(PythonException, match=r"\A.*paimon_core.errors.InvalidInputError: column 'id': string cannot"):
        action()


@pytest.mark.versions
@pytest.mark.parametrize("module", ["paimon_spark.writer", "pyarrow"])
def test_executors_without_package_are_named(spark, catalog_name, module):
    """A cluster whose executors lack the package fails in its first task, since only a local master can be checked."""

    def unpickled(batches):
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    action = spark.range(1).mapInArrow(unpickled, "id long").collect
    line = r"\A.*paimon_core.errors.MissingDependencyError: the Python of the executors lacks pyspark-paimon: install"
    with pytest.raises(PythonException, match=line):
        action()


def test_error_of_driver_is_on_first_line(spark, catalog_name, table):
    rows = spark.createDataFrame([("x", "v", 1)], "id string, v string, n long")
    line = first_line(partial(rows.write.format("paimon").mode("append").save, table.path))
    assert "paimon_core.errors.InvalidInputError: column 'id': string cannot be stored as" in line


def test_advice_that_fails_leaves_error_unchanged(spark, catalog_name, monkeypatch):
    def amend(text):
        raise RuntimeError

    monkeypatch.setattr(internals, "_AMENDMENTS", [amend])
    assert first_line(lambda: spark.sql("SELECT * FROM nope")).startswith("[TABLE_OR_VIEW_NOT_FOUND]")


@pytest.mark.versions
def test_catalog_of_java_connector_names_catalog_of_this_one(spark, catalog_name):
    key = "spark.sql.catalog.jv"
    spark.conf.set(key, "org.apache.paimon.spark.SparkCatalog")
    spark.conf.set(f"{key}.warehouse", "/lake")
    try:
        error_advice.advise_on_errors()
        line = first_line(lambda: spark.sql("SELECT * FROM jv.shop.orders"))
        assert "call paimon_spark.catalog(spark, 'jv', warehouse=...)" in line
        for enter in (paimon_spark.session, lambda: paimon_spark.register(spark)):
            assert "call paimon_spark.catalog(spark, 'jv', warehouse='/lake')" in first_line(enter)
    finally:
        spark.conf.unset(key)
        spark.conf.unset(f"{key}.warehouse")


ID = StructType().add("id", "long")


def upsert(table, **options):
    """Prepare the write of a row that has only the key."""
    return PaimonWriter(table, write_request({"path": table.path, **options}, ["id"]), ID, overwrite=False)


def test_upsert_without_columns_warns_once(table):
    warn_once.cache_clear()
    lacks = f"the rows lack the columns v, n of {table.path}, which become NULL"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            upsert(table)
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith(f"{lacks}, also in stored rows with the same key.")
    with pytest.raises(InvalidInputError, match=f"{lacks}: add the columns"):
        upsert(table, **{"write.missing-columns": "fail"})
    with pytest.raises(InvalidInputError, match=r"'write.missing-columns' is 'no': .* warn, null, fail"):
        upsert(table, **{"write.missing-columns": "no"})


@pytest.mark.parametrize("case", ["null", "row kinds", "overwrite", "append table", "partial-update", "default"])
def test_write_without_columns_does_not_warn(tmp_path, case, recwarn):
    warn_once.cache_clear()
    if case == "append table":
        table = append_table(tmp_path / "t")
    else:
        table = keyed_table(tmp_path / "t", **({"merge_engine": case} if case == "partial-update" else {}))
    if case == "default":
        table = table.alter([UpdateDefault("v", "x"), UpdateDefault("n", "1")])
    options = {"null": {"write.missing-columns": "null"}, "row kinds": {"row-kind-column": "kind"}}.get(case, {})
    schema = StructType().add("id", "long").add("kind", "string") if case == "row kinds" else ID
    request = write_request({"path": table.path, **options}, ["id"])
    PaimonWriter(table, request, schema, overwrite=case == "overwrite")
    assert not recwarn.list


def test_append_by_name_without_columns_warns(spark, sql):
    warn_once.cache_clear()
    sql("CREATE TABLE t (id BIGINT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    rows = spark.createDataFrame([(1, 2)], "id bigint, other bigint").select("id")
    with pytest.warns(UserWarning, match="the rows lack the columns v of"):
        rows.writeTo(f"pm.{sql.database}.t").append()
    write = rows.writeTo("t").option("write.missing-columns", "fail")
    assert "the rows lack the columns v of" in first_line(write.append)
    rows.write.format("paimon").mode("append").option("write.missing-columns", "null").saveAsTable(f"{sql.database}.t")
    line = first_line(lambda: sql("INSERT INTO t WITH ('write.missing-columns' = 'fail') VALUES (2, 'b')"))
    assert "'write.missing-columns' is for writes of DataFrames, not for INSERT" in line
    assert sql("SELECT * FROM t") == [(1, None)]
