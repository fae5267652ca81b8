"""Batch reads of `format("paimon")` in a classic session: they read as SQL does, and as the Python data source does."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from paimon_core import Schema
from paimon_core.engine import AggregateFunction, aggregate_metadata
from paimon_core.schema.change import AddColumn, RenameColumn
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from paimon_spark import PaimonTable
from paimon_spark.sql.reads import driver_rows
from paimon_spark.sql.session_options import NATIVE_READS
from tests.spark.conftest import MODE

pytestmark = [pytest.mark.spark, pytest.mark.skipif(MODE == "connect", reason="Connect has no JVM to call")]
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def path(spark, tmp_path):
    """The path of a partitioned table of six rows in two commits."""
    path = str(tmp_path / "t")
    for first in (1, 4):
        rows = spark.range(first, first + 3).selectExpr(
            "CAST(id AS INT) AS id", "IF(id % 2 = 0, 'x', 'y') AS p", "named_struct('a', id, 'b', 'z') AS s"
        )
        rows.coalesce(1).write.format("paimon").mode("append").option("partition", "p").save(path)
    return path


def plan(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def is_by_sql(frame):
    """Return True if the strategies of SQL read, not the Python data source."""
    return ", snapshot " in plan(frame) or "LocalTableScan" in plan(frame)


def load(spark, path, **options):
    return spark.read.format("paimon").options(**options).load(path)


def both(spark, make):
    """Return the rows of a query as text; Spark's own scan and the Python data source return the same."""
    native = make()
    rows = sorted(map(repr, native.collect()))
    assert is_by_sql(native)
    spark.conf.set(NATIVE_READS, "false")
    try:
        general = make()
        assert not is_by_sql(general)
        assert sorted(map(repr, general.collect())) == rows
        assert general.schema == native.schema
    finally:
        spark.conf.unset(NATIVE_READS)
    return rows


@pytest.mark.versions
def test_rows_are_those_of_the_python_data_source(spark, path):
    assert len(both(spark, lambda: load(spark, path))) == 6
    assert both(spark, lambda: load(spark, path).where("p = 'x' AND id > 2").select("s.a")) == ["Row(a=4)", "Row(a=6)"]
    assert both(spark, lambda: load(spark, path, columns="s,id").where("id = 1")) == ["Row(s=Row(a=1, b='z'), id=1)"]
    assert len(both(spark, lambda: load(spark, path, versionAsOf="1").limit(2))) == 2
    assert len(both(spark, lambda: load(spark, path, versionAsOf="1"))) == 3
    assert both(spark, lambda: load(spark, path).groupBy("p").agg(F.max("id").alias("m"))) == [
        "Row(p='x', m=6)",
        "Row(p='y', m=5)",
    ]
    assert "native: " in plan(load(spark, path))
    assert load(spark, path).count() == 6
    assert "LocalTableScan" in plan(load(spark, path).groupBy().count())  # rows from metadata
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW viewed USING paimon OPTIONS (path '{path}')")
    assert both(spark, lambda: spark.table("viewed").where("id = 3")) == ["Row(id=3, p='y', s=Row(a=3, b='z'))"]


def test_each_query_reads_its_own_rows(spark, path):
    frame = load(spark, path)
    filtered, whole = frame.where("id = 3"), frame.select("id")
    assert filtered.count() == 1
    assert whole.count() == 6
    assert frame.join(filtered.select("id"), "id").count() == 1
    Table.open(path).delete("id = 3")
    assert (filtered.count(), whole.count(), frame.count()) == (0, 5, 5)  # the newest snapshot of each query


