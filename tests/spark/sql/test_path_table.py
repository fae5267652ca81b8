"""Tables by their path: who reads the rows of `PaimonTable.toDF`, and that they are the same rows."""

import pytest
from pyspark.sql import functions as F

from paimon_core.schema.change import RenameColumn
from paimon_core.table import Table
from paimon_spark import PaimonTable
from paimon_spark.sql.session_options import NATIVE_READS
from tests.spark.conftest import MODE

classic = pytest.mark.skipif(MODE == "connect", reason="Connect has no JVM to call")


def plan(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def both(spark, make):
    """The rows of a DataFrame, which are the same on both ways."""
    native = make()
    assert ", native:" in plan(native)
    spark.conf.set(NATIVE_READS, "false")
    try:
        general = make()
        assert "native" not in plan(general)
        assert sorted(map(repr, native.collect())) == sorted(map(repr, general.collect()))
        assert native.schema == general.schema
    finally:
        spark.conf.unset(NATIVE_READS)
    return [tuple(row) for row in native.collect()]


def table_of(spark, path, rows, **options):
    frame = spark.createDataFrame(rows, "id INT, p STRING, s STRUCT<a: INT, b: STRING>")
    frame.coalesce(1).write.format("paimon").mode("append").options(**options).save(str(path))
    return PaimonTable.forPath(spark, str(path))


@pytest.mark.more
@classic
@pytest.mark.versions
def test_spark_reads_files_that_it_may(spark, tmp_path):
    rows = [(1, "x", (1, "a")), (2, "y", None), (3, "x", (3, "c"))]
    table = table_of(spark, tmp_path / "t", rows, partition="p")
    assert both(spark, lambda: table.toDF().orderBy("id")) == rows
    narrowed = table.toDF().where("p = 'x' AND id > 1").select("s.a", F.col("id"))
    assert both(spark, lambda: table.toDF().where("p = 'x' AND id > 1").select("s.a", "id")) == [(3, 3)]
    assert "filter: " in plan(narrowed)
    assert "native: 1 of 1 Parquet files" in plan(narrowed)
    assert both(spark, lambda: table.toDF().join(table.toDF().where("id = 2"), "id").select("id")) == [(2,)]
    assert both(spark, lambda: table.toDF(columns="s,id").where("id = 1")) == [((1, "a"), 1)]
    assert table.toDF().agg(F.count("*"), F.max("id")).collect() == [(3, 3)]
    rows = both(spark, lambda: table.toDF(columns="id", versionAsOf="1"))
    assert len(rows) == 3
    early, later = table.toDF().select("id"), table.toDF().where("id = 2")
    Table.open(str(tmp_path / "t")).delete("id = 2")
    assert sorted(early.collect()) == [(1,), (3,)]  # the snapshot is chosen when the query runs
    assert later.count() == 0
    assert len(table.toDF(versionAsOf="1").collect()) == 3


@pytest.mark.more
@classic
def test_python_reads_files_that_spark_may_not(spark, tmp_path):
    keys = {"primary-key": "id", "bucket": "1"}
    table = table_of(spark, tmp_path / "t", [(1, "x", None)], **keys)
    frame = spark.createDataFrame([(1, "y", None)], table.toDF().schema)
    frame.write.format("paimon").mode("append").save(str(tmp_path / "t"))
    assert "merged" in plan(table.toDF())
    assert table.toDF().select("p").collect() == [("y",)]
    assert "read by: in the driver: 2 rows of 2 files; 2 files of bucket 0 are merged\n" in str(table.explain())
    old = _explained(table, "1", "id = 1")
    assert (old.snapshot_id, old.filter) == (1, "id = 1")
    assert _explained(table, "1", None).engine == "native: 1 of 1 Parquet files"
    with_filter = PaimonTable.forPath(spark, str(tmp_path / "t"), filter="id = 1")
    assert with_filter.explain().engine.startswith("in the driver: 2 rows of 2 files; ")
    assert with_filter.explain(filter="p = 'y'").filter == "p = 'y' AND id = 1"
    assert with_filter.toDF().collect() == [(1, "y", None)]
    assert "native" not in plan(with_filter.toDF())
    with pytest.raises(Exception, match="did you mean"):
        table.toDF(colums="id")
    with pytest.raises(Exception, match="no table"):
        PaimonTable.forPath(spark, str(tmp_path / "missing")).toDF()


def _explained(table, version, filter):
    return PaimonTable.forPath(table._spark, table._address.path, versionAsOf=version).explain(None, filter)


@pytest.mark.more
@classic
def test_column_that_changes_after_dataframe_was_made(spark, tmp_path):
    table = table_of(spark, tmp_path / "t", [(1, "x", None)])
    kept, renamed = table.toDF().select("id"), table.toDF().select("p")
    Table.open(str(tmp_path / "t")).alter([RenameColumn("p", "q")])
    assert kept.collect() == [(1,)]
    with pytest.raises(Exception, match="'p'"):
        renamed.collect()


@pytest.mark.skipif(MODE != "connect", reason="the other sessions have a JVM")
def test_connect_has_no_jvm(spark, tmp_path):
    table = table_of(spark, tmp_path / "t", [(1, "x", None)])
    assert table.toDF().collect() == [(1, "x", None)]
    assert table.explain().engine == "through Python: a session of Spark Connect has no JVM to call"
    assert table.explain(analyze=True).executed.rows == 1
