"""COPY INTO from and to files, EXPLAIN of Paimon's own statements, and CREATE TABLE ... LIKE."""

import pytest
from pyspark.errors import ParseException


@pytest.mark.more
@pytest.mark.versions
def test_rows_of_files_are_loaded_and_unloaded(sql, tmp_path):
    sql("CREATE TABLE t (id INT, s STRING DEFAULT 'none', d DATE)")
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.csv").write_text("id;d\n1;2026-01-31\n2;\n")
    (tmp_path / "in" / "deep" / "b.csv").write_text("id;d\n3;2026-02-01\n")
    (tmp_path / "in" / "_hidden.csv").write_text("id;d\n9;2026-02-01\n")
    (tmp_path / "in" / "wrong.txt").write_text("id;other\n9;2026-02-01\n")
    (tmp_path / "in" / "bad.csv_").write_text("id;d\nx;2026-02-01\n")
    source = f"FROM '{tmp_path}/in' FILE_FORMAT = (TYPE = CSV, header = true, SEP = ';')"
    assert sql(f"COPY INTO t (id, d) {source} PATTERN = '.*[.]csv' FORCE = TRUE") == [(2,)]
    assert sql("SELECT id, s, cast(d AS STRING) FROM t ORDER BY id") == [
        (1, "none", "2026-01-31"),
        (2, "none", None),
        (3, "none", "2026-02-01"),
    ]
    for name, kind in (("json", "JSON"), ("parquet", "PARQUET, compression = 'zstd'")):
        query = "(SELECT id + 10 AS id, d FROM t WHERE id < (2))"
        sql(f"COPY INTO '{tmp_path}/{name}' FROM {query} FILE_FORMAT = (TYPE = {kind})")
        plain = kind.partition(",")[0]
        assert sql(f"COPY INTO t (d, id) FROM '{tmp_path}/{name}' FILE_FORMAT = (TYPE = {plain}) FORCE = TRUE") == [
            (1,)
        ]
    assert sql("SELECT count(*), count(d), max(id) FROM t") == [(5, 4, 11)]
    unload = f"COPY INTO '{tmp_path}/json' FROM t FILE_FORMAT = (TYPE = JSON)"
    with pytest.raises(Exception, match=r"PATH_ALREADY_EXISTS|already exists"):
        sql(unload)
    sql(f"{unload} OVERWRITE = TRUE")
    assert sql.spark.read.json(f"{tmp_path}/json").count() == 5
    for statement, message in {
        f"COPY INTO t (id, d) {source} PATTERN = '.*txt' FORCE = TRUE": "CSV header",
        f"COPY INTO t (id, d) {source} PATTERN = '.*_' FORCE = TRUE": "MALFORMED_RECORD|'x'|\"x\"",
        f"COPY INTO t (id, d) {source} PATTERN = 'nope' FORCE = TRUE": "no file in .* matches 'nope'",
        f"COPY INTO t {source}": "FORCE = TRUE",
        f"COPY INTO t {source} FORCE = TRUE ON_ERROR = CONTINUE": "only ABORT_STATEMENT",
        f"COPY INTO t (nope) {source} FORCE = TRUE": "the column 'nope'",
        f"COPY INTO t FROM '{tmp_path}/none' FILE_FORMAT = (TYPE = CSV) FORCE = TRUE": "cannot list",
        f"COPY INTO t FROM '{tmp_path}' FILE_FORMAT = (TYPE = ORC) FORCE = TRUE": "'ORC': it must be one of CSV",
        f"COPY INTO t FROM '{tmp_path}' FILE_FORMAT = (TYPE = CSV, delimeter = ',') FORCE = TRUE": "'delimeter' is un",
        f"COPY INTO nope {source}": "TABLE_OR_VIEW_NOT_FOUND",
    }.items():
        with pytest.raises(Exception, match=message):
            sql(statement)
    with pytest.raises(ParseException, match="near 'FORMAT'"):
        sql("COPY INTO t FROM 'x' FORMAT = (TYPE = CSV)")
    assert sql("SELECT count(*) FROM t") == [(5,)]


@pytest.mark.versions
def test_explain_shows_paimons_own_statements_and_runs_nothing(sql):
    sql("CREATE TABLE t (a INT) COMMENT 'c' TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'a')")
    sql("CREATE TABLE u LIKE t TBLPROPERTIES ('write-only' = true)")
    sql("CREATE TABLE IF NOT EXISTS u LIKE t")
    created = sql("SHOW CREATE TABLE u")[0][0]
    assert all(text in created for text in ("'bucket' = '2'", "'write-only' = 'true'", "COMMENT 'c'"))
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        sql("CREATE TABLE u LIKE t")
    for statement in (
        "ALTER TABLE t CREATE TAG x",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "COPY INTO 'nowhere' FROM t FILE_FORMAT = (TYPE = CSV)",
    ):
        words = statement.split(" CREATE")[0].split(" COMPUTE")[0].split(" '")[0]
        for mode in ("", "EXTENDED ", "formatted "):
            plan = sql(f"/* x */ EXPLAIN {mode}{statement}")[0][0]
            assert f"Paimon {words}" in plan, plan
    assert sql("SHOW TAGS t") == []
    with pytest.raises(ParseException, match=r"near 'x'.*line 2, pos 3"):
        sql("EXPLAIN ALTER TABLE t CREATE TAG\n y x")
    assert "Project" in sql("EXPLAIN SELECT 'ALTER TAG'")[0][0]