@pytest.mark.more
def test_options_filter_and_limit(spark, path):
    def rows(query, **options):
        return both(spark, lambda: query(load(spark, path, **options)))

    assert len(rows(lambda t: t, filter="id > 4")) == 2
    assert rows(lambda t: t.where("id < 6").select("s.a"), filter="id > 4") == ["Row(a=5)"]
    assert rows(lambda t: t.groupBy().count(), filter="id > 4 AND p = 'x'") == ["Row(count=1)"]
    assert rows(lambda t: t.groupBy().count(), filter="p = 'x'") == ["Row(count=3)"]
    assert rows(lambda t: t.orderBy("id").limit(1).select("id"), filter="id > 3 OR p = 'x'") == ["Row(id=2)"]
    assert rows(lambda t: t.orderBy(F.desc("id")).limit(1).select("id"), filter="id < 3", limit="5") == ["Row(id=2)"]
    assert rows(lambda t: t.select("id"), filter="id > 1", versionAsOf="1") == ["Row(id=2)", "Row(id=3)"]
    assert rows(lambda t: t.where("id > 3").select("id"), filter="p = 'x'", columns="id,p") == [
        "Row(id=4)",
        "Row(id=6)",
    ]
    assert rows(lambda t: t.select("s.b"), filter="s.a > 4 AND p = 'x'") == ["Row(b='z')"]
    assert rows(lambda t: t.select("id"), filter="S.a = 3 OR `s`.b <> 'z'") == ["Row(id=3)"]
    rows(lambda t: t, limit="1")
    rows(lambda t: t.groupBy().count(), limit="1")
    rows(lambda t: t.where("id > 4"), limit="1")
    assert rows(lambda t: t.alias("a").join(t.alias("b"), "id").select("id"), filter="id = 4") == ["Row(id=4)"]
    assert "native: " in plan(load(spark, path, filter="p = 'x'"))
    assert "native: " in plan(load(spark, path, limit="1"))
    assert "in the driver: 3 rows of 2 files; with the options filter" in plan(load(spark, path, filter="id > 4"))
    with pytest.raises(Exception, match="nothing"):
        load(spark, path, filter="nothing = 1").collect()


def test_options_of_the_data_source_are_read_by_it(spark, path):
    table = Table.open(path)
    table.delete("id = 2")
    assert not is_by_sql(load(spark, path, **{"read.arrow-batch-rows": "2"}))
    assert load(spark, path, **{"incremental-between": "1,2"}).count() == 3
    assert load(spark, f"{path}$snapshots").count() == 3
    narrowed = spark.read.schema("p STRING, id INT").format("paimon").load(path)
    assert not is_by_sql(narrowed)
    assert sorted(narrowed.where("id = 1").collect()) == [("y", 1)]


@pytest.mark.more
def test_table_that_changes_after_it_was_loaded(spark, path):
    """The data source reads the columns that Spark expects, or raises its error for one that is gone."""
    first, second = load(spark, path), load(spark, path)
    Table.open(path).alter([AddColumn("n", parse_type("INT"))])
    assert (len(first.collect()), first.columns) == (6, ["id", "p", "s"])
    assert load(spark, path).columns == ["id", "p", "s", "n"]
    Table.open(path).alter([RenameColumn("s", "t")])
    with pytest.raises(Exception, match="'s'"):
        second.collect()


@pytest.mark.more
def test_errors_are_those_of_the_data_source(spark, path, tmp_path):
    for options, message in (
        ({"colums": "id"}, "did you mean 'columns'"),
        ({"versionAsOf": "7"}, "snapshot 7"),
        ({"columns": "id,none"}, "none"),
    ):
        with pytest.raises(Exception, match=message):
            load(spark, path, **options).collect()
    with pytest.raises(Exception, match="no table at"):
        load(spark, str(tmp_path / "missing")).collect()


