"""CALL: signatures, the effect of each procedure, arguments that are wrong, sessions."""

import os
import re
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException

from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.operations.history import orphan_files, referenced_names
from paimon_core.procedures.procedure_registry import NEVER, find_procedure
from paimon_spark import PaimonTable, distribute
from paimon_spark.procedures.session_procedures import CALL_PROCEDURES, call_procedure
from tests.docs import procedure_tables
from tests.support.text_cases import check, text_cases

JAVA_COLUMNS = {"compact": 1, "rescale": 1, "expire_snapshots": 1, "remove_orphan_files": 2}
"""The number of result columns that Java has; this engine adds further columns after them."""


def described(name):
    procedure = find_procedure(name, CALL_PROCEDURES)
    columns = procedure.result.split(", ")[: JAVA_COLUMNS.get(name)]
    return "\n".join([*map(str, procedure.parameters), f"-> {', '.join(columns)}"])


@text_cases(__file__, "procedures.txt")
def test_procedure_has_signature_of_java(case, request):
    check(case, described, rewrite=request.config.getoption("--rewrite"))


def test_page_has_table_of_every_procedure():
    assert procedure_tables.written() == procedure_tables.tables(), "run python -m tests.docs.procedure_tables"
    assert set(re.findall(r"^\| `(\w+)[(`]", procedure_tables.written(), re.MULTILINE)) == {*CALL_PROCEDURES, *NEVER}


def test_page_has_default_of_every_optional_argument():
    page = procedure_tables.PAGE.read_text()
    defaults = re.search(r"^\| argument \|.*?\n\n", page, re.MULTILINE | re.DOTALL)[0]
    listed = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", defaults, re.MULTILINE))))
    every = {p.name for procedure in CALL_PROCEDURES.values() for p in procedure.parameters}
    optional = {p.name for procedure in CALL_PROCEDURES.values() for p in procedure.parameters if not p.required}
    assert optional <= listed <= every


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("create_tags", {}, NotFoundError, "did you mean 'create_tag'"),
        ("Compact", {}, NotFoundError, "did you mean 'compact'"),
        ("xyz", {}, NotFoundError, "there are add_files, clear_consumers"),
        ("repair_tables", {}, NotFoundError, "did you mean 'repair_table'"),
        ("remove_orphan_files", {"table": "t", "older": "1"}, InvalidInputError, "did you mean 'older_than'"),
        ("alter_function", {}, UnsupportedError, "REST catalog"),
        ("create_branch", {"table": "t", "branch": "b", "ignoreIfExist": True}, InvalidInputError, "'ignoreIfExists'"),
        ("create_branch", {"table": "t"}, InvalidInputError, "'branch' is missing"),
    ],
)
def test_wrong_names_suggest_nearest(name, arguments, error, message):
    with pytest.raises(error, match=message):
        call_procedure(None, None, "pm", name, arguments)


@pytest.fixture
def table(sql):
    """A table of the partitions 0 and 1 with the snapshots 1 to 3, a row each."""
    sql(
        "CREATE TABLE t (id INT NOT NULL, p INT, v STRING) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '1')"
    )
    for i in range(3):
        sql(f"INSERT INTO t VALUES ({i}, {i % 2}, 'v{i}')")


