"""Tables that statements change, read by pyiceberg and DuckDB by their Iceberg metadata."""

import pytest

import paimon_spark

pytestmark = [pytest.mark.spark, pytest.mark.more]


def test_iceberg_readers_follow_every_statement(spark, sql, tmp_path):
    readers = pytest.importorskip("tests.support.iceberg", reason="pyiceberg or duckdb-extension-iceberg is missing")
    paimon_spark.catalog(spark, "out", warehouse=str(tmp_path))

    def shown(name):
        directory = f"{tmp_path}/iceberg/db/{name}"
        results = [readers.rows(read(directory)) for read in (readers.pyiceberg_rows, readers.duckdb_rows)]
        assert results[0] == results[1]
        return [tuple(row.values()) for row in results[0]]

    sql("CREATE DATABASE out.db")
    sql(
        "CREATE TABLE out.db.t (k INT, v STRING) PARTITIONED BY (k) "
        "TBLPROPERTIES ('metadata.iceberg.storage' = 'hadoop-catalog')"
    )
    steps = {
        "INSERT INTO out.db.t VALUES (1, 'a'), (2, 'b')": [(1, "a"), (2, "b")],
        "UPDATE out.db.t SET v = 'z' WHERE k = 1": [(1, "z"), (2, "b")],
        "MERGE INTO out.db.t t USING (SELECT 2 AS k, 'm' AS v UNION ALL SELECT 9, 'n') s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *": [(1, "z"), (2, "m"), (9, "n")],
        "DELETE FROM out.db.t WHERE k = 9": [(1, "z"), (2, "m")],
        "INSERT OVERWRITE out.db.t VALUES (7, 'o')": [(7, "o")],
        "CALL out.sys.rollback(table => 'db.t', version => '2')": [(1, "z"), (2, "b")],
    }
    for statement, rows in steps.items():
        sql(statement)
        assert shown("t") == rows, statement
    sql("ALTER TABLE out.db.t RENAME TO db.u")
    assert shown("u") == [(1, "z"), (2, "b")]
    sql("DROP TABLE out.db.u")
    assert not (tmp_path / "iceberg/db/u").exists()
