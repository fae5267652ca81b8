"""Variants in SQL: Spark's own scan and the engine return the same values, from plain and from shredded files."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from paimon_spark.sql.session_options import NATIVE_READS
from tests.spark.sql.test_native import both, way

VALUES = (
    '{"a":1,"b":"x","c":{"d":1.5,"e":[1,2,"z"]}}',
    '{"a":"text","b":5,"z":[1,{"q":1}]}',
    '{"a":300,"c":{"d":2.25,"x":true},"é":1,"Z":0}',
    '{"b":null,"c":7,"long":"' + "y" * 80 + '"}',
    '{"a":123456789012,"c":{"e":[null,1,{"w":[[]]}]}}',
    "{}", "[1,2,3]", "[]", "7", "null", None,
)  # fmt: skip
QUERIES = (
    "SELECT id, to_json(v), schema_of_variant(v) FROM t",
    "SELECT id, variant_get(v, '$.a', 'string'), try_variant_get(v, '$.c.d', 'double') FROM t",
    "SELECT id, try_variant_get(v, '$.c.e[1]', 'int'), variant_get(v, '$.c') FROM t WHERE id > 1",
    "SELECT id FROM t WHERE v IS NOT NULL AND NOT is_variant_null(v) AND try_variant_get(v, '$.a', 'int') < 500",
    "SELECT count(*), count(v) FROM t WHERE v IS NULL OR id > 2",
)
KNOWS_VARIANTS = 21
"""The first version of pyarrow that opens the files of variants that Spark writes."""
LAYOUTS = ("a int, b string, c struct<d decimal(9,2), e array<bigint>>", "array<bigint>", "bigint")
FORCED, WRITE = "spark.sql.variant.forceShreddingSchemaForTest", "spark.sql.variant.writeShredding.enabled"


@pytest.fixture
def rows(sql):
    """The values, also in the table t, in one file."""
    sql("CREATE TABLE t (id INT, v VARIANT)")
    rows = sql.spark.createDataFrame(list(enumerate(VALUES)), "id int, j string").selectExpr("id", "parse_json(j) v")
    rows.coalesce(1).writeTo("t").append()
    return rows


def data_file(sql):
    """Return the path of the only data file of the table."""
    ((path,),) = sql("SELECT file_path FROM `t$files`")
    return Path(path.removeprefix("file:"))


@pytest.mark.parametrize(
    "layout", [None, LAYOUTS[0], *(pytest.param(text, marks=pytest.mark.more) for text in LAYOUTS[1:])]
)
def test_spark_and_the_engine_read_the_same_variants(sql, rows, layout, tmp_path):
    expected = sorted(sql("SELECT id, to_json(v) FROM t"), key=repr)
    if layout is not None:
        sql.spark.conf.set(FORCED, layout)
        sql.spark.conf.set(WRITE, "true")
        try:
            rows.coalesce(1).write.parquet(str(tmp_path / "shredded"))
        finally:
            sql.spark.conf.unset(FORCED)
            sql.spark.conf.unset(WRITE)
        (shredded,) = (tmp_path / "shredded").glob("*.parquet")
        shutil.copy(shredded, data_file(sql))
    if layout is not None and int(pa.__version__.split(".")[0]) < KNOWS_VARIANTS:
        sql(f"SET {NATIVE_READS} = false")
        try:
            with pytest.raises(PySparkException, match="upgrade pyarrow to version 21"):
                sql("SELECT to_json(v) FROM t")
        finally:
            sql(f"RESET {NATIVE_READS}")
        assert sorted(sql("SELECT id, to_json(v) FROM t"), key=repr) == expected
        return
    for query in (*QUERIES, "SELECT v FROM t")[: None if layout is None else -1]:  # other bytes, but equal values
        assert way(sql, query) == "native"
        both(sql, query)
    assert sorted(sql("SELECT id, to_json(v) FROM t"), key=repr) == expected


def test_settings_that_forbid_layouts_leave_the_read_to_python(sql, rows):
    for name, value in (("allowReadingShredded", "false"), ("ignoreVariantAnnotation", "true")):
        setting = f"spark.sql.{'parquet' if value == 'true' else 'variant'}.{name}"
        sql(f"SET {setting} = {value}")
        try:
            assert way(sql, "SELECT v FROM t") == f"{setting} is {value}"
            assert way(sql, "SELECT id FROM t") == "native"
            assert sql("SELECT to_json(v) FROM t WHERE id = 6") == [("[1,2,3]",)]
        finally:
            sql(f"RESET {setting}")


SCHEMA = """{"type":"ROW","fields":[{"name":"v","type":{"type":"ROW","fields":[
    {"name":"a","type":"INT"}, {"name":"A","type":"INT"}, {"name":"c","type":{"type":"ROW","fields":[
        {"name":"d","type":"DECIMAL(9, 2)"}, {"name":"e","type":{"type":"ARRAY","element":"BIGINT"}}]}}]}}]}"""


@pytest.mark.parametrize("option", ["'variant.shreddingSchema' = '{0}'", "'variant.inferShreddingSchema' = 'true'"])
def test_spark_reads_variants_that_the_engine_has_shredded(sql, rows, option):
    expected = sorted(sql("SELECT id, to_json(v) FROM t"), key=repr)
    sql("DROP TABLE t")
    sql(f"CREATE TABLE t (id INT, v VARIANT) TBLPROPERTIES ({option.format(SCHEMA)})")
    objects = rows.where("id < 5").coalesce(1)
    objects.writeTo("t").append()
    assert pq.read_schema(data_file(sql)).field("v").type.get_field_index("typed_value") == 2
    rows.where("id >= 5").writeTo("t").append()
    for query in QUERIES:
        both(sql, query)
    assert sorted(sql("SELECT id, to_json(v) FROM t"), key=repr) == expected