@pytest.mark.more
def test_stream_is_read_by_the_data_source(spark, path, tmp_path):
    query = (
        spark.readStream.format("paimon")
        .load(path)
        .writeStream.format("memory")
        .queryName("streamed")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert query.exception() is None
    assert spark.table("streamed").count() == 6


IN_A_PROCESS = """
import sys
from pyspark.sql import SparkSession
import paimon_spark
path = sys.argv[1]

def session():
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    return builder.config("spark.log.level", "OFF").getOrCreate()

def reader():
    frame = spark.read.format("paimon").load(path)
    assert frame.count() == 3
    text = frame._jdf.queryExecution().executedPlan().toString()
    print("native" if ", snapshot " in text else "python", flush=True)

spark = session()
spark.range(3).write.format("paimon").mode("append").save(path)
reader()
paimon_spark.register(spark)
reader()
spark.stop()
spark = session()
reader()
paimon_spark.PaimonTable.forPath(spark, path)
reader()
"""


@pytest.mark.more
def test_format_is_native_once_the_program_uses_the_connector(tmp_path):
    """Also in the session that follows a stopped one, in the same JVM."""
    command = [sys.executable, "-c", IN_A_PROCESS, str(tmp_path / "t")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split() == ["python", "native", "python", "native"]


OTHER_SOURCE = """
package org.apache.paimon.spark;
public class SparkSource implements org.apache.spark.sql.sources.DataSourceRegister {
  public String shortName() { return "paimon"; }
}
"""
OTHER_CATALOG = """
package org.apache.paimon.spark;
import org.apache.spark.sql.connector.catalog.*;
public class SparkCatalog implements TableCatalog {
  public String name() { return "java"; }
  public void initialize(String name, org.apache.spark.sql.util.CaseInsensitiveStringMap options) {}
  public Identifier[] listTables(String[] namespace) {
    throw new UnsupportedOperationException("the connector of Java was asked");
  }
  public Table loadTable(Identifier table) { return null; }
  public Table alterTable(Identifier table, TableChange[] changes) { return null; }
  public boolean dropTable(Identifier table) { return false; }
  public void renameTable(Identifier from, Identifier to) {}
}
"""
"""Classes with the names of the Java connector's."""
WITH_ANOTHER_SOURCE = """
import logging, sys
from pathlib import Path
from pyspark.sql import SparkSession
logging.basicConfig(level=logging.WARNING)
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
jvm, folder = spark._jvm, sys.argv[1]
service = Path(folder, "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister")
service.parent.mkdir(parents=True)
service.write_text("org.apache.paimon.spark.SparkSource")
loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
util = jvm.org.codehaus.commons.compiler.util.resource
compiler = jvm.org.codehaus.janino.Compiler()
compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
compiler.setClassFileCreator(util.DirectoryResourceCreator(jvm.java.io.File(folder)))
sources = spark.sparkContext._gateway.new_array(util.Resource, 2)
for number, text in enumerate(sys.argv[2:]):
    sources[number] = util.StringResource(f"{number}.java", text)
compiler.compile(sources)
loader.addURL(jvm.java.io.File(folder).toURI().toURL())
import paimon_spark
paimon_spark.catalog(spark, "lake", warehouse=folder + "/warehouse")
spark.conf.set("spark.sql.catalog.java", "org.apache.paimon.spark.SparkCatalog")
spark.sql("CREATE TABLE lake.default.t AS SELECT 7 AS id")
print("ours:", spark.table("lake.default.t").collect()[0].id)
try:
    spark.sql("SHOW TABLES IN java.db")
except Exception as error:
    print("theirs:", error)
"""


@pytest.mark.more
def test_connector_of_java_in_same_session(tmp_path):
    command = [sys.executable, "-c", WITH_ANOTHER_SOURCE, str(tmp_path), OTHER_SOURCE, OTHER_CATALOG]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    message = "format('paimon') is org.apache.paimon.spark.SparkSource of another connector"
    assert message in result.stderr, result.stderr[-3000:]
    assert "remove its jar" in result.stderr
    assert "ours: 7" in result.stdout, result.stderr[-3000:]  # two catalogs in one session
    assert "theirs: the connector of Java was asked" in result.stdout, result.stdout


@pytest.mark.parametrize("in_tasks", [pytest.param(False, marks=pytest.mark.more), True])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"row-tracking.enabled": "true"}, marks=pytest.mark.more),
        {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    ],
)
@pytest.mark.more
def test_filter_option_names_row_ids(spark, tmp_path, monkeypatch, options, in_tasks):
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = Table.create(str(tmp_path / "t"), Schema(columns, options=options))
    for first in (0, 4):
        table.write(pa.table({"id": range(first, first + 4), "v": ["a"] * 4}, columns))
    monkeypatch.setattr(driver_rows, "MOST_ROWS", 0 if in_tasks else driver_rows.MOST_ROWS)
    for text, count in (("_ROW_ID = 5", 1), ("_row_id IN (1, 6) AND id > 1", 1), ("_SEQUENCE_NUMBER = 2", 4)):
        found = sorted(repr(Row(**row)) for row in table.to_arrow(filter=text).to_pylist())
        for native in ("true", "false"):
            spark.conf.set(NATIVE_READS, native)
            try:
                assert sorted(map(repr, load(spark, table.path, filter=text).collect())) == found
                assert load(spark, table.path, filter=text).count() == len(found) == count
            finally:
                spark.conf.unset(NATIVE_READS)
    assert aggregate_metadata(table.scan(filter="_ROW_ID = 5"), [], [AggregateFunction("count")]) is None


