"""NULL of every type in every position, through every interface that writes rows."""

import pyarrow as pa
import pytest

import paimon_spark
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.arrow import arrow_schema, assign_ids
from paimon_core.types.datatype import NO_ID, DataField
from paimon_core.types.parse import parse_type

pytestmark = pytest.mark.spark
TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 0)", "CHAR(3)",
    "VARCHAR(5)", "STRING", "BINARY(4)", "BYTES", "DATE", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(6)", "TIMESTAMP(9)",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE", "VARIANT", "ARRAY<INT>", "ROW<x INT>",
    "MAP<STRING, INT>", "MULTISET<STRING>",
)  # fmt: skip
POSITIONS = {  # of each the type, and NULL there in SQL and in Python
    "field": ("{}", "NULL", None),
    "element": ("ARRAY<{}>", "array(NULL, NULL)", [None, None]),
    "value": ("MAP<INT, {}>", "map(1, NULL)", [(1, None)]),
    "deep": ("ARRAY<ROW<f MAP<INT, {}>>>", "array(named_struct('f', map(1, NULL)), NULL)", [{"f": [(1, None)]}, None]),
}
TOP = {f"c{i}": text for i, text in enumerate(TYPES)}
NESTED = {name: ", ".join(f"{c} {kind.format(t)}" for c, t in TOP.items()) for name, (kind, *_) in POSITIONS.items()}
TABLES = {
    "fixed": (["id"], [], {"bucket": "1"}),
    "append": ([], [], {"bucket": "-1"}),
    "cross-partition": (["id"], ["p"], {"bucket": "-1"}),
}


def created(path, name):
    keys, partitions, options = TABLES[name]
    columns = {"id": "INT NOT NULL", "p": "INT", **TOP, **{name: f"ROW<{parts}>" for name, parts in NESTED.items()}}
    fields = assign_ids([DataField(NO_ID, column, parse_type(text)) for column, text in columns.items()], 0)[0]
    return Table.create(path, Schema(fields, keys, partitions, options))


def assigned():
    """The new value of each column, as an expression whose NULLs have no type."""
    structs = {name: ", ".join(f"'{c}', {null}" for c in TOP) for name, (_, null, _) in POSITIONS.items()}
    return {**dict.fromkeys(TOP, "NULL"), **{name: f"named_struct({fields})" for name, fields in structs.items()}}


def row(number):
    return ", ".join([str(number), "1", *assigned().values()])


def frame(spark, number):
    """A row whose NULLs have the types of the table."""
    kinds = dict(spark.table("t").dtypes)
    values = {"id": str(number), "p": "1", **assigned()}
    return spark.sql(
        "SELECT " + ", ".join(f"CAST({value} AS {kinds[name]}) AS {name}" for name, value in values.items())
    )


def expected(number):
    nested = {name: dict.fromkeys(TOP, null) for name, (_, _, null) in POSITIONS.items()}
    return {"id": number, "p": 1, **dict.fromkeys(TOP), **nested}


def stream(spark, rows, path, scratch):
    rows.write.parquet(f"{scratch}/rows")
    source = spark.readStream.schema(rows.schema).parquet(f"{scratch}/rows").writeStream.format("paimon")
    source = source.option("checkpointLocation", f"{scratch}/checkpoint").trigger(availableNow=True)
    source.start(path).awaitTermination()


@pytest.mark.usefixtures("time_type")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("fixed", marks=pytest.mark.slow),
        pytest.param("append", marks=pytest.mark.slow),
        pytest.param("cross-partition", marks=pytest.mark.slow),
    ],
)
def test_nulls_through_every_interface(sql, name, tmp_path, monkeypatch):
    spark = sql.spark
    location = spark.sql(f"DESCRIBE DATABASE {sql.database}").where("info_name = 'Location'").collect()[0][1]
    table = created(f"{location}/t", name)
    shown = paimon_spark.PaimonTable.forPath(spark, table.path)
    sql(f"INSERT INTO t VALUES ({row(1)})")
    sql(f"INSERT INTO t SELECT {row(2)}")
    frame(spark, 3).write.format("paimon").mode("append").save(table.path)
    frame(spark, 4).writeTo("t").append()
    with monkeypatch.context() as patch:
        patch.setattr("paimon_spark.frame_write.FEW_ROWS", 0)  # tasks write, not the driver
        frame(spark, 5).writeTo("t").append()
    stream(spark, frame(spark, 6), table.path, tmp_path)
    table.write(pa.Table.from_pylist([expected(7)], arrow_schema(table.schema.fields)))
    values = {column: f"s.{column}" for column in assigned()}
    merge = shown.alias("t").merge(frame(spark, 1).union(frame(spark, 8)).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set=values).whenNotMatchedInsertAll().execute()
    sets = ", ".join(f"{column} = {value}" for column, value in values.items())
    source = f"(SELECT * FROM t WHERE id = 2 UNION ALL SELECT {row(9)})"
    clauses = f"WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED THEN INSERT *"
    sql(f"MERGE INTO t USING {source} s ON t.id = s.id {clauses}")
    sets = ", ".join(f"{column} = {value}" for column, value in assigned().items())
    sql(f"UPDATE t SET {sets} WHERE id = 4")
    shown.update("id = 5", assigned())
    rows = [expected(number) for number in range(1, 10)]
    assert Table.open(table.path).to_arrow().sort_by("id").to_pylist() == rows
    everything = " AND ".join(f"{column} IS NULL AND field.{column} IS NULL" for column in TOP)
    shown_rows = [
        spark.table("t").orderBy("id").collect(),
        spark.table("t").where(everything).orderBy("id").collect(),
        spark.read.format("paimon").load(table.path).orderBy("id").collect(),
    ]
    for read in shown_rows:
        assert [r["id"] for r in read] == list(range(1, 10))
        for r in read:
            assert all(r[column] is None for column in TOP)
            texts = [set(map(repr, r[name])) for name in POSITIONS]
            assert texts == [{"None"}, {"[None, None]"}, {"{1: None}"}, {"[Row(f={1: None}), None]"}]
