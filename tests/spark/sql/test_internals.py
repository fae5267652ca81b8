"""Names inside of Spark stand in one module, and an installation finds a missing one."""

import re
from pathlib import Path

import pytest

import paimon_spark.internals
from paimon_core.errors import UnsupportedError
from paimon_spark.internals import NAMES, check_names
from paimon_spark.sql.bridge.jvm import Jvm

PACKAGE = Path(paimon_spark.internals.__file__).parent
INSIDE = re.compile(r"\._(?:jdf|jsparkSession|jvm|jsc|sc|gateway)\b|\b(?:queryExecution|sessionState|executePlan)\(")
MAY = {"internals.py", "spark_servers.py", "sql/bridge/jvm.py"}
"""The modules of the names; the gateway of the callbacks."""


@pytest.mark.versions
def test_every_name_is_there_and_missing_one_is_named(spark, catalog_name):
    names = Jvm(spark).bridge.PaimonNames
    check_names(spark, names)
    owner = next(iter(NAMES))
    version = re.escape(spark.version)
    with pytest.raises(UnsupportedError, match=rf"Spark {version} .* it has no method {owner}\.renamed;"):
        check_names(spark, names, NAMES | {owner: ("sessionState", "renamed")})
    with pytest.raises(UnsupportedError, match=r"it has no class org\.apache\.spark\.Gone;"):
        check_names(spark, names, {"org.apache.spark.Gone": ()})


def test_installation_fails_when_name_is_missing(spark, catalog_name, tmp_path, monkeypatch):
    monkeypatch.setitem(NAMES, "org.apache.spark.sql.classic.SparkSession", ("renamed",))
    with pytest.raises(UnsupportedError, match=r"no method org\.apache\.spark\.sql\.classic\.SparkSession\.renamed"):
        paimon_spark.catalog(spark, "other", warehouse=str(tmp_path))
    assert spark.conf.get("spark.sql.catalog.other", None) is None


def test_other_modules_do_not_reach_inside_of_spark():
    matches = {
        str(path.relative_to(PACKAGE)): match[0]
        for path in PACKAGE.rglob("*.py")
        if str(path.relative_to(PACKAGE)) not in MAY and (match := INSIDE.search(path.read_text()))
    }
    assert matches == {}


@pytest.mark.versions
def test_rows_change_and_files_are_compacted_without_pandas(sql, monkeypatch):
    def absent():
        raise ImportError

    monkeypatch.setattr("pyspark.sql.pandas.functions.require_minimum_pandas_version", absent)
    with pytest.raises(ImportError):
        sql.spark.range(1).mapInArrow(iter, "id LONG")
    sql("CREATE TABLE t (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    assert sql("UPDATE t SET v = 3 WHERE id = 1") == [(1,)]
    sql("CALL sys.compact(table => 't', compact_strategy => 'full')")
    assert sql("SELECT * FROM t ORDER BY id") == [(1, 3), (2, 2)]
    assert ", native:" in sql("EXPLAIN SELECT * FROM t")[0][0]
