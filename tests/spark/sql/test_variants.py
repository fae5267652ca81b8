"""Variants in SQL: Spark's own scan and the engine return the same values, from plain and from shredded files."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from paimon_spark.sql.reads import driver_rows
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
PUSHES = "spark.sql.variant.pushVariantIntoScan"
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


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "layout", [LAYOUTS[0], None, *(pytest.param(text, marks=pytest.mark.more) for text in LAYOUTS[1:])]
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


def plan(sql, query):
    return sql(f"EXPLAIN {query}")[0][0]


def outcome(sql, query):
    """The sorted rows of a query, or the first words of its error."""
    try:
        return sorted(map(repr, sql(query)))
    except PySparkException as error:
        return str(error)[:120]


def extracted(sql, query):
    """The outcome of a query that reads paths of variants, which a read of whole variants and the engine share."""
    assert ", variant paths " in plan(sql, query), query
    found = outcome(sql, query)
    for setting in (PUSHES, NATIVE_READS):
        sql(f"SET {setting} = false")
        try:
            assert "variant paths" not in plan(sql, query)
            assert outcome(sql, query) == found, (setting, query)
        finally:
            sql(f"RESET {setting}")
    return found


SCHEMA = """{"type":"ROW","fields":[{"name":"v","type":{"type":"ROW","fields":[
    {"name":"a","type":"INT"}, {"name":"A","type":"INT"}, {"name":"c","type":{"type":"ROW","fields":[
        {"name":"d","type":"DECIMAL(9, 2)"}, {"name":"e","type":{"type":"ARRAY","element":"BIGINT"}}]}}]}}]}"""


@pytest.mark.parametrize("option", ["'variant.shreddingSchema' = '{0}'", "'variant.inferShreddingSchema' = 'true'"])
@pytest.mark.more
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


TARGETS = (
    "boolean", "tinyint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(20,5)", "string", "binary",
    "date", "timestamp", "timestamp_ntz", "variant", "array<int>", "array<variant>", "map<string,string>",
    "struct<d:decimal(9,2),e:array<string>>",
)  # fmt: skip
PATHS = ("$.a", "$.b", "$.c", "$.c.d", "$.c.e", "$.c.e[1]", "$.c.x", "$.é", "$.nothing", "$[1]", "$['Z']", "$.A")
EXTRACTIONS = (
    "SELECT id, variant_get(v, '$.a', 'string'), try_variant_get(v, '$.a', 'int') FROM t",
    "SELECT id, variant_get(v, '$.a', 'int') FROM t WHERE id NOT IN (1, 4)",  # others are no INT
    "SELECT id, CASE WHEN id IN (0, 2) THEN variant_get(v, '$.a', 'int') END FROM t",
    "SELECT sum(try_variant_get(v, '$.c.e[1]', 'int')) FROM t",
    "SELECT try_variant_get(v, '$.b', 'string'), count(*) FROM t GROUP BY 1",
    "SELECT id, try_variant_get(s.w, '$.a', 'int'), s.x FROM t WHERE try_variant_get(s.w, '$.a', 'int') > 5",
    "SELECT id, v:c.d FROM t WHERE v IS NOT NULL AND is_variant_null(v:b)",
    """SELECT t.id FROM t JOIN (SELECT DISTINCT try_variant_get(v, '$.a', 'bigint') k FROM t) u
    ON try_variant_get(t.v, '$.a', 'bigint') = u.k""",
)


@pytest.fixture
def layouts(sql):
    """A table t with a shredded file, a file that infers its layout, and a file of whole variants."""
    rows = sql.spark.createDataFrame(list(enumerate(VALUES)), "id int, j string")
    rows = rows.selectExpr("id", "parse_json(j) v", "named_struct('x', id, 'w', parse_json(j)) s").coalesce(1)
    sql(f"CREATE TABLE t (id INT, v VARIANT, s STRUCT<x: INT, w: VARIANT>) {properties(SCHEMA)}")
    rows.writeTo("t").append()
    sql("ALTER TABLE t UNSET TBLPROPERTIES ('variant.shreddingSchema')")
    sql("ALTER TABLE t SET TBLPROPERTIES ('variant.inferShreddingSchema' = 'true')")
    rows.where("id < 5").writeTo("t").append()
    sql("ALTER TABLE t UNSET TBLPROPERTIES ('variant.inferShreddingSchema')")
    rows.writeTo("t").append()
    return sql


def properties(schema):
    return f"TBLPROPERTIES ('variant.shreddingSchema' = '{schema}')"


@pytest.mark.more
def test_paths_of_variants_are_read_as_from_whole_variants(layouts):
    sql = layouts
    for query in EXTRACTIONS[:2]:
        extracted(sql, query)
    assert "INVALID_VARIANT_CAST" in extracted(sql, "SELECT variant_get(v, '$.a', 'int') FROM t")
    for columns in ("id, v, try_variant_get(v, '$.a')", "id, try_variant_get(v, concat('$.a', id))", "count(v)"):
        assert "variant paths" not in plan(sql, f"SELECT {columns} FROM t")


@pytest.mark.more
def test_every_type_and_kind_of_query_reads_paths_as_from_whole_variants(layouts):
    sql = layouts
    for query in EXTRACTIONS[2:]:
        extracted(sql, query)
    paths = ", ".join(f"try_variant_get(v, \"{path}\", '{kind}')" for path in PATHS for kind in TARGETS)
    extracted(sql, f"SELECT id, {paths} FROM t")


@pytest.mark.more
def test_variants_that_are_not_shredded_are_read_whole(sql, rows):
    query = "SELECT id, try_variant_get(v, '$.a', 'int') FROM t"
    assert "variant paths" not in plan(sql, query)
    both(sql, query)


@pytest.mark.more
def test_paths_of_masked_rows_and_of_merged_rows(sql, rows, monkeypatch):
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    sql("DROP TABLE t")
    masks = properties(SCHEMA)[:-1] + ", 'deletion-vectors.enabled' = 'true')"
    sql(f"CREATE TABLE t (id INT, v VARIANT) {masks}")
    rows.coalesce(1).writeTo("t").append()
    sql("DELETE FROM t WHERE id IN (1, 4)")
    query = "SELECT id, variant_get(v, '$.a', 'int') FROM t"  # no INT in the deleted rows
    assert "(0, 1)" in extracted(sql, query)
    assert "deleted rows masked" in plan(sql, query)
    sql("DROP TABLE t")
    sql(f"CREATE TABLE t (id INT NOT NULL, v VARIANT) {masks[:-1]}, 'primary-key' = 'id', 'bucket' = '1')")
    for part in (rows, rows.where("id < 3")):
        part.coalesce(1).writeTo("t").append()
    both(sql, "SELECT id, try_variant_get(v, '$.a', 'int') FROM t")


@pytest.mark.more
def test_paths_without_generated_code(layouts):
    sql, query = layouts, "SELECT id, try_variant_get(v, '$.a', 'int') FROM t"
    found = sorted(map(repr, sql(query)))
    for key, value in (("factoryMode", "NO_CODEGEN"), ("wholeStage", "false")):
        sql(f"SET spark.sql.codegen.{key} = {value}")
    try:
        assert sorted(map(repr, sql(query))) == found  # Spark's reader cannot extract paths
    finally:
        for key in ("factoryMode", "wholeStage"):
            sql(f"RESET spark.sql.codegen.{key}")


@pytest.mark.more
def test_paths_after_schema_changes(layouts):
    sql = layouts
    sql("ALTER TABLE t ADD COLUMN w VARIANT")
    sql("ALTER TABLE t RENAME COLUMN v TO u")
    sql("INSERT INTO t SELECT id, u, s, u FROM t WHERE id < 2")
    extracted(sql, "SELECT id, try_variant_get(w, '$.a', 'string') FROM t")  # older files lack the column
    both(sql, "SELECT id, try_variant_get(u, '$.a', 'int') FROM t")  # older files have another name for it


@pytest.mark.more
def test_runtime_filters_of_a_join_leave_variants_whole(sql, rows):
    sql(f"CREATE TABLE parts (id INT, v VARIANT, p INT) PARTITIONED BY (p) {properties(SCHEMA)}")
    rows.selectExpr("id", "v", "id % 3 AS p").coalesce(1).writeTo("parts").append()
    query = """SELECT a.id, try_variant_get(a.v, '$.a', 'int') FROM parts a JOIN t ON a.p = t.id
        WHERE variant_get(t.v, '$.b', 'string') = 'x'"""
    assert "dynamicpruning" in plan(sql, query)
    assert "variant paths" not in plan(sql, query)
    assert len(outcome(sql, query)) == 4
    both(sql, "SELECT id, try_variant_get(v, '$.a', 'int') FROM parts WHERE p = 1")


@pytest.fixture
def ranges(sql, monkeypatch):
    """A table t with four shredded files, whose values at $.a are in different ranges, and a copy of whole variants."""
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    sql("CREATE TABLE t (id INT, v VARIANT, w VARIANT) TBLPROPERTIES ('variant.inferShreddingSchema' = 'true')")
    sql("CREATE TABLE copy (id INT, v VARIANT, w VARIANT)")
    for first in (0, 100, 200, 300):
        values = f"""SELECT CAST(id AS INT) id, parse_json(concat(
            '{{"a":', id, ', "d": "', date_add(DATE'2024-01-01', CAST(id AS INT)), '", "s":"', chr(97 + id DIV 100), '",
            "f":', id, '.5e0, "b":', id % 2 = 0, ', "n":', IF({first} = 0, 'null', string(id)), '}}')) v,
            parse_json(IF(id < 205, '"text"', CAST(id AS STRING))) w FROM range({first}, {first + 10}, 1, 1)"""
        for table in ("t", "copy"):
            sql(f"INSERT INTO {table} {values}")
    return sql


GET = "variant_get(v, '$.a', 'int')"
CONDITIONS = {
    f"{GET} = 105": 1,
    f"{GET} > 150": 2,
    f"{GET} <= 5 OR {GET} >= 305": 2,
    f"{GET} IN (3, 204, 1000)": 2,
    f"{GET} IS NULL": 4,  # a number that INT cannot hold is NULL, too
    "variant_get(v, '$.a', 'bigint') IS NULL": 0,
    f"NOT {GET} > 150 AND id >= 0": 2,
    f"{GET} BETWEEN 100 AND 200": 2,
    "v:a::bigint > 250": 1,
    "try_variant_get(v, '$.s', 'string') = 'b'": 1,
    "try_variant_get(v, '$.s', 'string') LIKE 'c%'": 1,
    "variant_get(v, '$.f', 'double') < 3": 1,
    "try_variant_get(v, '$.n', 'bigint') IS NULL": 1,
    "try_variant_get(v, '$.a', 'string') = '105'": 4,  # numbers are converted to texts
    "try_variant_get(w, '$', 'int') > 207": 4,  # the path of the whole variant
    f"{GET} + 1 = 106": 4,
    f"{GET} = id": 4,
    f"rand() < 2 AND {GET} = 105": 1,
}


@pytest.mark.more
def test_statistics_of_paths_prune_files(ranges):
    sql = ranges
    for condition, files in CONDITIONS.items():
        query = f"SELECT id FROM t WHERE {condition}"
        assert sorted(sql(query)) == sorted(sql(query.replace("FROM t", "FROM copy"))), condition
        assert f"native: {files} of 4 Parquet files" in plan(sql, query), condition


@pytest.mark.more
def test_pruned_files_keep_errors_of_casts_and_versions_of_rows(ranges):
    sql = ranges
    sql('INSERT INTO t SELECT 9, parse_json(\'{"a": "text"}\'), NULL')
    with pytest.raises(PySparkException, match="INVALID_VARIANT_CAST"):
        sql(f"SELECT id FROM t WHERE {GET} = 105")
    sql("INSERT INTO t SELECT 10, parse_json('{\"a\": 6000000000}'), NULL")
    sql("DELETE FROM t WHERE id = 9")
    with pytest.raises(PySparkException, match="INVALID_VARIANT_CAST"):
        sql(f"SELECT id FROM t WHERE {GET} < 5")
    keyed = "'primary-key' = 'id', 'bucket' = '1', 'write-only' = 'true'"
    sql(f"CREATE TABLE k (id INT NOT NULL, v VARIANT) TBLPROPERTIES ({keyed}, 'variant.inferShreddingSchema' = 'true')")
    for a in (1, 2):
        sql(f"INSERT INTO k SELECT 1, parse_json('{{\"a\": {a}}}')")
    assert sql(f"SELECT id FROM k WHERE {GET} = 1") == []
    assert sql(f"SELECT id FROM k WHERE {GET} = 2") == [(1,)]


@pytest.mark.more
def test_deleted_rows_stay_deleted_in_pruned_scans(ranges):
    sql = ranges
    for name in ("modifiable", "enabled"):
        sql(f"ALTER TABLE t SET TBLPROPERTIES ('deletion-vectors.{name}' = 'true')")
    sql("DELETE FROM t WHERE id IN (103, 205)")
    for condition in (f"{GET} BETWEEN 102 AND 104", f"{GET} > 203"):
        query = f"SELECT id FROM t WHERE {condition} AND id NOT IN (103, 205)"
        assert sorted(sql(f"SELECT id FROM t WHERE {condition}")) == sorted(sql(query.replace("FROM t", "FROM copy")))
    assert sql(f"UPDATE t SET v = parse_json('{{\"a\": 1}}') WHERE {GET} = 104") is not None
    assert sorted(sql(f"SELECT id FROM t WHERE {GET} = 1")) == [(1,), (104,)]
    on = f"t.id = c.id AND {GET.replace('(v', '(t.v')} > 300"
    sql(f"MERGE INTO t USING copy c ON {on} WHEN MATCHED THEN DELETE")
    assert sql("SELECT count(*) FROM t WHERE id > 300") == [(0,)]
