"""Ctrl-C that comes between two jobs of a statement ends it before its next job, or before it commits."""

import pytest
from py4j.protocol import EMPTY_RESPONSE, ERROR_ON_SEND, Py4JNetworkError
from pyspark.sql.classic.dataframe import DataFrame

from paimon_spark import internals
from paimon_spark.distribute import SparkRunner
from paimon_spark.interruption import check_interrupted, note_interrupt, statement
from paimon_spark.row_level import write as row_level_write
from paimon_spark.sql.writes import few_rows

MERGE = """MERGE INTO t USING (SELECT id, 'm' AS v FROM range(4)) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"""
COMPACT = "CALL sys.compact(table => 't', compact_strategy => 'full')"


def test_interrupt_does_not_stop_later_statement():
    with statement():
        with statement():
            note_interrupt()
        with pytest.raises(KeyboardInterrupt, match="Ctrl-C"), statement():
            check_interrupted()
    with statement():
        check_interrupted()
    check_interrupted()


@pytest.mark.more
@pytest.mark.parametrize("after", [False, True], ids=["before the job", "before the commit"])
@pytest.mark.parametrize(
    ("text", "owner", "name"), [(MERGE, row_level_write, "run_tasks"), (COMPACT, SparkRunner, "results")]
)
def test_statement_ends_between_two_jobs(sql, monkeypatch, text, owner, name, after):
    sql("CREATE TABLE t (id BIGINT, v STRING) TBLPROPERTIES ('write-only' = 'true')")
    for n in range(6):
        sql(f"INSERT INTO t VALUES ({n}, 'a')")
    before = sql("SELECT * FROM t ORDER BY id"), sql("SELECT max(snapshot_id) FROM `t$snapshots`")
    function = getattr(owner, name)

    collect = DataFrame.collect

    def pressed(*arguments, **named):
        if not after:
            note_interrupt()
        else:
            patch.setattr(DataFrame, "collect", lambda frame: [collect(frame), note_interrupt()][0])
        return function(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(few_rows, "MOST_CHANGES", -1)
        patch.setattr(owner, name, pressed)
        with pytest.raises(Exception, match="Ctrl-C ended the statement"):
            sql(text)
    assert (sql("SELECT * FROM t ORDER BY id"), sql("SELECT max(snapshot_id) FROM `t$snapshots`")) == before
    assert sql("INSERT INTO t VALUES (9, 'works')") == []


@pytest.mark.parametrize("closed", [1, 4])
def test_connection_that_java_closes_at_once_is_made_again(closed, monkeypatch):
    """Java may close it after Ctrl-C, see `internals`; what else goes wrong is not tried again."""
    monkeypatch.setattr(internals.time, "sleep", lambda seconds: None)
    answers = [Py4JNetworkError("Answer from Java side is empty", when=EMPTY_RESPONSE)] * closed + ["connection"]

    def connect():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert internals._connect_with_retry(connect) == "connection"
    answers[:] = [Py4JNetworkError("refused", when=ERROR_ON_SEND), "connection"]
    with pytest.raises(Py4JNetworkError, match="refused"):
        internals._connect_with_retry(connect)
