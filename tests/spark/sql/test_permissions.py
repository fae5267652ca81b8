"""SQL on a table whose rows a REST server filters and whose columns it masks: no statement shows what is hidden."""

import pyarrow as pa
import pytest

import paimon_spark
from paimon_core import Schema, open_catalog
from tests.support.rest_rules import field, leaf, rules, text
from tests.support.rest_server import catalog_server

pytestmark = pytest.mark.spark
KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("region", pa.string()), ("ssn", pa.string())])
ROWS = pa.table({"k": [1, 2, 3], "region": ["eu", "us", "eu"], "ssn": ["s1", "s2", "s3"]}, KEYED)
RULES = rules(leaf(field("region"), "EQUAL", "eu"), ssn=text("CONCAT", "*", "*"), region=text("CONCAT", "r"))
NAMES = [pytest.param("append", marks=pytest.mark.more), "keyed"]
HIDDEN = ("s1", "s2", "s3", "us")


@pytest.fixture(scope="module")
def hidden(spark, tmp_path_factory):
    """Install the catalog ``hiding`` with two tables, whose rows its server hides."""
    with catalog_server(tmp_path_factory.mktemp("hiding")) as server:
        catalog = open_catalog(options=server.options)
        catalog.create_database("db")
        for name, keys in (("append", []), ("keyed", ["k", "region"])):
            options = {"query-auth.enabled": "true", "bucket": "1", "bucket-key": "k"}
            schema = Schema(KEYED, primary_keys=keys, partition_keys=["region"], options=options)
            table = catalog.create_table(f"db.{name}", schema)
            table.write(ROWS.slice(0, 2))
            table.write(ROWS.slice(2))
        server.permissions = {"db.append": RULES, "db.keyed": RULES}
        paimon_spark.catalog(spark, "hiding", options=server.options)
        yield server


QUERIES = {
    "SELECT k, ssn FROM {t} ORDER BY k": [(1, "**"), (3, "**")],
    "SELECT * FROM {t} WHERE k = 1": [(1, "r", "**")],
    "SELECT k FROM {t} WHERE ssn = 's1'": [],
    "SELECT k FROM {t} WHERE region = 'eu'": [],
    "SELECT count(*) FROM {t} WHERE region = 'r'": [(2,)],
    "SELECT count(*) FROM {t}": [(2,)],
    "SELECT count(1), min(ssn), max(region), max(k) FROM {t}": [(2, "**", "r", 3)],
    "SELECT region, count(*) FROM {t} GROUP BY region": [("r", 2)],
    "SELECT k FROM {t} ORDER BY k DESC LIMIT 1": [(3,)],
    "SELECT DISTINCT region FROM {t} LIMIT 5": [("r",)],
    "SELECT a.k FROM {t} a JOIN {t} b ON a.region = b.region AND a.ssn = b.ssn WHERE b.k = 1 ORDER BY 1": [(1,), (3,)],
    "SELECT k, ssn FROM {t} VERSION AS OF 1": [(1, "**")],
    "SELECT ssn FROM {t} WHERE k IN (SELECT 2)": [],
}


@pytest.mark.parametrize("name", NAMES)
def test_query_obeys(spark, hidden, name):
    for query, rows in QUERIES.items():
        assert [tuple(row) for row in spark.sql(query.format(t=f"hiding.db.{name}")).collect()] == rows, query


STATEMENTS = (
    "SHOW PARTITIONS {t}",
    "ANALYZE TABLE {t} COMPUTE STATISTICS FOR ALL COLUMNS",
    "INSERT INTO {t} VALUES (9, 'eu', 's9')",
    "INSERT OVERWRITE {t} SELECT * FROM {t}",
    "DELETE FROM {t} WHERE k = 2",
    "DELETE FROM {t} WHERE region = 'us'",
    "UPDATE {t} SET ssn = 'x' WHERE k = 2",
    "MERGE INTO {t} t USING (SELECT 2 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE",
    "CALL hiding.sys.compact('{name}')",
    "SELECT * FROM {t}$files",
    "SELECT * FROM {t}$partitions",
    "SELECT * FROM {t}$audit_log",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.more
def test_other_statement_is_refused(spark, hidden, name):
    for statement in STATEMENTS:
        sql = statement.format(t=f"hiding.db.{name}", name=f"db.{name}").replace("db.append$", "db.`append$")
        with pytest.raises(Exception, match="the catalog's server filters") as error:
            spark.sql(_quoted(sql)).collect()
        assert not any(value in str(error.value).replace(statement, "").replace(sql, "") for value in HIDDEN[:3])
    assert spark.sql(f"SELECT count(*) FROM hiding.db.{name}").collect()[0][0] == 2


def _quoted(sql):
    """Return the statement with the name of a system table in backticks."""
    head, dollar, system = sql.replace("`", "").partition("$")
    return sql if not dollar else head[: head.rindex(".") + 1] + "`" + head[head.rindex(".") + 1 :] + f"${system}`"


@pytest.mark.parametrize("name", NAMES)
def test_plans_and_descriptions_show_nothing(spark, hidden, name):
    table = f"hiding.db.{name}"
    for statement in (
        f"EXPLAIN EXTENDED SELECT * FROM {table} WHERE k > 0",
        f"EXPLAIN COST SELECT * FROM {table}",
        f"DESCRIBE TABLE EXTENDED {table}",
        f"SHOW CREATE TABLE {table}",
        f"SHOW TBLPROPERTIES {table}",
        f"SELECT * FROM hiding.db.`{name}$snapshots`",
    ):
        told = "\n".join(str(row) for row in spark.sql(statement).collect())
        assert told
        assert not any(value in told for value in HIDDEN[:3]), statement
    assert "region=" not in spark.sql(f"EXPLAIN SELECT * FROM {table}").collect()[0][0]


def test_options_do_not_lift_the_rules(spark, hidden):
    read = spark.read.option("filter", "ssn = 's1'").table("hiding.db.append")
    assert read.count() == 0
    assert spark.read.option("read.arrow-batch-rows", "1").table("hiding.db.append").select("ssn").distinct().collect()[
        0
    ] == ("**",)
    with pytest.raises(Exception, match=r"'query-auth\.enabled' cannot be changed"):
        spark.read.option("query-auth.enabled", "false").table("hiding.db.append").collect()
    with pytest.raises(Exception, match="the catalog's server filters"):
        spark.read.option("incremental-between", "1,2").table("hiding.db.append").collect()
    path = hidden.catalog.location("db.append")
    with pytest.raises(Exception, match="by its name in the REST catalog"):
        spark.read.format("paimon").load(path).collect()


@pytest.mark.parametrize("changes", [False, True])
def test_stream_is_refused(spark, hidden, tmp_path, changes):
    stream = spark.readStream.option("read.changelog", str(changes).lower()).table("hiding.db.keyed")
    with pytest.raises(Exception, match="the catalog's server filters"):
        stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(
            availableNow=True
        ).start().awaitTermination()
