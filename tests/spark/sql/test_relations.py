"""A query that reads a table twice, with other options each time: Spark keeps the tables of a query by name."""

import pytest

from tests.spark.conftest import MODE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.versions,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]

FIRST, SECOND = (f"t WITH ('scan.snapshot-id' = '{number}')" for number in (1, 2))


@pytest.fixture
def table(sql):
    """Three snapshots of a table ``t`` with one row, whose value is a, b and c."""
    sql("CREATE TABLE t (id INT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    for value in "abc":
        sql(f"INSERT INTO t VALUES (1, '{value}')")
    return sql


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("query", "row"),
    [
        (f"SELECT x.v, y.v FROM {FIRST} x JOIN {SECOND} y ON x.id = y.id", ("a", "b")),
        (f"SELECT x.v, y.v FROM {SECOND} x, {FIRST} y", ("b", "a")),
        (f"SELECT x.v, t.v FROM {FIRST} x, t", ("a", "c")),
        (f"SELECT x.v, t.v FROM t, {FIRST} x", ("a", "c")),
        (f"SELECT x.v, y.v FROM t VERSION AS OF 2 x, {FIRST} y", ("b", "a")),
        (f"WITH x AS (SELECT * FROM {FIRST}) SELECT x.v, t.v FROM t, x", ("a", "c")),
        (f"SELECT v, (SELECT max(v) FROM {SECOND}) FROM {FIRST} WHERE t.id IN (SELECT id FROM t)", ("a", "b")),
        ("SELECT w.v, t.v FROM t, w", ("a", "c")),
        ("SELECT w.v, t.v FROM w, t", ("a", "c")),
        (
            "SELECT x.v, y.v FROM paimon_incremental_query('t', '1', '2') x, paimon_incremental_query('t', '2', '3') y",
            ("b", "c"),
        ),
    ],
)
def test_each_read_has_its_own_options(table, query, row):
    table(f"CREATE OR REPLACE TEMP VIEW w AS SELECT * FROM {FIRST}")
    try:
        assert table(query) == [row]
    finally:
        table("DROP VIEW w")


@pytest.mark.more
def test_relations_with_options_change_no_write_and_no_message(table):
    table(f"INSERT INTO t SELECT id + 1, v FROM {FIRST}")
    assert table("SELECT * FROM t ORDER BY id") == [(1, "c"), (2, "a")]
    table("CACHE TABLE t")
    try:
        assert table(f"SELECT x.v, t.v FROM {FIRST} x JOIN t ON x.id = t.id") == [("a", "c")]
    finally:
        table("UNCACHE TABLE t")
    with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND.*nope"):
        table("SELECT * FROM nope WITH ('scan.snapshot-id' = '1')")