@pytest.mark.versions
@pytest.mark.more
def test_filter_that_only_spark_evaluates_is_in_the_plan(spark, path):
    def ids(**options):
        return sorted(row.id for row in load(spark, path, **options).select("id").collect())

    assert ids(filter="upper(p) = 'X'") == [2, 4, 6]
    assert ids(filter="id + 1 > 4 AND p = 'x'") == [4, 6]
    assert ids(filter="CASE WHEN id % 2 = 0 THEN s.b = 'z' ELSE id = 1 END") == [1, 2, 4, 6]
    assert ids(filter='concat(p, "!") = "x!"', columns="id,p") == [2, 4, 6]
    assert ids(Filter="id > abs(-3)", versionAsOf="1") == []
    assert ids(filter="id IN (SELECT max(id) FROM range(6))") == [5]
    assert len(ids(filter="length(p) = 1", limit="2")) == 2
    assert load(spark, path, filter="length(p) = 1", LIMIT=" 4 ").where("id > 0").count() == 4
    frame = load(spark, path, filter="lower(p) = 'x' AND id > 3")
    assert "id > 3" in plan(frame).replace("`", "")  # pushed into the scan
    assert "native: " in plan(frame)
    narrow, whole = frame.where("id = 4"), frame.select("id")
    assert (narrow.count(), whole.count(), frame.join(narrow, "id").count()) == (1, 2, 1)
    view = f"CREATE OR REPLACE TEMPORARY VIEW shouting USING paimon OPTIONS (path '{path}', filter 'upper(p) = \"X\"')"
    spark.sql(view)
    assert spark.table("shouting").count() == 3
    schema = load(spark, path).schema
    assert spark.read.format("paimon").schema(schema).option("filter", "upper(p) = 'Y'").load(path).count() == 3


@pytest.mark.more
def test_filter_of_the_plan_above_other_readers(spark, path):
    table = PaimonTable.forPath(spark, path, filter="upper(p) = 'X'")
    assert table.toDF().count() == 3
    changes = {"incremental-between": "1,2", "filter": "upper(p) = 'X'"}
    assert sorted(row.id for row in load(spark, path, **changes).collect()) == [4, 6]
    spark.conf.set(NATIVE_READS, "false")
    try:
        assert load(spark, path, filter="upper(p) = 'X'", limit="2").count() == 2
        assert load(spark, path, filter="upper(p) = 'X'").count() == 3
    finally:
        spark.conf.unset(NATIVE_READS)


def test_quotes_in_the_option_filter_are_those_of_the_session(spark, path):
    assert load(spark, path, filter='p = "x"').count() == 3
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    try:
        assert load(spark, path, filter="\"p\" = 'x'").count() == 3
        assert PaimonTable.forPath(spark, path, filter="\"p\" = 'x'").toDF().count() == 3
    finally:
        spark.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("upper(nope) = 'X'", "nope"),
        ("upper(p = 'x'", "the filter"),
        ("upper(p)", "BOOLEAN"),
        ("sum(id) > 1", "aggregate|AGGREGATE|WHERE"),
        ("no_such_function(p) = 1", "no_such_function"),
    ],
)
def test_filters_that_spark_cannot_evaluate_are_refused(spark, path, text, message):
    with pytest.raises(Exception, match=message):
        load(spark, path, filter=text).collect()
    for limit, said in (("many", "option 'limit' is 'many'"), ("-1", "limit")):
        with pytest.raises(Exception, match=said):
            load(spark, path, filter="upper(p) = 'X'", limit=limit).collect()
