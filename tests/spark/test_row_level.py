"""Update, delete and merge of `PaimonTable`, in classic sessions and over Connect."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import paimon_spark
from paimon_core import RowChanges, col
from paimon_core.errors import InvalidInputError, TableChangedError, UnsupportedError
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_spark.row_level import write

pytestmark = pytest.mark.spark
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())])
TRACKED = {"row-tracking.enabled": "true"}
TABLES = {
    "appended": ([], {}),
    "marked": ([], {"deletion-vectors.enabled": "true"}),
    "tracked": ([], TRACKED),
    "evolving": ([], {**TRACKED, "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}),
    "buckets": ([], {"bucket": "2", "bucket-key": "id"}),
    "keys": (["id"], {"bucket": "2"}),
    "keys, dynamic": (["id"], {}),
    "keys, sequence": (["id"], {"bucket": "1", "sequence.field": "n"}),
}
FEW = ("appended", "keys")
MARKS = {"evolving": ()} | dict.fromkeys(FEW, pytest.mark.everywhere)


def create(spark, warehouse, name, ids=range(1, 7)):
    keys, options = TABLES[name]
    table = Table.create(f"{warehouse}/db.db/t", Schema(COLUMNS, primary_keys=keys, options=options))
    for part in (ids[:3], ids[3:]):
        table.write(pa.table({"id": part, "v": [f"v{k}" for k in part], "n": list(part)}, COLUMNS))
    return table, paimon_spark.PaimonTable.forPath(spark, table.path)


def rows_of(table, columns=None):
    return sorted(tuple(row.values()) for row in table.to_arrow(columns).to_pylist())


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, pytest.mark.more)) for name in TABLES])
def test_update_delete_and_merge_change_exactly_the_rows_that_match(spark, warehouse, name):
    table, changed = create(spark, warehouse, name)
    before = table.snapshot().id
    result = changed.update("id in (1, 4)", {"v": "concat(v, '!')", "n": F.col("n") + 10})
    assert (result.num_updated_rows, result.num_affected_rows) == (2, 2)
    assert result.snapshot.id > before
    assert changed.delete(F.col("id") == 2).num_deleted_rows == 1
    assert changed.update("id = 77", {"v": "'x'"}) == RowChanges()
    assert rows_of(table) == [(1, "v1!", 11), (3, "v3", 3), (4, "v4!", 14), (5, "v5", 5), (6, "v6", 6)]
    source = spark.createDataFrame([(1, "s1", 50), (3, "s3", 50), (9, "s9", 9)], "id long, v string, n long")
    builder = changed.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete("s.id = 3")
    builder = builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().whenNotMatchedBySourceDelete("t.id = 4")
    actual = builder.whenNotMatchedBySourceUpdate("t.id = 5", {"t.v": "concat('old ', t.v)"}).execute()
    assert (actual.num_updated_rows, actual.num_deleted_rows, actual.num_inserted_rows) == (2, 2, 1)
    assert rows_of(table) == [(1, "s1", 50), (5, "old v5", 5), (6, "v6", 6), (9, "s9", 9)]


@pytest.mark.parametrize("name", [pytest.param("tracked", marks=pytest.mark.more), "evolving"])
def test_conditions_name_row_ids(spark, warehouse, name):
    table, changed = create(spark, warehouse, name)
    ids = {row["id"]: row["_ROW_ID"] for row in table.to_arrow(["id", "_ROW_ID"]).to_pylist()}
    assert changed.update(f"_ROW_ID = {ids[4]}", {"v": "'new'"}).num_updated_rows == 1
    assert changed.delete(f"_row_id IN ({ids[1]}, {ids[4]}) AND n > 1").num_deleted_rows == 1
    assert changed.delete(F.col("_ROW_ID") == ids[5]).num_deleted_rows == 1
    (last,) = table.to_arrow(["_SEQUENCE_NUMBER"], filter="id = 6").column(0).to_pylist()
    assert changed.delete(f"_SEQUENCE_NUMBER = {last} AND id = 6").num_deleted_rows == 1
    assert changed.delete(col("_ROW_ID") < ids[2]).num_deleted_rows == 1
    live = table.to_arrow(["id", "_ROW_ID"]).to_pylist()
    assert {row["id"]: row["_ROW_ID"] for row in live} == {2: ids[2], 3: ids[3]}


NESTED = (
    "id INT, s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<a: INT, b: STRING>>, m MAP<STRING, STRUCT<a: INT, b: STRING>>"
)
REORDERED = {
    "s": "named_struct('B', '7', 'a', 70)",
    "l": "array(named_struct('b', '8', 'a', 80), NULL)",
    "m": "map('k', named_struct('b', '9', 'a', 90))",
}


def nested(spark, path):
    values = [(1, (1, "1"), [(1, "1")], {"k": (1, "1")}), (2, None, None, None)]
    spark.createDataFrame(values, NESTED).coalesce(1).write.format("paimon").mode("append").save(path)
    return paimon_spark.PaimonTable.forPath(spark, path)


def nested_rows(path):
    return {row["id"]: (row["s"], row["l"], row["m"]) for row in Table.open(path).to_arrow().to_pylist()}


@pytest.mark.everywhere
@pytest.mark.parametrize("how", ["update", pytest.param("merge", marks=pytest.mark.more)])
def test_fields_of_structs_are_assigned_by_name(spark, warehouse, how):
    path = f"{warehouse}/db.db/t"
    changed = nested(spark, path)
    if how == "update":
        changed.update("id = 1", {**REORDERED, "l": F.expr(REORDERED["l"])})
    else:
        source = spark.sql("SELECT 1 AS id, " + ", ".join(f"{value} AS {name}" for name, value in REORDERED.items()))
        merge = changed.alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdate(set={"t.s": "s.s", "l": F.col("s.l"), "m": "s.m"}).execute()
    assert nested_rows(path) == {
        1: ({"a": 70, "b": "7"}, [{"a": 80, "b": "8"}, None], [("k", {"a": 90, "b": "9"})]),
        2: (None, None, None),
    }


@pytest.mark.more
def test_fields_of_structs_are_assigned_by_name_to_schema_that_grows(spark, warehouse):
    path = f"{warehouse}/db.db/t"
    changed = nested(spark, path).alias("t")
    values = "named_struct('c', 5, 'b', '7', 'a', 70)"
    source = spark.sql(f"SELECT 1 AS id, {values} AS s, array({values}) AS l, map('k', {values}) AS m").alias("s")
    merge = changed.merge(source, "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdate(set={"s": "s.s", "l": "s.l", "m": "s.m"}).execute()
    part = {"a": 70, "b": "7", "c": 5}
    assert nested_rows(path) == {1: (part, [part], [("k", part)]), 2: (None, None, None)}


def test_values_that_do_not_fit_struct_are_refused_by_its_path(spark, warehouse):
    path = f"{warehouse}/db.db/t"
    changed = nested(spark, path)
    for values, error, named in (
        ({"s": "named_struct('b', 'x')"}, InvalidInputError, r"new value of s lacks a: it has the fields \['b'\]"),
        ({"l": "array(named_struct('a', 1))"}, InvalidInputError, "new value of l.element lacks b"),
        ({"m": "map('k', named_struct('a', 1, 'b', 'x', 'c', 1))"}, InvalidInputError, "m.value has c, which the"),
        ({"s": "named_struct('a', 1L << 40, 'b', 'x')"}, Exception, "'s.a' of type int cannot hold 1099511627776"),
        ({"l": "array(named_struct('a', 'x', 'b', 'x'))"}, Exception, "'l.element.a' of type int cannot hold x"),
    ):
        with pytest.raises(error, match=named):
            changed.update("id = 1", values)
    assert Table.open(path).snapshot().id == 1


@pytest.mark.more
def test_changed_rows_keep_their_ids(spark, warehouse):
    table, changed = create(spark, warehouse, "tracked")
    changed.update("id = 2", {"v": "'x'"})
    source = spark.createDataFrame([(5, "five"), (8, "eight")], "id long, v string")
    merge = changed.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "v": "s.v"}).execute()
    first, second = 3, 4  # the snapshots of the two statements
    actual = rows_of(table, ["id", "_ROW_ID", "_SEQUENCE_NUMBER", "v"])
    new = [row[1] for row in actual if row[0] == 8]
    assert actual == [
        (1, 0, 1, "v1"),
        (2, 1, first, "x"),
        (3, 2, 1, "v3"),
        (4, 3, 2, "v4"),
        (5, 4, second, "five"),
        (6, 5, 2, "v6"),
        (8, new[0], second, "eight"),
    ]
    assert new[0] > 5
    table.compact(full=True)
    assert rows_of(table, ["id", "_ROW_ID", "_SEQUENCE_NUMBER", "v"]) == actual


@pytest.mark.more
def test_partial_updates_change_columns_outside_groups(spark, warehouse):
    schema = pa.schema([*COLUMNS, ("g", pa.int32()), ("s", pa.int32())])
    options = {
        "bucket": "1",
        "merge-engine": "partial-update",
        "fields.g.sequence-group": "s",
        "fields.s.aggregate-function": "sum",
    }
    table = Table.create(f"{warehouse}/db.db/p", Schema(schema, primary_keys=["id"], options=options))
    table.write(pa.table({"id": [1, 2], "v": ["a", None], "n": [1, 2], "g": [5, 5], "s": [10, 10]}, schema))
    changed = paimon_spark.PaimonTable.forPath(spark, table.path)
    assert changed.update("id = 1 or v is null", {"v": "if(id = 1, 'x', null)"}).num_updated_rows == 2
    source = spark.createDataFrame([(2, 22), (3, 33)], "id long, n int").alias("s")
    merge = changed.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"n": "s.n"})
    assert merge.whenNotMatchedInsert(values={"id": "s.id", "n": "s.n"}).execute().num_affected_rows == 2
    assert rows_of(table) == [(1, "x", 1, 5, 10), (2, None, 22, 5, 10), (3, None, 33, None, None)]
    for values, error, named in (
        ({"s": "1"}, UnsupportedError, "cannot change s: a sequence group"),
        ({"g": "9"}, UnsupportedError, "cannot change g: a sequence group"),
        ({"n": "null"}, Exception, "column n cannot become NULL"),
    ):
        with pytest.raises(error, match=named):
            changed.update("id = 1", values)


def test_statements_that_would_not_show_or_are_wrong_are_refused(spark, warehouse):
    table, changed = create(spark, warehouse, "keys, sequence")
    last = table.snapshot().id
    source = spark.createDataFrame([(1, "a", 0), (1, "b", 9)], "id long, v string, n int").alias("s")
    merge = changed.alias("t").merge(source, "t.id = s.id")
    late = spark.createDataFrame([(1, "a", 0)], "id long, v string, n int").alias("s")
    other_key = changed.alias("t").merge(late.withColumn("id", F.lit(2)), "t.v = 'v1'").whenMatchedUpdateAll()
    for run, error, named in (
        (lambda: changed.update(None, {"id": "1"}), UnsupportedError, "cannot change id"),
        (lambda: changed.update(None, {}), InvalidInputError, "no column gets a new value"),
        (lambda: changed.update(None, {"w": "1"}), InvalidInputError, "'w'"),
        (lambda: changed.update("id = 1", {"n": "3000000000"}), Exception, "cannot hold 3000000000"),
        (lambda: changed.update("id = 5", {"n": "4"}), Exception, "sequence field n is older"),
        (lambda: merge.execute(), InvalidInputError, "has no clause"),
        (lambda: merge.whenMatchedUpdateAll().execute(), Exception, "several source rows match"),
        (lambda: other_key.execute(), Exception, "cannot change key id"),
        (
            lambda: merge.whenNotMatchedInsert(values={"v": "s.v", "V": "s.v"}).execute(),
            InvalidInputError,
            "two new values",
        ),
    ):
        with pytest.raises(error, match=named):
            run()
    assert table.snapshot().id == last


def test_statements_that_would_cut_digits_are_refused(spark, warehouse):
    """Spark has microseconds: a row that it writes again would lose its nanoseconds, or not be found by its key."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("t", pa.timestamp("ns")), ("v", pa.int32())])
    rows = pa.table({"id": [1], "t": pa.array([1_001], pa.timestamp("ns")), "v": [1]}, schema)
    for name, keys, options in (
        ("plain", [], {}),
        ("keyed", ["id"], {"bucket": "1"}),
        ("ordered", ["id"], {"bucket": "1", "sequence.field": "t"}),
    ):
        table = Table.create(f"{warehouse}/db.db/{name}", Schema(schema, primary_keys=keys, options=options))
        table.write(rows)
        changed = paimon_spark.PaimonTable.forPath(spark, table.path)
        with pytest.raises(UnsupportedError, match=r"column t of type TIMESTAMP\(9\) would lose its digits"):
            changed.update("id = 1", {"v": "2"})
        merge = changed.alias("t").merge(spark.range(5).alias("s"), "t.id = s.id")
        with pytest.raises(UnsupportedError, match="would lose its digits"):
            merge.whenMatchedUpdate(set={"v": "2"}).execute()
        if name == "ordered":
            with pytest.raises(UnsupportedError, match="DELETE is not possible: column t"):
                changed.delete("id = 1")
        assert table.to_arrow().equals(rows)