@pytest.mark.versions
@pytest.mark.usefixtures("table")
def test_call_from_statement_to_result(sql):
    assert sql("CALL pm.sys.create_tag('t', 'v1', snapshot => 1)") == [(True,)]
    sql("EXPLAIN CALL sys.create_tag('t', 'never')")
    assert sql("CALL sys.create_tag(table => 't', tag => concat('v', '2'), time_retained => '1 d')") == [(True,)]
    assert sql("SELECT id FROM t VERSION AS OF 'v1'") == [(0,)]
    session = sql.spark.newSession()
    session.sql(f"CALL pm.sys.rename_tag('{sql.database}.t', 'v2', 'w')")
    assert sql("CALL sys.expire_tags('t', older_than => TIMESTAMP '2020-01-01 00:00:00')") == [("No expired tags.",)]
    assert sql("CALL sys.expire_tags('t', older_than => '2999-01-01')") == [("v1",), ("w",)]
    assert ("pm", ["sys"], "sys", "compact") in sql("SHOW PROCEDURES IN pm.sys")
    compacted = sql.spark.sql("CALL sys.compact('t')").first()
    assert (compacted.result, compacted.snapshot_id, compacted.files_before, compacted.files_after) == (True, 4, 2, 1)
    assert (compacted.rows_before, compacted.rows_after) == (2, 2)
    assert compacted.bytes_before > compacted.bytes_after > 0 <= compacted.milliseconds
    assert sql("CALL sys.create_tag_from_timestamp('t', 'x', 1)")[0][:2] == ("x", 1)
    for statement, message in [
        ("CALL sys.create_tag('nope', 'v')", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CALL sys.create_tag(table => 't', tagg => 'v')", "UNRECOGNIZED_PARAMETER_NAME.*`tag`"),
        ("CALL sys.create_tag('t')", "REQUIRED_PARAMETER_NOT_FOUND"),
    ]:
        with pytest.raises(AnalysisException, match=message):
            sql(statement)
    for statement, message in [
        ("CALL sys.create_tagg('t', 'v')", "did you mean 'create_tag'"),
        ("CALL pm.compact('t')", "write CALL pm.sys.compact"),
        ("CALL sys.reassign_row_id('t')", "'row-tracking.enabled' = 'true'"),
        ("CALL sys.repair('t')", "repair_table repairs a table"),
        ("CALL sys.create_tag('t', NULL)", "'tag' of create_tag must not be NULL"),
        ("CALL sys.create_tag('a.b.c', 'v')", "not a table of catalog 'pm'"),
    ]:
        with pytest.raises(PySparkException, match=message) as caught:
            sql(statement)
        assert "UndeclaredThrowable" not in str(caught.value)


@pytest.mark.more
@pytest.mark.usefixtures("table")
def test_rollback_branches_and_consumers(sql):
    sql("CALL sys.create_tag('t', 'one', 1)")
    sql("CALL sys.create_branch('t', 'b', tag => 'one')")
    sql("CALL sys.create_branch(table => 't', branch => 'b', ignoreIfExists => true)")
    sql("INSERT INTO `t$branch_b` VALUES (9, 1, 'branch')")
    sql("CALL sys.create_tag('`t$branch_b`', 'nine')")
    assert sql(f"SELECT id FROM {sql.database}.`t$branch_b` ORDER BY id") == [(0,), (9,)]
    assert sql("SELECT count(*) FROM t") == [(3,)]
    assert sql("CALL sys.rollback('`t$branch_b`', 'nine')") == [(2, 2)]
    sql("CACHE TABLE t")
    rows = sql("SELECT * FROM t VERSION AS OF 1")
    newest = sql("SELECT max(snapshot_id) FROM `t$snapshots`")[0][0]
    assert sql("CALL sys.rollback_to_as_latest('t', snapshot_id => 1)") == [(newest, 1, newest + 1)]
    assert sorted(sql("SELECT * FROM t")) == sorted(rows)
    assert sql(f"CALL sys.rollback('t', snapshot => {newest})") == [(newest + 1, newest)]
    assert sql("CALL sys.rollback('t', snapshot => 2)") == [(3, 2)]
    assert sql("SELECT count(*) FROM t") == [(2,)]
    sql("CALL sys.rename_branch('t', 'b', 'c')")
    assert sql("CALL sys.fast_forward('t', 'c')") == [(True,)]
    assert sql("SELECT id FROM t ORDER BY id") == [(0,), (9,)]
    sql("UNCACHE TABLE t")
    assert sql("CALL sys.rollback('t', 'one')") == [(2, 1)]
    sql("CALL sys.delete_branch('t', 'c')")
    sql("CALL sys.reset_consumer('t', 'app', nextSnapshotId => 1)")
    sql("CALL sys.clear_consumers('t', 'a.*')")
    for statement, message in [
        ("CALL sys.delete_branch('t', 'main')", "the table .* itself"),
        ("CALL sys.reset_consumer('t', 'app')", "no consumer 'app'"),
        ("CALL sys.rollback('t')", "one of version, snapshot and tag"),
        ("CALL sys.rollback('t', '99')", "available: 1 to 1"),
        ("CALL sys.delete_tag('t', 'one,two')", "tag 'two'"),
    ]:
        with pytest.raises(PySparkException, match=message):
            sql(statement)
    assert sql("CALL sys.delete_tag('t', 'one')") == [(True,)]


@pytest.mark.more
@pytest.mark.usefixtures("table")
def test_compaction_and_expiry(sql):
    assert sql("CALL sys.compact('t', partition_idle_time => '1 d', where => 'p = 0')")[0][:3] == (True, None, 0)
    assert sql("SELECT count(*) FROM t") == [(3,)]
    assert sql("CALL sys.compact('t', partitions => 'p=0', options => 'num-sorted-run.compaction-trigger=2')")
    assert sql("CALL sys.compact_database('db.*', concat(current_database(), '.t'))") == [
        ("Compact database finished. Success: 1, Failed: 0",)
    ]
    assert sql("CALL sys.mark_partition_done('t', 'p=0;p=1')") == [(True,)]
    (expired,) = sql("CALL sys.expire_snapshots(table => 't', retain_max => 1, retain_min => 1, max_deletes => 2)")
    assert expired[:2] == (2, 0)
    assert sql("CALL sys.rollback_to_timestamp('t', unix_millis(current_timestamp()))")
    assert sql("CALL sys.copy('t', 'u', 'id > 0')") == [(True,)]
    assert sql("SELECT id FROM u ORDER BY id") == [(1,), (2,)]
    assert sql("CALL sys.rescale('u', 2)")[0][0] is True
    assert sql("SELECT count(*) FROM u") == [(2,)]
    for statement, message in [
        ("CALL sys.compact('t', partitions => 'p=x')", "argument 'partitions' of compact: 'x' is not a value"),
        ("CALL sys.compact('t', partitions => 'p')", "column=value"),
        ("CALL sys.compact('t', partitions => 'p=0', where => 'p = 0')", "use one of them"),
        ("CALL sys.compact('t', where => 'id = 0')", "no partition column"),
        ("CALL sys.compact('t', compact_strategy => 'fast')", "one of .*'full', 'minor'"),
        ("CALL sys.compact('t', options => 'read.batch-siz=1')", "did you mean 'read.batch-size'"),
        (
            "CALL sys.compact('t', partition_idle_time => '1 z')",
            "'partition_idle_time' of compact: '1 z' must be",
        ),
        ("CALL sys.compact('t', buckets => '9')", "has the buckets 0 to"),
        ("CALL sys.compact('t', order_by => 'id')", "needs an order_strategy"),
        ("CALL sys.expire_snapshots('t', 1)", "keeps at least 10 snapshots"),
        ("CALL sys.expire_snapshots('t', older_than => 'soon')", "neither epoch milliseconds nor"),
        ("CALL sys.rescale('u', 0)", "1 or more"),
        ("CALL sys.mark_partition_done('t', 'p=7')", "has no rows"),
        ("CALL sys.rollback_to_timestamp('t', 1)", "the earliest is snapshot"),
        ("CALL sys.rollback_to_watermark('t', 1)", "no snapshot"),
        ("CALL sys.copy('t', 'u')", "there is a table at"),
    ]:
        with pytest.raises(PySparkException, match=message):
            sql(statement)


def _stray(path, *names):
    for name in names:
        stray = Path(path) / name
        stray.parent.mkdir(exist_ok=True)
        stray.write_text("stray")
        os.utime(stray, (1, 1))


@pytest.mark.usefixtures("table")
@pytest.mark.more
def test_orphan_files_and_old_partitions(sql, monkeypatch):
    path = sql("DESCRIBE TABLE EXTENDED t")
    path = next(row[1] for row in path if row[0] == "Location").removeprefix("file:")
    names = [f"p={n}/bucket-0/x-{n}" for n in range(2)] + ["manifest/manifest-x-0"]
    _stray(path, *names)
    assert sql("CALL sys.remove_orphan_files('t', dry_run => true, mode => 'LOCAL')")[0][:2] == (3, 15)
    monkeypatch.setattr(distribute, "_FEW_PARTS", 0)
    monkeypatch.setattr(orphan_files, "_DIRECTORIES", 1)
    monkeypatch.setattr(referenced_names, "_GROUP", 1)
    assert sql(f"CALL sys.remove_orphan_files('{sql.database}.*', '2020-01-01 00:00:00')")[0][:2] == (3, 15)
    assert not any((Path(path) / name).exists() for name in names)
    assert PaimonTable.forPath(sql.spark, path).removeOrphanFiles().count == 0
    assert sql("SELECT count(*) FROM t") == [(3,)]
    for statement, message in [
        ("CALL sys.remove_orphan_files('t', mode => 'here')", "one of .*'distributed', 'local'"),
        ("CALL sys.remove_orphan_files('t', '2999-01-01')", "are not referenced yet"),
        ("CALL sys.remove_orphan_files('t', parallelism => 3)", "'parallelism' of remove_orphan_files is not supp"),
        ("CALL sys.remove_orphan_files('nope.*')", "nope"),
        ("CALL sys.expire_partitions('t')", "pass it, for example '30 d'"),
        ("CALL sys.expire_partitions('t', '1 d', expire_strategy => 'age')", "'values-time' or 'update-time'"),
        ("CALL sys.expire_partitions('t', '1 d', timestamp_formatter => 'MMM')", "'MMM' in it is not supported"),
    ]:
        with pytest.raises(PySparkException, match=message):
            sql(statement)
    assert sql("CALL sys.expire_partitions('t', '1 d')") == [("No expired partitions.",)]
    expired = sql("CALL sys.expire_partitions('t', '1 d', timestamp_pattern => '2020-01-0$p', max_expires => 1)")
    assert expired == [("p=0",)]
    assert sql("SELECT count(*) FROM t") == [(1,)]
    assert sql("CALL sys.compact_manifest('t', dry_run => true)") == [(True,)]
    assert sql("CALL sys.compact_manifest('t')") == [(True,)]
    assert sql("CALL sys.compact_manifest('t', dry_run => true)") == [(False,)]
    (lost,) = (Path(path) / "p=1" / "bucket-0").iterdir()
    lost.unlink()
    assert sql("CALL sys.remove_unexisting_files('t')") == [(lost.name,)]
    assert sql("SELECT count(*) FROM t") == [(0,)]
    assert sql("CALL sys.purge_files('t')") == [("Success",)]
    assert sql("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.more
@pytest.mark.usefixtures("table")
def test_call_from_batch_of_stream(sql, tmp_path):
    """The batch's session is a clone, which has settings and a current database of its own."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"a": 1}')
    results = []

    def run(batch, number):
        results.append(batch.sparkSession.sql(f"CALL pm.sys.create_tag('{sql.database}.t', 'b{number}')").collect())

    rows = sql.spark.readStream.schema("a INT").json(str(tmp_path / "in"))
    query = rows.writeStream.foreachBatch(run).option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start().awaitTermination(60)
    assert results == [[(True,)]]
    assert sql("SELECT count(*) FROM t VERSION AS OF 'b0'") == [(3,)]


@pytest.mark.more
def test_maintenance_of_table_by_path(sql, tmp_path):
    path = str(tmp_path / "t")
    for i in range(2):
        sql.spark.range(i, i + 1).write.format("paimon").mode("append").save(path)
    table = PaimonTable.forPath(sql.spark, path)
    assert table.tags.create("v1", 1).snapshot.id == 1
    table.branches.create("b", "v1")
    table.consumers.reset("app", 2)
    assert (table.branches.list(), table.consumers.list()) == (["b"], {"app": 2})
    assert table.maintenance.compact(full=True).commit_kind == "COMPACT"
    assert table.rollbackTo("v1").id == 1
    assert [tag.name for tag in table.tags.list()] == ["v1"]
    assert table.toDF().count() == 1


def test_old_files_are_given_indexes(sql):
    sql("CREATE TABLE t (id INT, v STRING, p INT) PARTITIONED BY (p)")
    for p in (0, 1, 2):
        sql(f"INSERT INTO t VALUES (1, 'a{p}', {p}), (2, 'b{p}', {p})")
    assert sql("CALL sys.rewrite_file_index('t')") == [(0, 0)]
    assert sql("SELECT count(*) FROM `t$file_indexes`") == [(0,)]
    sql(
        "ALTER TABLE t SET TBLPROPERTIES ('file-index.bitmap.columns' = 'v', 'file-index.in-manifest-threshold' = '1b')"
    )
    with pytest.raises(PySparkException, match="'id' is no partition column"):
        sql("CALL sys.rewrite_file_index('t', where => 'id = 1')")
    assert sql("CALL sys.rewrite_file_index('t', where => 'p < 2')") == [(2, 2)]
    kinds = "SELECT DISTINCT column_name, index_type, storage_type FROM `t$file_indexes`"
    assert sql(kinds) == [("v", "bitmap", "FILE")]
    assert sql("SELECT sum(record_count) FROM `t$file_indexes`") == [(4,)]
    assert sql("CALL sys.rewrite_file_index(table => 't')") == [(1, 1)]
    assert sql("SELECT sum(record_count) FROM `t$file_indexes`") == [(6,)]
    assert sql("SELECT id, p FROM t WHERE v = 'b2'") == [(2, 2)]
    assert sql("SELECT commit_kind FROM `t$snapshots` ORDER BY snapshot_id") == [
        *[("APPEND",)] * 3, *[("COMPACT",)] * 2
    ]  # fmt: skip
