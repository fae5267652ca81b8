"""SQL on format tables: CREATE TABLE ... USING csv, reads, INSERT, partitions, and the statements that are refused."""

from pathlib import Path

import pytest

import paimon_spark
from paimon_core import open_catalog
from tests.support.rest_server import catalog_server

pytestmark = pytest.mark.spark
COLUMNS = "(id INT, s STRING, v STRUCT<a: INT, b: STRING>, dt DATE, p STRING)"
FLAT = "(id INT, s STRING, dt DATE, p STRING)"


@pytest.fixture(scope="module")
def server(spark, catalog_name, tmp_path_factory):
    """Install the catalog ``files`` of a REST server."""
    with catalog_server(tmp_path_factory.mktemp("files")) as running:
        paimon_spark.catalog(spark, "files", options=running.options)
        spark.sql("CREATE DATABASE files.db")
        yield running


@pytest.fixture
def run(sql, server):
    """A function that runs a statement about ``files.db.t``."""
    yield sql
    sql("DROP TABLE IF EXISTS files.db.t")


@pytest.mark.parametrize(
    "file_format", ["csv", *(pytest.param(name, marks=pytest.mark.more) for name in ("json", "orc", "parquet"))]
)
@pytest.mark.more
def test_statements(run, server, file_format):
    run(f"CREATE TABLE files.db.t {FLAT} USING {file_format} PARTITIONED BY (dt, p)")
    run("INSERT INTO files.db.t VALUES (1, 'a,\"b', DATE'2024-01-01', 'x'), (2, NULL, DATE'2024-01-01', 'y/z')")
    run("INSERT INTO files.db.t (id, p) VALUES (3, 'x')")
    assert run("SELECT id, s, cast(dt AS STRING), p FROM files.db.t ORDER BY id") == [
        (1, 'a,"b', "2024-01-01", "x"),
        (2, None, "2024-01-01", "y/z"),
        (3, None, None, "x"),
    ]
    assert run("SELECT id FROM files.db.t WHERE p = 'x' AND dt = DATE'2024-01-01'") == [(1,)]
    assert run("SELECT count(*), max(dt) IS NOT NULL FROM files.db.t WHERE dt IS NULL OR id > 1") == [(2, True)]
    assert len(run("SELECT id FROM files.db.t LIMIT 2")) == 2
    assert run("SHOW PARTITIONS files.db.t") == [("dt=2024-01-01/p=x",), ("dt=2024-01-01/p=y%2Fz",), ("dt=null/p=x",)]
    plan = run("EXPLAIN SELECT id FROM files.db.t WHERE p = 'x'")[0][0]
    assert f"{file_format} files read by {'Spark' if file_format == 'parquet' else 'Python'}" in plan
    (path,) = {Path(open_catalog(options=server.options).format_table("db.t").path)}
    assert len(list(path.rglob(f"*.{file_format}"))) == 3

    run("INSERT OVERWRITE files.db.t PARTITION (dt = DATE'2024-01-01', p = 'x') SELECT 4, 'c'")
    assert run("SELECT id FROM files.db.t ORDER BY id") == [(2,), (3,), (4,)]
    run.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        run("INSERT OVERWRITE files.db.t VALUES (5, 'd', NULL, 'x')")
    finally:
        run.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert run("SELECT id FROM files.db.t ORDER BY id") == [(2,), (4,), (5,)]
    run("ALTER TABLE files.db.t ADD PARTITION (dt = DATE'2024-01-02', p = 'n')")
    run("ALTER TABLE files.db.t DROP PARTITION (dt = DATE'2024-01-01', p = 'y/z')")
    assert run("SHOW PARTITIONS files.db.t") == [("dt=2024-01-01/p=x",), ("dt=2024-01-02/p=n",), ("dt=null/p=x",)]
    run("INSERT OVERWRITE files.db.t VALUES (6, 'e', NULL, 'q')")
    assert run("SELECT id FROM files.db.t") == [(6,)]
    run("TRUNCATE TABLE files.db.t")
    assert run("SELECT * FROM files.db.t") == []
    assert ("type", "format-table") in run("SHOW TBLPROPERTIES files.db.t")
    assert ("dt", "date", None) in run("DESCRIBE files.db.t")
    assert ("db", "t", False) in run("SHOW TABLES IN files.db")
    run("DROP TABLE files.db.t")
    assert not path.exists()