@pytest.mark.more
def test_merge_into_empty_table_inserts(spark, warehouse):
    for name in ("keys", "appended"):
        table, changed = create(spark, f"{warehouse}/{name}", name, ids=[])
        source = spark.createDataFrame([(1, "a", 0)], "id long, v string, n int").alias("s")
        merge = changed.alias("t").merge(source, "t.id = s.id").whenMatchedDelete().whenNotMatchedInsertAll()
        assert merge.execute().num_inserted_rows == 1
        assert merge.execute().num_deleted_rows == 1
        assert rows_of(table) == []


@pytest.mark.more
def test_columns_of_rows_with_ids_are_replaced_with_inserts(spark, warehouse):
    options = {**TRACKED, "data-evolution.enabled": "true"}
    table = Table.create(f"{warehouse}/db.db/e", Schema(COLUMNS, options=options))
    for part in ([1, 2, 3], [4, 5, 6]):
        table.write(pa.table({"id": part, "v": [f"v{k}" for k in part], "n": part}, COLUMNS))
    changed = paimon_spark.PaimonTable.forPath(spark, table.path)
    result = changed.update("id in (1, 5, 6)", {"v": "concat(v, n)"})
    assert (result.num_updated_rows, result.snapshot.commit_kind) == (3, "APPEND")
    live = table.to_arrow(["id", "v", "n", "_ROW_ID"])
    assert [tuple(row.values()) for row in live.sort_by("id").to_pylist()] == [
        (1, "v11", 1, 0), (2, "v2", 2, 1), (3, "v3", 3, 2), (4, "v4", 4, 3), (5, "v55", 5, 4), (6, "v66", 6, 5)
    ]  # fmt: skip
    source = spark.createDataFrame([(3, 30), (9, 90)], "id long, n int").alias("s")
    merge = changed.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"n": "s.n"})
    actual = merge.whenNotMatchedInsert(values={"id": "s.id", "n": "s.n"}).execute()
    assert (actual.num_updated_rows, actual.num_inserted_rows) == (1, 1)
    newest = table.to_arrow(["v", "_SEQUENCE_NUMBER"], filter="id = 3")["_SEQUENCE_NUMBER"].to_pylist()
    assert newest == [actual.snapshot.id]
    assert rows_of(table)[2:] == [(3, "v3", 30), (4, "v4", 4), (5, "v55", 5), (6, "v66", 6), (9, None, 90)]
    twice = changed.alias("t").merge(source.union(source).alias("s"), "t.id = s.id")
    for run, named in (
        (lambda: changed.delete("id = 1"), "can only be deleted with"),
        (lambda: twice.whenMatchedUpdate(set={"n": "0"}).execute(), "several source rows match"),
        (lambda: changed.update("id = 1", {"id": "null"}), "NOT NULL"),
    ):
        with pytest.raises(Exception, match=named):
            run()


