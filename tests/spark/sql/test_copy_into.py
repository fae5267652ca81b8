"""COPY INTO from and to files, EXPLAIN of Paimon's own statements, and CREATE TABLE ... LIKE."""

import json

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
    assert sql(f"COPY INTO t (id, d) {source} PATTERN = '.*[.]csv'") == [
        ("a.csv", "LOADED", 2, 2, 0, None),
        ("deep/b.csv", "LOADED", 1, 1, 0, None),
    ]
    assert sql("SELECT id, s, cast(d AS STRING) FROM t ORDER BY id") == [
        (1, "none", "2026-01-31"),
        (2, "none", None),
        (3, "none", "2026-02-01"),
    ]
    for name, kind in (("json", "JSON"), ("parquet", "PARQUET, compression = 'zstd'")):
        query = "(SELECT id + 10 AS id, d FROM t WHERE id < (2))"
        sql(f"COPY INTO '{tmp_path}/{name}' FROM {query} FILE_FORMAT = (TYPE = {kind})")
        plain = kind.partition(",")[0]
        loaded = sql(f"COPY INTO t (d, id) FROM '{tmp_path}/{name}' FILE_FORMAT = (TYPE = {plain})")
        assert [row[1:] for row in loaded] == [("LOADED", 1, 1, 0, None)]
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
        f"COPY INTO t {source} FORCE = MAYBE": "must be TRUE or FALSE",
        f"COPY INTO t {source} FORCE = TRUE ON_ERROR = SKIP": "one of ABORT_STATEMENT, CONTINUE, SKIP_FILE",
        f"COPY INTO t {source} PATTERN = '('": "not a regular expression",
        f"COPY INTO t (id, id) {source}": "'id' twice",
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


def test_each_file_is_loaded_once_and_invalid_rows_are_left_out(sql, tmp_path):
    sql("CREATE TABLE t (id INT NOT NULL, s VARCHAR(3))")
    good, bad = tmp_path / "a b.csv", tmp_path / "bad.csv"
    good.write_text("1,x\n2,y\n")
    bad.write_text("3,z\nno,z\n,z\n4,long\n")
    copy = f"COPY INTO t FROM '{tmp_path}' FILE_FORMAT = (TYPE = CSV)"
    with pytest.raises(Exception, match=r"MALFORMED_RECORD|bad\.csv"):
        sql(copy)
    assert sql("SELECT count(*) FROM t") == [(0,)]
    skipped = sql(f"{copy} ON_ERROR = SKIP_FILE")
    assert [row[:5] for row in skipped] == [("a b.csv", "LOADED", 2, 2, 0), ("bad.csv", "LOAD_FAILED", 0, 4, 3)]
    assert skipped[0][5] is None
    assert skipped[1][5]
    continued = sql(f"{copy} ON_ERROR = CONTINUE")
    assert [row[:5] for row in continued] == [("a b.csv", "SKIPPED", 0, 0, 0), ("bad.csv", "PARTIALLY_LOADED", 1, 4, 3)]
    assert sql("SELECT * FROM t ORDER BY id") == [(1, "x"), (2, "y"), (3, "z")]
    assert {row[1] for row in sql(copy)} == {"SKIPPED"}
    good.write_text("7,new\n")
    assert sql(f"{copy} PATTERN = 'a.*'") == [("a b.csv", "LOADED", 1, 1, 0, None)]
    assert sql(f"{copy} PATTERN = 'a.*' FORCE = TRUE") == [("a b.csv", "LOADED", 1, 1, 0, None)]
    assert sql("SELECT count(*) FROM t WHERE id = 7") == [(2,)]


@pytest.mark.more
def test_unreadable_files_fail_alone_and_json_and_parquet_rows_are_checked(sql, tmp_path):
    sql("CREATE TABLE t (id INT, s STRING)")
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "a.json").write_text('{"id": 1, "s": "x"}\n{"id": \n{"id": 2, "s": "y"}\n')
    copy = f"COPY INTO t FROM '{tmp_path}/j' FILE_FORMAT = (TYPE = JSON) ON_ERROR = CONTINUE"
    assert [row[:5] for row in sql(copy)] == [("a.json", "PARTIALLY_LOADED", 2, 3, 1)]
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "a.csv").write_text("id,s\n3,z\n")
    (tmp_path / "h" / "b.csv").write_text("id,other\n4,z\n")
    copy = f"COPY INTO t FROM '{tmp_path}/h' FILE_FORMAT = (TYPE = CSV, header = true) ON_ERROR = SKIP_FILE"
    assert [row[:3] for row in sql(copy)] == [("a.csv", "LOADED", 1), ("b.csv", "LOAD_FAILED", 0)]
    sql.spark.sql("SELECT * FROM VALUES (5L, 'p'), (1099511627776L, 'q') AS v (id, s)").coalesce(1).write.parquet(
        f"{tmp_path}/p"
    )
    (tmp_path / "p" / "wrong.parquet").write_bytes(b"no file of Parquet")
    copy = f"COPY INTO t FROM '{tmp_path}/p' FILE_FORMAT = (TYPE = PARQUET) ON_ERROR = CONTINUE"
    assert sorted(row[1:4] for row in sql(copy)) == [("LOAD_FAILED", 0, 0), ("PARTIALLY_LOADED", 1, 2)]
    assert sql("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,), (5,)]


@pytest.mark.more
def test_columns_and_tables_with_odd_names_are_loaded(sql, tmp_path):
    names = ("_metadata", "_corrupt_record", "a.b", "c`d", "{x}", "it's")
    listed = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
    sql(f"CREATE TABLE `t {{x}} ``y` ({listed.replace(',', ' STRING,')} STRING)")
    (tmp_path / "a.json").write_text(json.dumps({name: f"of {name}" for name in names}))
    for mode in ("CONTINUE", "ABORT_STATEMENT"):
        load = f"FROM '{tmp_path}/a.json' FILE_FORMAT = (TYPE = JSON) FORCE = TRUE ON_ERROR = {mode}"
        assert [row[:2] for row in sql(f"COPY INTO `t {{x}} ``y` ({listed}) {load}")] == [("a.json", "LOADED")]
    assert sql("SELECT * FROM `t {x} ``y`") == 2 * [tuple(f"of {name}" for name in names)]
    for kind in ("JSON", "CSV"):  # unloaded by Spark, too
        sql(f"COPY INTO '{tmp_path}/{kind}' FROM `t {{x}} ``y` FILE_FORMAT = (TYPE = {kind})")
        written = "".join(path.read_text() for path in (tmp_path / kind).glob("part-*"))
        assert written.count("of _corrupt_record") == 2


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
