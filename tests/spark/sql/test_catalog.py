"""The catalog: databases and tables by name, the errors of Spark's own kinds."""

import re
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

import paimon_spark.sql.bridge.jvm
from paimon_spark.sql.bridge.compiler import CHANGELOG, has_class
from paimon_spark.sql.bridge.jvm import Jvm

SOURCES = sorted((Path(paimon_spark.sql.bridge.jvm.__file__).parent / "java").glob("*.java"))
CLASSES = [
    f"{re.search(r'^package ([a-z.]+);', text, re.MULTILINE)[1]}.{name}"
    for text in (source.read_text() for source in SOURCES)
    for name in re.findall(r"^(?:public )?class (\w+)", text, re.MULTILINE)
]


@pytest.mark.versions
@pytest.mark.parametrize("name", CLASSES)
def test_each_class_implements_every_abstract_method_of_its_interfaces(spark, catalog_name, name):
    jvm = Jvm(spark)
    if name.endswith("PaimonChangelog") and not has_class(jvm.java, CHANGELOG):
        pytest.skip("this Spark has no change feed")
    if name.endswith("ViewedCatalog") and not jvm.has_views:
        pytest.skip("this Spark has no views in catalogs")
    loader = jvm.java.java.lang.Thread.currentThread().getContextClassLoader()
    of = jvm.java.java.lang.Class.forName(name, False, loader)
    abstract = jvm.java.java.lang.reflect.Modifier.isAbstract
    assert [str(method) for method in of.getMethods() if abstract(method.getModifiers())] == []


@pytest.mark.versions
def test_tables_by_name(sql):
    keys = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
    sql(f"CREATE TABLE t (id BIGINT NOT NULL COMMENT 'the key', v STRING) {keys}")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql("INSERT INTO t VALUES (2, 'c')")
    assert sql("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "c")]
    assert sql("SELECT v FROM t WHERE id = 2") == [("c",)]
    assert sql(f"SELECT count(*) FROM pm.{sql.database}.t VERSION AS OF 1") == [(2,)]
    assert sql("SHOW TABLES") == [(sql.database, "t", False)]
    sql("ALTER TABLE t RENAME TO u")
    sql("DROP TABLE u")
    assert sql("SHOW TABLES") == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT nope FROM t", "UNRESOLVED_COLUMN"),
        ("CREATE TABLE t (a INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("DROP TABLE nope", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_errors_are_of_sparks_kinds(sql, statement, message):
    sql("CREATE TABLE t (a INT)")
    with pytest.raises(AnalysisException, match=message):
        sql(statement)


def test_catalog_leaves_settings_of_user_unchanged(spark, catalog_name, tmp_path):
    name = "spark.sql.python.filterPushdown.enabled"
    default = spark.conf.get(name)
    for value in ("true", "false"):
        spark.conf.set(name, value)
        paimon_spark.catalog(spark, "other_settings", warehouse=str(tmp_path))
        assert spark.conf.get(name) == value
        spark.conf.unset(name)
    assert spark.conf.get(name) == default == "false"


def test_another_session_has_catalog(sql):
    sql("CREATE TABLE t (a INT)")
    session = sql.spark.newSession()
    session.sql(f"INSERT INTO pm.{sql.database}.t VALUES (1)")
    assert sql("SELECT * FROM t") == [(1,)]