@pytest.mark.parametrize("statement", ["update", "merge", "delete"])
@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.more) for name in TABLES]
)
def test_column_added_during_statement_keeps_its_values(spark, warehouse, monkeypatch, name, statement):
    """The statement was analysed without the column, so it must not write rows again that have a value in it."""
    table, changed = create(spark, warehouse, name)
    run = write.retry_in_turn

    def late(root, attempt, times):
        altered = table.alter([AddColumn("new", "INT")])
        rows = {"id": [1, 9], "v": ["late", "late"], "n": [7, 7], "new": [70, 90]}
        altered.write(pa.table(rows, altered.arrow_schema))
        return run(root, attempt, times)

    monkeypatch.setattr(write, "retry_in_turn", late)
    source = spark.createDataFrame([(9, "s", 1)], "id long, v string, n int")
    merged = changed.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll()
    try:
        match statement:
            case "update":
                changed.update("id = 9", {"v": "'changed'"})
            case "merge":
                merged.execute()
            case "delete":
                changed.delete("id = 1 or id = 2")
    except TableChangedError:
        pass
    else:
        assert statement == "delete"
    kept = Table.open(table.path).to_arrow(["id", "new"], filter="id = 9").to_pylist()
    assert kept == [{"id": 9, "new": 90}]
