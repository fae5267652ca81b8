"""Results of `paimon-spark sql`."""

import pytest

from paimon_command.sql_results import SqlRunner
from paimon_core.errors import InvalidInputError

COLUMNS = (
    "CAST(id AS INT) AS id, id AS ID, 'a,b\"' AS `x``.y`, X'0aff' AS b, parse_json('[1]') AS v, 1.50BD AS d, "
    "array(1) AS a, INTERVAL '2' MONTH AS m, TIMESTAMP '2024-01-01 00:00:00Z' AS t, NULL AS n, double('nan') AS f"
)
JSON = (
    '[\n{"id": 0, "ID_2": 0, "x`.y": "a,b\\"", "b": "0aff", "v": "[1]", "d": "1.50", "a": [1], '
    '"m": "INTERVAL \'2\' MONTH", "t": "2024-01-01 00:00:00.000000Z", "n": null, "f": "NaN"}\n]\n'
)
CSV = (
    'id,ID,x`.y,b,v,d,a,m,t,n,f\n0,0,"a,b""",0aff,[1],1.50,[1],INTERVAL \'2\' MONTH,2024-01-01 00:00:00.000000Z,,NaN\n'
)


@pytest.mark.parametrize(("form", "printed"), [("json", JSON), ("csv", CSV)])
def test_values_of_each_kind(sql, capsys, form, printed):
    SqlRunner(sql.spark, form).run(f"SELECT {COLUMNS} FROM range(1)")
    assert capsys.readouterr().out == printed


def test_statements_without_columns_print_nothing(sql, capsys):
    SqlRunner(sql.spark).run("CREATE TABLE t (id INT)")
    assert capsys.readouterr() == ("", "")


def test_long_text_keeps_its_lines(sql, capsys):
    sql("CREATE TABLE t (id INT)")
    SqlRunner(sql.spark).run("SHOW CREATE TABLE t")
    assert capsys.readouterr().out.startswith(f"CREATE TABLE pm.{sql.database}.t (\n  id INT")


def test_limit_counts_rows_of_each_result(sql, capsys):
    runner = SqlRunner(sql.spark, "csv", limit=2, timing=True)
    for rows in (2, 3):
        runner.run(f"SELECT id FROM range(0, {rows}, 1, 1)")
    out, err = capsys.readouterr()
    assert out == "id\n0\n1\n" * 2
    lines = err.splitlines()
    assert len(lines) == 3
    assert lines[1] == "... and more rows: only 2 are shown (--limit 0 shows all)"
    assert lines[0].startswith("2 rows in ")


def test_error_is_message_of_spark(sql):
    with pytest.raises(InvalidInputError, match=r"^\[TABLE_OR_VIEW_NOT_FOUND\] [^\n]*`nothing`"):
        SqlRunner(sql.spark).run("SELECT * FROM nothing")


def test_statement_with_result_runs_once(sql, capsys):
    """Its result is cut, cast and printed, and comes from a second query."""
    sql("CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    runner = SqlRunner(sql.spark, "csv", limit=10)
    runner.run("DELETE FROM t WHERE id = 1")
    runner.run("MERGE INTO t USING (SELECT 4 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
    runner.run("CALL sys.create_tag(table => 't', tag => 'x')")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["num_affected_rows", "1"]
    assert lines[3].startswith("1,")
    assert lines[-1] == "true"
    assert sql("SELECT count(*) FROM `t$snapshots`") == [(3,)]