def test_columns_and_joins(run):
    """A part of a struct, a filter that a join finds while it runs, and the DataFrame API."""
    run(f"CREATE TABLE files.db.t {COLUMNS} USING json PARTITIONED BY (p)")
    run("INSERT INTO files.db.t SELECT id, 's', struct(id, 'b'), NULL, concat('p', id) FROM range(3)")
    assert run("SELECT v.a FROM files.db.t WHERE v.a > 0 ORDER BY 1") == [(1,), (2,)]
    assert run("SELECT t.id FROM files.db.t JOIN (SELECT 'p2' AS p, rand() AS r) u ON t.p = u.p") == [(2,)]
    frame = run.spark.table("files.db.t")
    frame.where("id = 1").writeTo("files.db.t").append()
    assert run("SELECT count(*) FROM files.db.t") == [(4,)]
    plan = run("EXPLAIN SELECT id FROM files.db.t WHERE p = 'p1'")[0][0]
    assert "json files read by Python: Spark reads other values" in plan
    assert "p = 'p1'" in plan


def test_options_of_the_format(run, server):
    options = "'type' = 'format-table', 'file.format' = 'csv', 'header' = 'true', 'csv.field-delimiter' = ';'"
    run(f"CREATE TABLE files.db.t (id INT, s STRING) TBLPROPERTIES ({options})")
    run("INSERT INTO files.db.t VALUES (1, 'a')")
    table = open_catalog(options=server.options).format_table("db.t")
    (file,) = Path(table.path).glob("*.csv")
    assert file.read_text() == "id;s\n1;a\n"
    file.write_text("id;s\n7;b\nwrong;c\n")
    assert run("SELECT * FROM files.db.t") == [(7, "b"), (None, "c")]


REFUSED = {
    "DELETE FROM files.db.t WHERE id = 1": "files can only be added and replaced: it has no DELETE",
    "UPDATE files.db.t SET id = 1": "files.db.t is a format table",
    "MERGE INTO files.db.t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE": "is a format table",
    "SELECT * FROM files.db.t VERSION AS OF 1": "files.db.t is a format table, which has no versions",
    "ALTER TABLE files.db.t RENAME COLUMN s TO u": "RenameColumn is not possible for the format table db.t",
    "ALTER TABLE files.db.t SET TBLPROPERTIES ('bucket' = '2')": "option 'bucket' has no effect",
    "MSCK REPAIR TABLE files.db.t": "the partitions of db.t are its directories, so there is nothing to repair",
    "MSCK REPAIR TABLE files.db.t NOW": "PARSE_SYNTAX_ERROR",
    "MSCK REPAIR TABLE pm.{database}.paimon": "MSCK REPAIR TABLE is not possible for pm.{database}.paimon, a table of",
    "SELECT * FROM files.db.`t$files`": "it has no branches, no system tables",
    "CALL files.sys.compact('db.t')": "db.t is a format table, without snapshots",
    "INSERT INTO files.db.t REPLACE WHERE id = 1 SELECT 1, 'a'": "an overwrite replaces whole partitions",
    "CREATE OR REPLACE TABLE files.db.t USING csv AS SELECT 1 AS a": "the format table files.db.t, which cannot be rep",
    "CREATE TABLE files.db.u USING csv AS SELECT 'a\nb' AS a": "a line break",
    "CREATE TABLE files.db.u (a TIMESTAMP) USING csv": "cannot be stored in CSV files: the text would depend on",
    "CREATE TABLE files.db.u (a INT) USING csv TBLPROPERTIES ('bucket' = '2')": "option 'bucket' has no effect",
    "CREATE TABLE files.db.u (a INT) USING csv TBLPROPERTIES ('file.format' = 'orc')": "USING csv and the property",
    "CREATE TABLE files.db.u (a INT PRIMARY KEY) USING csv": "cannot have a primary key",
    "CREATE TABLE pm.{database}.u (a INT) USING csv": "USING csv is not possible in",
    "CREATE TABLE pm.{database}.u (a INT) TBLPROPERTIES ('type' = 'format-table')": "only REST and Hive catalogs hold",
    "SELECT * FROM files.db.t WITH ('scan.version' = '1')": "option 'scan.version' has no effect on the format table",
}


def error_of(run, statement):
    """Return the first line of the error of a statement; empty: it ran."""
    try:
        run(statement.format(database=run.database))
    except Exception as error:
        return str(error).strip().splitlines()[0]
    return ""


