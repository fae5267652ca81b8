"""Types between Paimon, Arrow and Spark; no Spark session is needed."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_spark.types import expected_arrow_schema, for_spark, paimon_fields, projected, spark_schema, spark_type

PAIRS = [
    ("BOOLEAN", "boolean"),
    ("TINYINT", "tinyint"),
    ("SMALLINT", "smallint"),
    ("INT", "int"),
    ("BIGINT", "bigint"),
    ("FLOAT", "float"),
    ("DOUBLE", "double"),
    ("DECIMAL(38, 18)", "decimal(38,18)"),
    ("STRING", "string"),
    ("BYTES", "binary"),
    ("DATE", "date"),
    ("TIME(3)", "time(3)"),
    ("TIMESTAMP(6)", "timestamp_ntz"),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamp"),
    ("ARRAY<INT>", "array<int>"),
    ("MAP<STRING, ARRAY<BIGINT>>", "map<string,array<bigint>>"),
    ("VARIANT", "variant"),
]
ONE_WAY = [
    ("CHAR(3)", "string"),
    ("VARCHAR(7)", "string"),
    ("BINARY(4)", "binary"),
    ("VARBINARY(4)", "binary"),
    ("TIMESTAMP(9)", "timestamp_ntz"),
    ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "timestamp"),
    ("TIME(0)", "time(0)"),
    ("TIME(9)", "time(6)"),
    ("MULTISET<STRING>", "map<string,int>"),
    ("BLOB", "binary"),
]


def field(name, text, description=None):
    return DataField(0, name, parse_type(text), description)


@pytest.mark.parametrize(("paimon", "simple"), PAIRS + ONE_WAY)
def test_paimon_types_in_spark(paimon, simple):
    assert spark_type(parse_type(paimon), "c").simpleString() == simple


@pytest.mark.parametrize(("paimon", "simple"), PAIRS)
def test_spark_types_in_paimon_and_back(paimon, simple):
    struct = spark_schema([field("c", paimon)])
    (back,) = paimon_fields(struct)
    assert back.type == parse_type(paimon)


def test_nullability_and_comments_are_kept():
    struct = spark_schema([field("c", "ROW<a INT NOT NULL, b ARRAY<STRING NOT NULL>> NOT NULL", "what it is")])
    assert struct[0].nullable is False
    assert struct[0].metadata == {"comment": "what it is"}
    assert struct[0].dataType["a"].nullable is False
    assert struct[0].dataType["b"].dataType.containsNull is False
    (back,) = paimon_fields(struct)
    assert back.type.nullable
    assert back.description == "what it is"


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (spark.DayTimeIntervalType(), "interval"),
        (spark.NullType(), "void"),
        (spark.ArrayType(spark.NullType()), "c.element"),
        (spark.StructType([spark.StructField("x", spark.YearMonthIntervalType())]), "c.x"),
    ],
)
def test_types_that_paimon_lacks_are_refused_by_name(type_, name):
    with pytest.raises(UnsupportedError, match=name):
        paimon_fields(spark.StructType([spark.StructField("c", type_)]))


def test_types_that_spark_lacks_are_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"column 'c\.element'"):
        spark_schema([field("c", "ARRAY<GEOMETRY>")])


VALUES = {
    "TIMESTAMP(3)": [datetime.datetime(2024, 1, 2, 3, 4, 5, 6000), None],
    "TIMESTAMP(0) WITH LOCAL TIME ZONE": [datetime.datetime(1969, 1, 2, tzinfo=datetime.timezone.utc), None],
    "TIME(3)": [datetime.time(1, 2, 3, 4000), None],
    "ARRAY<TIMESTAMP(3)>": [[datetime.datetime(2024, 1, 1), None], None, []],
    "MAP<STRING, TIMESTAMP(3)>": [[("a", datetime.datetime(2024, 1, 1)), ("b", None)], None, []],
    "ROW<a INT, b ARRAY<ROW<t TIMESTAMP(3)>>>": [{"a": 1, "b": [{"t": datetime.datetime(2024, 1, 1)}, None]}, None],
    "MULTISET<STRING>": [[("a", 2)], None, []],
    "DECIMAL(10, 2)": [Decimal("1.25"), None],
    "STRING": ["x", None, ""],
}


@pytest.mark.parametrize("text", VALUES)
@pytest.mark.parametrize("start", [0, 1])
def test_batches_take_exactly_sparks_schema_and_keep_values(text, start):
    """Slices included: their offsets are where nested casts go wrong."""
    fields = [field("c", text)]
    array = pa.array([None, *VALUES[text]], arrow_schema(fields).field(0).type)
    batch = pa.RecordBatch.from_arrays([array], schema=arrow_schema(fields)).slice(start)
    expected = expected_arrow_schema(spark_schema(fields))
    out = for_spark(batch, expected)
    out.validate(full=True)
    assert out.schema.equals(expected)
    assert out.to_pylist() == batch.to_pylist()


def test_nanoseconds_are_rounded_down():
    fields = [field("c", "TIMESTAMP(9)"), field("l", "TIMESTAMP(9) WITH LOCAL TIME ZONE")]
    nanos = pa.array([-1, 999, None, 1000], pa.int64())
    batch = pa.RecordBatch.from_arrays([nanos.view(f.type) for f in arrow_schema(fields)], schema=arrow_schema(fields))
    out = for_spark(batch, expected_arrow_schema(spark_schema(fields)))
    assert out.column(0).view(pa.int64()).to_pylist() == [-1, 0, None, 1]
    assert out.column(1).view(pa.int64()).to_pylist() == [-1, 0, None, 1]


def test_columns_of_right_type_are_not_copied():
    fields = [field("s", "STRING"), field("m", "MAP<STRING, INT>"), field("r", "ROW<a ARRAY<BIGINT>>")]
    schema = arrow_schema(fields)
    batch = pa.RecordBatch.from_pylist([{"s": "x", "m": [("a", 1)], "r": {"a": [1]}}], schema=schema)
    out = for_spark(batch, expected_arrow_schema(spark_schema(fields)))
    for before, after in zip(batch.columns, out.columns, strict=True):
        assert [b and b.address for b in before.buffers()] == [b and b.address for b in after.buffers()]


SIMPLE = {
    "int": spark.IntegerType(),
    "bigint": spark.LongType(),
    "smallint": spark.ShortType(),
    "string": spark.StringType(),
    "decimal(10,2)": spark.DecimalType(10, 2),
    "decimal(12,2)": spark.DecimalType(12, 2),
    "decimal(12,3)": spark.DecimalType(12, 3),
}


def struct(text):
    """A struct type from "name type[ not null]; ..." without a session to parse it."""
    columns = [column.split(" ", 2) for column in text.split("; ")]
    return spark.StructType([spark.StructField(name, SIMPLE[type_], not rest) for name, type_, *rest in columns])


TABLE = [field("id", "INT NOT NULL"), field("Name", "STRING"), field("d", "DECIMAL(10, 2)")]


def test_given_schema_picks_columns_by_name_whatever_case():
    expected = struct("name string; id bigint; d decimal(12,2)")
    assert [f.name for f in projected(TABLE, expected, "t")] == ["Name", "id", "d"]


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("nope int", "does not exist in t; it has id, Name, d"),
        ("id smallint", "is int, but the schema given has smallint"),
        ("d decimal(12,3)", r"is decimal\(10,2\)"),
        ("name string not null", "may be null"),
    ],
)
def test_schema_that_does_not_fit_is_refused(ddl, message):
    with pytest.raises(InvalidInputError, match=message):
        projected(TABLE, struct(ddl), "t")


def test_null_that_merging_left_in_not_null_column_is_refused():
    fields = (DataField(0, "v", parse_type("BIGINT NOT NULL")),)
    batch = pa.RecordBatch.from_arrays([pa.array([5, None], pa.int64())], schema=arrow_schema(fields))
    with pytest.raises(InvalidInputError, match="column 'v' is NOT NULL"):
        for_spark(batch, expected_arrow_schema(spark_schema(fields)))
