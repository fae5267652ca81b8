"""A DataFrame that was opened before an ALTER: rows written since are right, or the query is refused."""

import pytest

from paimon_spark.sql.session_options import NATIVE_READS

pytestmark = pytest.mark.spark
KINDS = {
    "append": "",
    "marked": "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')",
    "keyed": "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')",
}
REFUSED = {
    "ALTER COLUMN n TYPE BIGINT": "(2, 8000000000, 20)",
    "ALTER COLUMN n TYPE STRING": "(2, 'x', 20)",
    "ALTER COLUMN must DROP NOT NULL": "(2, 2, NULL)",
    "DROP COLUMN must": "(2, 2)",
}
READ = {
    "ADD COLUMN extra INT": "(2, 2, 20, 5)",
    "RENAME COLUMN n TO m": "(2, 2, 20)",
    "ALTER COLUMN n FIRST": "(2, 2, 20)",
}


@pytest.fixture(params=["native", "python"])
def opened(sql, request):
    """A function that makes a table, opens DataFrames, then alters the table and adds row 2."""
    sql.spark.conf.set(NATIVE_READS, str(request.param == "native").lower())

    def run(kind, change, row):
        sql(f"CREATE TABLE t (id INT NOT NULL, n INT, must INT NOT NULL) {KINDS[kind]}")
        sql("INSERT INTO t VALUES (1, 1, 10), (3, 3, 30)")
        sql("DELETE FROM t WHERE id = 3")
        frame, view = sql.spark.table("t"), sql.spark.sql("SELECT id, n, must FROM t WHERE id > 1")
        sums = sql.spark.sql("SELECT sum(n), count(must) FROM t")
        sql(f"ALTER TABLE t {change}")
        sql(f"INSERT INTO t VALUES {row}")
        return frame, view, sums

    yield run
    sql.spark.conf.unset(NATIVE_READS)


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", REFUSED)
def test_rows_that_columns_of_frame_cannot_hold_are_refused(opened, sql, kind, change):
    for frame in opened(kind, change, REFUSED[change]):
        with pytest.raises(Exception, match=r"was altered after it was opened(.|\n)*open it again"):
            frame.collect()
    assert len(sql("SELECT * FROM t")) == 2


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", READ)
def test_other_rows_are_read_under_columns_of_frame(opened, kind, change):
    frame, view, sums = opened(kind, change, READ[change])
    assert sorted(map(tuple, frame.collect())) == [(1, 1, 10), (2, 2, 20)]
    assert [tuple(row) for row in view.collect()] == [(2, 2, 20)]
    assert [tuple(row) for row in sums.collect()] == [(3, 2)]