@pytest.mark.more
def test_other_statements_are_refused(run):
    run("CREATE TABLE files.db.t (id INT, s STRING) USING csv")
    run(f"CREATE TABLE IF NOT EXISTS pm.{run.database}.paimon (a INT)")
    errors = {statement: error_of(run, statement) for statement in REFUSED}
    expected = {statement: text.format(database=run.database) for statement, text in REFUSED.items()}
    assert {statement: error for statement, error in errors.items() if expected[statement] not in error} == {}
    with pytest.raises(Exception, match="does not support either micro-batch"):
        run.spark.readStream.table("files.db.t").writeStream.format("noop").start().processAllAvailable()
    assert run("SHOW TABLES IN files.db") == [("db", "t", False)]


def test_partitions_in_the_catalog(run, server):
    """Only partitions that the server lists have rows; MSCK REPAIR TABLE compares its list with the directories."""
    options = "TBLPROPERTIES ('metastore.partitioned-table' = 'true')"
    run(f"CREATE TABLE files.db.t (id INT, dt DATE, p STRING) USING csv PARTITIONED BY (dt, p) {options}")
    run("INSERT INTO files.db.t VALUES (1, DATE'2024-01-01', 'x'), (2, DATE'2024-01-01', 'y/z'), (3, NULL, 'x')")
    assert [p["recordCount"] for p in server.partitions["db.t"]] == [1, 1, 1]
    root = Path(open_catalog(options=server.options).format_table("db.t").path)
    foreign = root / "dt=2024-01-02" / "p=n"
    foreign.mkdir(parents=True)
    (foreign / "f.csv").write_text("7\n")
    assert run("SELECT id FROM files.db.t ORDER BY id") == [(1,), (2,), (3,)]
    run("MSCK REPAIR TABLE files.db.t")
    assert run("SELECT id FROM files.db.t WHERE p = 'n'") == [(7,)]
    shown = ["dt=2024-01-01/p=x", "dt=2024-01-01/p=y%2Fz", "dt=2024-01-02/p=n", "dt=null/p=x"]
    assert sorted(run("SHOW PARTITIONS files.db.t")) == [(name,) for name in shown]
    run("TRUNCATE TABLE files.db.t PARTITION (dt = DATE'2024-01-02', p = 'n')")
    assert run("SHOW PARTITIONS files.db.t PARTITION (p = 'n')") == [("dt=2024-01-02/p=n",)]
    foreign.rmdir()
    run("MSCK REPAIR TABLE files.db.t SYNC PARTITIONS")
    run("ALTER TABLE files.db.t ADD IF NOT EXISTS PARTITION (dt = DATE'2024-01-03', p = 'm')")
    run("ALTER TABLE files.db.t DROP PARTITION (dt = DATE'2024-01-01')")
    assert sorted(run("SHOW PARTITIONS files.db.t")) == [("dt=2024-01-03/p=m",), ("dt=null/p=x",)]
    run("INSERT OVERWRITE files.db.t PARTITION (dt = DATE'2024-01-03', p = 'm') SELECT 8")
    assert run("SELECT id FROM files.db.t ORDER BY id") == [(3,), (8,)]
    run("ALTER TABLE files.db.t ADD PARTITION (dt = DATE'2025-01-03', p = 'm') PARTITION (dt=DATE'2025-01-03', p='n')")
    run("INSERT INTO files.db.t VALUES (9, DATE'2025-01-03', 'm')")
    run("TRUNCATE TABLE files.db.t PARTITION (dt = DATE'2025-01-03')")
    added = [("dt=2025-01-03/p=m",), ("dt=2025-01-03/p=n",)]
    assert run("SHOW PARTITIONS files.db.t PARTITION (dt = DATE'2025-01-03')") == added
    assert run("SELECT * FROM files.db.t WHERE dt = DATE'2025-01-03'") == []
    run(
        "ALTER TABLE files.db.t DROP PARTITION (dt = DATE'2025-01-03', p = 'm'), PARTITION (dt=DATE'2025-01-03', p='n')"
    )
    assert run("SHOW PARTITIONS files.db.t PARTITION (dt = DATE'2025-01-03')") == []
    with pytest.raises(Exception, match="properties and locations of partitions"):
        run("ALTER TABLE files.db.t ADD PARTITION (dt = DATE'2025-01-03', p = 'm') LOCATION '/tmp/elsewhere'")
    assert run("SHOW PARTITIONS files.db.t PARTITION (dt = DATE'2025-01-03')") == []
    with pytest.raises(Exception, match="PARTITIONS_NOT_FOUND"):
        run("ALTER TABLE files.db.t DROP PARTITION (dt = DATE'2030-01-01')")
    run("ALTER TABLE files.db.t UNSET TBLPROPERTIES ('metastore.partitioned-table')")
    assert run("SELECT count(*) FROM files.db.t") == [(2,)]


