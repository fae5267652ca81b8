"""A column `a.b` next to a struct `a` with a field `b`: each reference means one of them, in every statement."""

import pytest

from paimon_core.types.datatype import INT, ArrayType, DataField, MapType, RowType
from paimon_spark.sql.reads.native import has_ambiguous_paths
from paimon_spark.sql.session_options import NATIVE_READS

COLUMNS = "id INT, `a.b` INT, a STRUCT<b: INT, `c.d`: INT, `e.f`: STRUCT<`g.h`: INT>>, `a.c` STRUCT<d: INT>, `a.k` INT"
GROUPS, EACH = 12, 2000
ROWS = f"""
SELECT CAST(id AS INT) AS id, n AS `a.b`,
  named_struct('b', n + 100, 'c.d', n + 200, 'e.f', named_struct('g.h', n + 300)) AS a,
  named_struct('d', n + 400) AS `a.c`, n + 500 AS `a.k`
FROM (SELECT id, CAST(id DIV {EACH} AS INT) AS n FROM range({GROUPS * EACH}))
"""
OFFSETS = {"`a.b`": 0, "a.b": 100, "a.`c.d`": 200, "a.`e.f`.`g.h`": 300, "`a.c`.d": 400, "`a.k`": 500}
"""Each reference, and its value in group 0 of rows; the value in group n is larger by n."""
KINDS = {
    "append": "TBLPROPERTIES ('bucket' = '-1')",
    "orc": "TBLPROPERTIES ('bucket' = '-1', 'file.format' = 'orc')",
    "keyed": "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')",
    "key": "TBLPROPERTIES ('primary-key' = 'id,a.k', 'bucket' = '1')",
    "partitioned": "PARTITIONED BY (`a.k`) TBLPROPERTIES ('bucket' = '-1')",
    "vectors": "TBLPROPERTIES ('bucket' = '-1', 'deletion-vectors.enabled' = 'true')",
}
CASES = [pytest.param((kind, True), id=kind) for kind in KINDS]
CASES += [pytest.param((kind, False), id=f"{kind} through Python") for kind in ("append", "orc")]


@pytest.fixture
def table(sql, request):
    kind, native = request.param
    sql(f"CREATE TABLE t ({COLUMNS}) {KINDS[kind]}")
    sql(f"INSERT INTO t {ROWS}")
    sql(f"SET {NATIVE_READS} = {str(native).lower()}")
    yield kind
    sql(f"RESET {NATIVE_READS}")


def groups(sql, where="TRUE"):
    """The groups of rows that match a condition, with the number of rows of each."""
    return sql(f"SELECT id DIV {EACH} AS n, count(*) FROM t WHERE {where} GROUP BY n ORDER BY n")


@pytest.mark.more
@pytest.mark.parametrize("table", CASES, indirect=True)
def test_each_reference_means_one_column(sql, table):
    for column, offset in OFFSETS.items():
        assert groups(sql, f"{column} = {offset + 5}") == [(5, EACH)], column
        assert groups(sql, f"{column} IN ({offset + 1}, {offset + 3}) OR {column} IS NULL") == [(1, EACH), (3, EACH)]
    extremes = ", ".join(f"min({column}), max({column}), count({column})" for column in OFFSETS)
    expected = [n for offset in OFFSETS.values() for n in (offset, offset + GROUPS - 1, GROUPS * EACH)]
    assert sql(f"SELECT {extremes} FROM t") == [tuple(expected)]
    for column in ("`a.b`", "a.b"):
        assert sql(f"SELECT {column} FROM t ORDER BY {column} DESC LIMIT 1") == [(OFFSETS[column] + GROUPS - 1,)]
    assert groups(sql, "`a.b` = 3 AND a.b = 103") == [(3, EACH)]
    assert groups(sql, "`a.b` = 3 AND a.b <> 103") == []


@pytest.mark.more
@pytest.mark.parametrize("table", CASES, indirect=True)
def test_statements_change_column_that_they_name(sql, table):
    for number, column in enumerate(["`a.b`", "a.b", "a.`c.d`", "`a.k`"]):
        assert sql(f"DELETE FROM t WHERE {column} = {OFFSETS[column] + number}") == [(EACH,)], column
    for number, column in enumerate(["`a.b`", "a.b", "a.`e.f`.`g.h`"], 6):
        assert sql(f"UPDATE t SET {column} = -{number} WHERE {column} = {OFFSETS[column] + number}") == [(EACH,)], (
            column
        )
        assert groups(sql, f"{column} = -{number}") == [(number, EACH)], column
    sql("""MERGE INTO t USING (SELECT -6 AS k, -7 AS l) s ON t.`a.b` = s.k OR t.a.b = s.l
        WHEN MATCHED AND t.`a.b` = -6 THEN UPDATE SET t.`a.b` = -60
        WHEN MATCHED AND t.a.b = -7 THEN DELETE""")
    assert groups(sql, "`a.b` = -60") == [(6, EACH)]
    assert groups(sql, "a.`c.d` > 0") == [(n, EACH) for n in (4, 5, 6, 8, 9, 10, 11)]


def test_backticks_in_names_of_orc_columns(sql):
    sql("""CREATE TABLE t (`a``b` INT, s STRUCT<`c``d`: INT>, l ARRAY<STRUCT<`e``f`: INT>>)
        TBLPROPERTIES ('bucket' = '-1', 'file.format' = 'orc')""")
    sql("INSERT INTO t SELECT 1, named_struct('c`d', 2), array(named_struct('e`f', 3))")
    assert sql("SELECT `a``b`, s.`c``d`, l[0].`e``f` FROM t WHERE `a``b` = 1 AND s.`c``d` = 2") == [(1, 2, 3)]


def row(*names_and_types):
    names, types = names_and_types[::2], names_and_types[1::2]
    return RowType(tuple(DataField(i, *pair) for i, pair in enumerate(zip(names, types, strict=True))))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("a", row("b", INT), "a.b", INT), True),
        (("a.b", INT, "a", row("b", INT)), True),
        (("a", row("b.c", INT), "a.b", row("c", INT)), True),
        (("s", row("a", row("b", INT), "a.b", INT)), True),
        (("l", ArrayType(row("a", row("b", INT), "a.b", INT))), True),
        (("m", MapType(INT, row("a", row("b", INT), "a.b", INT))), True),
        (("l", ArrayType(INT), "l.list.element", INT), True),
        (("a", row("b", INT), "c.b", INT), False),
        (("a.b", INT, "a.c", INT), False),
        (("a", row("b", INT), "ab", INT), False),
        (("a", row("c", row("b", INT)), "b", row("b", INT)), False),
    ],
)
def test_ambiguous_paths_are_found(columns, expected):
    assert has_ambiguous_paths(row(*columns).fields) is expected