@pytest.mark.more
def test_table_is_described_and_altered(run, server):
    run("CREATE TABLE files.db.t (id INT COMMENT 'a key', s STRING) USING csv COMMENT 'rows' "
        "TBLPROPERTIES ('csv.field-delimiter' = ';', 'note' = 'kept')")  # fmt: skip
    run("INSERT INTO files.db.t VALUES (1, 'a')")
    run("COMMENT ON TABLE files.db.t IS 'other rows'")
    run("ALTER TABLE files.db.t ADD COLUMN x DATE COMMENT 'new'")
    run("ALTER TABLE files.db.t ALTER COLUMN s COMMENT 'a text'")
    run("ALTER TABLE files.db.t SET TBLPROPERTIES ('note' = 'changed', 'csv.null-literal' = '-')")
    assert run("SELECT * FROM files.db.t") == [(1, "a", None)]
    ((text,),) = run("SHOW CREATE TABLE files.db.t")
    assert text == (
        "CREATE TABLE files.db.t (\n  id INT COMMENT 'a key',\n  s STRING COMMENT 'a text',\n  x DATE COMMENT 'new')\n"
        "USING csv\nCOMMENT 'other rows'\nTBLPROPERTIES (\n  'csv.field-delimiter' = ';',\n"
        "  'csv.null-literal' = '-',\n  'note' = 'changed')\n"
    )
    described = {row[0]: row[1] for row in run("DESCRIBE EXTENDED files.db.t")}
    assert (described["Provider"], described["Comment"]) == ("csv", "other rows")
    assert described["Location"] == open_catalog(options=server.options).format_table("db.t").path
    assert ("note", "changed") in run("SHOW TBLPROPERTIES files.db.t")
    assert "\nProvider: csv\n" in run("SHOW TABLE EXTENDED IN files.db LIKE 't'")[0][3]
    run("ALTER TABLE files.db.t RENAME TO db.r")
    assert run("SELECT id FROM files.db.r") == [(1,)]
    run("DROP TABLE files.db.r")
    run(text)
    assert run("SHOW CREATE TABLE files.db.t") == [(text,)]


@pytest.mark.more
def test_table_from_a_query(run, server):
    options = "TBLPROPERTIES ('metastore.partitioned-table' = 'true')"
    query = "SELECT id, concat('p', id) AS p FROM range(3)"
    run(f"CREATE TABLE files.db.t USING parquet PARTITIONED BY (p) {options} AS {query}")
    assert run("SELECT * FROM files.db.t ORDER BY id") == [(0, "p0"), (1, "p1"), (2, "p2")]
    assert len(server.partitions["db.t"]) == 3
    run.spark.range(2).writeTo("files.db.c").using("json").create()
    assert run("SELECT count(*) FROM files.db.c") == [(2,)]
    with pytest.raises(Exception, match="already exists"):
        run("CREATE TABLE files.db.t USING csv AS SELECT 1 AS a")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        run("CREATE TABLE files.db.u USING csv AS SELECT 1 / (id - 1) AS a FROM range(2)")
    assert run("SHOW TABLES IN files.db LIKE 'u'") == []
    run("DROP TABLE files.db.c")


@pytest.mark.more
def test_scan_of_spark_reads_other_rows_from_orc(spark, tmp_path):
    """The reasons why the engine reads ORC files: it refuses what does not fit, and Spark does not."""
    spark.sql("SELECT 300L AS n").write.orc(str(tmp_path / "long"))
    assert spark.read.schema("n TINYINT").orc(str(tmp_path / "long")).collect() == [(None,)]
    spark.sql("SELECT 7 AS _col0").write.orc(str(tmp_path / "unnamed"))
    assert spark.read.schema("other INT").orc(str(tmp_path / "unnamed")).collect() == [(7,)]
