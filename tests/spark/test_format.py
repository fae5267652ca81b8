"""``format("paimon")`` through a Spark session of any kind: write, read back, change, travel, prune."""

import datetime
import shutil
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

import paimon_spark
from paimon_core.schema.schema import Schema
from paimon_core.table import Table

pytestmark = pytest.mark.spark
everywhere = pytest.mark.everywhere
ORDERS = "id long, dt string, amount decimal(10,2), note string"


@pytest.fixture
def path(warehouse):
    return f"{warehouse}/db.db/orders"


def orders(spark, *rows):
    return spark.createDataFrame(list(rows), ORDERS)


def save(frame, path, mode="append", **options):
    frame.write.format("paimon").mode(mode).options(**{k.replace("_", "-"): v for k, v in options.items()}).save(path)


def load(spark, path, **options):
    return spark.read.format("paimon").options(**options).load(path)


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


A, B, C = (1, "d1", Decimal("1.50"), "a"), (2, "d1", Decimal("2.50"), "b"), (3, "d2", None, None)
KEYED = {"primary_key": "dt,id", "partition": "dt", "bucket": "2"}


@everywhere
def test_variants_are_written_and_read_back(spark, path):
    texts = ['{"a":1,"b":[true,null,"x"]}', "7", None]
    frame = spark.createDataFrame(list(enumerate(texts)), "id int, j string").selectExpr("id", "parse_json(j) AS v")
    save(frame, path)
    back = load(spark, path)
    assert back.schema["v"].dataType.simpleString() == "variant"
    actual = back.selectExpr("id", "to_json(v)", "variant_get(v, '$.a', 'int')").collect()
    assert sorted(tuple(row) for row in actual) == [(0, texts[0], 1), (1, "7", None), (2, None, None)]


def test_blobs_are_written_and_read_back(spark, path):
    values = [(i, None if i % 4 == 1 else bytes([i]) * (i * 500), f"s{i}") for i in range(12)]
    frame = spark.createDataFrame(values, "k int, b binary, s string").repartition(2)
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "b"}
    save(frame, path, **options, **{"blob.target-file-size": "4 kb"})
    assert [str(f.type) for f in Table.open(path).schema.fields] == ["INT", "BLOB", "STRING"]
    assert any(f.file_name.endswith(".blob") for f in Table.open(path).scan().plan().splits[0].files)
    back = load(spark, path)
    assert back.schema["b"].dataType.simpleString() == "binary"
    assert sorted((r.k, r.b, r.s) for r in back.collect()) == values
    save(frame.filter("k > 9"), path, mode="overwrite")
    assert sorted((r.k, r.b) for r in load(spark, path).select("b", "k").collect()) == [v[:2] for v in values[10:]]


# ---- append, upsert, delete


@everywhere
def test_append_creates_table_and_adds_to_it(spark, path):
    save(orders(spark, A, B), path)
    save(orders(spark, C), path)
    assert rows(load(spark, path)) == [A, B, C]
    table = Table.open(path)
    assert not table.schema.primary_keys
    assert len(table.snapshots()) == 2


@everywhere
def test_append_to_keyed_table_upserts(spark, path):
    save(orders(spark, A, B, C).repartition(3), path, **KEYED)
    newer = (2, "d1", None, "newer")
    save(orders(spark, newer).select("note", "amount", "dt", "id"), path)
    assert rows(load(spark, path)) == [A, newer, C]
    table = Table.open(path)
    assert (table.schema.primary_keys, table.schema.partition_keys) == (("dt", "id"), ("dt",))
    assert [field.type.nullable for field in table.schema.fields] == [False, False, True, True]


def test_names_may_differ_in_case_at_every_depth(spark, path):
    columns = (
        "id INT, s STRUCT<a: INT, b: STRUCT<c: INT>>, l ARRAY<STRUCT<x: INT, y: INT>>, m MAP<STRING, STRUCT<v: INT>>"
    )
    save(spark.createDataFrame([], columns), path)
    values = (1, (1, (2,)), [(3, 4)], {"k": (5,)})
    frame = spark.createDataFrame([values], columns.upper().replace("Y: INT", "y: INT"))
    save(frame, path)
    assert [tuple(row) for row in load(spark, path).collect()] == [values]
    with pytest.raises(Exception, match=r"column 's'.*has no field 'Z'"):
        save(frame.select("id", F.struct(F.lit(1).alias("Z")).alias("s")), path)


@everywhere
def test_row_kind_column_deletes_and_is_not_stored(spark, path):
    save(orders(spark, A, B, C), path, **KEYED)
    changes = orders(spark, A, (2, "d1", Decimal("9.00"), "u")).withColumn(
        "op", F.when(F.col("id") == 1, "-D").otherwise("+U")
    )
    save(changes, path, row_kind_column="op")
    assert rows(load(spark, path)) == [(2, "d1", Decimal("9.00"), "u"), C]
    assert load(spark, path).columns == ["id", "dt", "amount", "note"]


def test_row_kind_column_of_first_write_is_not_stored(spark, path):
    save(orders(spark, A, B).withColumn("op", F.lit("+I")), path, row_kind_column="OP", **KEYED)
    assert load(spark, path).columns == ["id", "dt", "amount", "note"]


@everywhere
def test_many_tasks_upserting_one_bucket_keep_one_row_per_key(spark, path):
    keys = spark.range(0, 4000, numPartitions=8).selectExpr("id % 500 AS k", "id AS v", "'x' AS dt")
    save(keys, path, primary_key="k", bucket="1")
    got = load(spark, path).agg(F.count("*"), F.countDistinct("k")).first()
    assert tuple(got) == (500, 500)


# ---- overwrite


@everywhere
def test_overwrite_replaces_whole_table_or_partitions_in_data(spark, path):
    save(orders(spark, A, B, C), path, **KEYED)
    only = (7, "d1", None, "only")
    save(orders(spark, only), path, mode="overwrite", partitionOverwriteMode="dynamic")
    assert rows(load(spark, path)) == [C, only]
    save(orders(spark, A), path, mode="overwrite")
    assert rows(load(spark, path)) == [A]


def test_dynamic_overwrite_without_rows_changes_nothing(spark, path):
    save(orders(spark, A, C), path, **KEYED)
    save(orders(spark).where("false"), path, mode="overwrite", dynamic_partition_overwrite="true")
    assert rows(load(spark, path)) == [A, C]


def test_static_overwrite_without_rows_empties_table(spark, path):
    save(orders(spark, A, C), path)
    save(orders(spark).where("false"), path, mode="overwrite")
    assert rows(load(spark, path)) == []


def test_overwrite_creates_table_too(spark, path):
    save(orders(spark, A), path, mode="overwrite")
    assert rows(load(spark, path)) == [A]


# ---- reading


@everywhere
def test_time_travel_by_every_name(spark, path):
    save(orders(spark, A), path)
    save(orders(spark, B), path)
    first = Table.open(path).snapshots()[0]
    moments = [
        {"scan.snapshot-id": "1"},
        {"snapshot-id": "1"},
        {"versionAsOf": "1"},
        {"scan.version": "1"},
        {"scan.timestamp-millis": str(first.time_millis)},
        {"as-of-timestamp": str(first.time_millis)},
        {"timestampAsOf": _utc(first.time_millis) + "+00:00"},
        {"timestampAsOf": _utc(first.time_millis), "timeZone": "UTC"},
    ]
    for moment in moments:
        assert rows(load(spark, path, **moment)) == [A], moment
    assert rows(load(spark, path)) == [A, B]


@everywhere
def test_columns_and_schema_narrow_read(spark, path):
    save(orders(spark, A, B, C), path, **KEYED)
    assert load(spark, path, columns="note, id").columns == ["note", "id"]
    assert rows(load(spark, path, columns="note,id").where("note is not null")) == [("a", 1), ("b", 2)]
    narrow = spark.read.format("paimon").schema("amount decimal(10,2), ID long").load(path)
    assert narrow.columns == ["amount", "ID"]
    assert sorted(row.ID for row in narrow.collect()) == [1, 2, 3]


def test_schema_may_ask_for_wider_numbers(spark, path):
    save(spark.createDataFrame([(1, 2.5)], "i int, f float"), path)
    wide = spark.read.format("paimon").schema("f double, i long").load(path)
    assert wide.collect() == [Row(f=2.5, i=1)]


@everywhere
def test_filter_option_keeps_matching_rows_only(spark, path):
    save(orders(spark, A, B, C), path, **KEYED)
    assert rows(load(spark, path, filter="id = 1 OR note IS NULL")) == [A, C]
    assert rows(load(spark, path, filter="dt = 'd1' AND amount > 2", columns="id")) == [(2,)]


def _utc(millis):
    """A time in UTC as text without a zone."""
    return datetime.datetime.fromtimestamp(millis / 1000 + 0.0005, datetime.timezone.utc).isoformat(" ")[:26]


CONDITIONS = [
    "id = 2",
    "id >= 2 AND dt = 'd1'",
    "id IN (1, 3, 99)",
    "id NOT IN (1, 3)",
    "note IS NULL",
    "note IS NOT NULL AND NOT note LIKE 'a%'",
    "note <=> NULL",
    "NOT (note <=> 'a')",
    "amount > 1.75",
    "amount IN (1.50, 2.50) OR id = 3",
    "note LIKE '%b'",
    "note LIKE '%a%'",
    "id > 2.5",
    "dt < 'd2' AND id <> 1",
    "id = 99",
]


@pytest.mark.more
@everywhere
def test_filters_work_with_pushdown_on_and_off(spark, path, python_reads):
    save(expected := orders(spark, A, B, C), path, **KEYED)
    for setting in ("true", "false"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", setting)
        try:
            for condition in CONDITIONS:
                assert rows(load(spark, path).where(condition)) == rows(expected.where(condition)), condition
        finally:
            spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_option_filter_leaves_out_files(spark, path):
    save(orders(spark, A, B, C), path, **KEYED)
    read = load(spark, path, **{"source.split.target-size": "1 b"}, filter="dt = 'd2'")
    assert read.select(F.spark_partition_id()).distinct().count() == 1
    shutil.rmtree(f"{path}/dt=d1")  # nothing of partition d1 is opened
    assert rows(read) == [C]


def test_small_batches_and_many_splits_give_same_rows(spark, path):
    save(spark.range(1000).repartition(3), path)
    read = load(spark, path, **{"read.arrow-batch-rows": "7", "source.split.target-size": "1 b"})
    assert rows(read) == [(i,) for i in range(1000)]


def test_temporary_view_and_sql_options(spark, path):
    save(orders(spark, A), path)
    save(orders(spark, B), path)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING paimon OPTIONS (path '{path}', `scan.snapshot-id` '1')")
    assert spark.sql("SELECT id, note FROM v").collect() == [Row(id=1, note="a")]


def test_warehouse_and_table_name_table(spark, warehouse):
    orders(spark, A).write.format("paimon").mode("append").options(warehouse=warehouse, table="db.t").save()
    assert rows(load(spark, f"{warehouse}/db.db/t")) == [A]
    assert rows(spark.read.format("paimon").options(warehouse=warehouse, table="db.t").load()) == [A]


def test_empty_table_and_empty_partitions(spark, path):
    save(orders(spark).where("false"), path)
    assert rows(load(spark, path)) == []
    save(orders(spark, A).repartition(5), path)
    assert rows(load(spark, path)) == [A]


@pytest.mark.more
def test_join_of_two_tables_and_self_join(spark, path):
    save(orders(spark, A, B), path)
    table = load(spark, path)
    assert table.alias("l").join(table.alias("r"), "id").count() == 2


# ---- types

ALL_TYPES = """
    b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double, dec decimal(38,10), s string,
    bin binary, day date, ts timestamp, ntz timestamp_ntz, arr array<int>, m map<string, bigint>,
    st struct<a: int, b: array<struct<c: string>>>, odd_name int
"""


def typed_rows():
    utc = datetime.timezone.utc
    return [
        (
            True,
            -128,
            32767,
            -(2**31),
            2**63 - 1,
            1.5,
            float("nan"),
            Decimal("1234567890.0123456789"),
            "ä€😀",
            bytearray(b"\x00\xff"),
            datetime.date(1582, 10, 15),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 456789, utc),
            datetime.datetime(1900, 1, 1, 0, 0, 0, 1),
            [1, None, 3],
            {"k": None, "l": 1},
            Row(a=1, b=[Row(c="x"), None]),
            5,
        ),
        tuple([None] * 17),
        (
            False,
            0,
            0,
            0,
            0,
            float("-inf"),
            -0.0,
            Decimal("-0.0000000001"),
            "",
            bytearray(),
            datetime.date(9999, 12, 31),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, utc),
            datetime.datetime(9999, 12, 31),
            [],
            {},
            Row(a=None, b=[]),
            0,
        ),
    ]


@everywhere
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.cases(1)
def test_every_type_survives(spark, path, file_format):
    frame = spark.createDataFrame(typed_rows(), ALL_TYPES)
    if file_format == "orc":  # its readers disagree on instants before 1970 that are finer than a millisecond
        frame = frame.withColumns({c: F.date_trunc("second", c).cast(frame.schema[c].dataType) for c in ("ts", "ntz")})
    save(frame, path, **{"file.format": file_format})
    back = load(spark, path)
    assert back.schema == frame.schema
    assert sorted(map(repr, back.collect())) == sorted(map(repr, frame.collect()))


def test_odd_column_names_survive(spark, path):
    frame = spark.sql("SELECT 1 AS `a b`, 2 AS `c.d`, 3 AS `ä=`, 4 AS `e/f`")
    save(frame, path, primary_key="c.d", bucket="1")
    assert load(spark, path).where("`c.d` = 2").collect() == frame.collect()


def test_types_that_spark_stores_as_other_types(spark, path):
    schema = pa.schema([pa.field("n9", pa.timestamp("ns")), pa.field("t", pa.time32("ms")), pa.field("id", pa.int32())])
    table = Table.create(path, Schema(schema))
    table.write(pa.table({"n9": [-1, 1_000_000_999], "t": [3_600_001, None], "id": [1, 2]}, schema))
    back = load(spark, path)
    assert [f.dataType.simpleString() for f in back.schema] == ["timestamp_ntz", "time(3)", "int"]
    got = back.selectExpr("cast(n9 as string)", "id").orderBy("id").collect()
    assert [row[0] for row in got] == ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:01"]


# ---- failures


@everywhere
def test_failed_job_leaves_table_as_it_was(spark, path):
    save(orders(spark, A), path, **KEYED)
    bad = spark.range(0, 100, numPartitions=2).selectExpr(
        "id",
        "'d1' AS dt",
        "cast(null as decimal(10,2)) AS amount",
        "cast(if(id = 99, raise_error('boom'), 'x') AS string) AS note",
    )
    with pytest.raises(Exception, match="boom"):
        save(bad, path)
    assert rows(load(spark, path)) == [A]
    assert len(Table.open(path).snapshots()) == 1


@everywhere
def test_task_that_fails_once_is_retried_without_duplicates(spark, path, tmp_path):
    flag = tmp_path / "failed-once"

    def fail_once(batches):
        for batch in batches:
            yield batch
            if 7 in batch.column(0).to_pylist() and not flag.exists():
                flag.touch()
                raise RuntimeError("first attempt")

    frame = spark.range(0, 20, numPartitions=2).mapInArrow(fail_once, "id long")
    save(frame, path)
    assert flag.exists()
    assert rows(load(spark, path)) == [(i,) for i in range(20)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"primary-kye": "id"}, "unknown option 'primary-kye'.*did you mean 'primary-key'"),
        ({"primary-key": "nope"}, "'nope' does not exist in the DataFrame"),
        ({"primary-key": "id,id"}, "names a column twice"),
        ({"partitionOverwriteMode": "some"}, "one of static, dynamic"),
        ({"overwriteSchema": "true"}, "replacing the schema while writing is not supported yet"),
        ({"scan.snapshot-id": "1"}, "is for reads"),
        ({"row-kind-column": "nope"}, "'nope' does not exist"),
        ({"pk-clustering-override": "true", "primary-key": "id", "bucket": "1"}, "pk-clustering-override"),
    ],
)
@pytest.mark.cases(2)
def test_bad_write_options_are_named(spark, path, options, message):
    with pytest.raises(Exception, match=rf"(?s){message}"):
        orders(spark, A).write.format("paimon").mode("append").options(**options).save(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"primary-key": "id"}, "option 'primary-key' = 'id'.*cannot change"),
        ({"partition": "note"}, "option 'partition' = 'note'"),
        ({"bucket": "5"}, "option 'bucket' = '5'"),
    ],
)
@pytest.mark.cases(1)
def test_layout_of_existing_table_cannot_be_changed_by_options(spark, path, options, message):
    save(orders(spark, A), path, **KEYED)
    save(orders(spark, B), path, **KEYED)  # the same options again are fine
    with pytest.raises(Exception, match=rf"(?s){message}"):
        orders(spark, A).write.format("paimon").mode("append").options(**options).save(path)
    assert rows(load(spark, path)) == [A, B]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fitler": "id = 1"}, "unknown option 'fitler'.*did you mean 'filter'"),
        ({"columns": "id,nope"}, "nope"),
        ({"filter": "nope = 1"}, "nope"),
        ({"scan.snapshot-id": "77"}, "77"),
        ({"scan.tag-name": "none"}, "none"),
        ({"scan.snapshot-id": "1", "scan.tag-name": "x"}, "each choose a snapshot"),
        ({"incremental-between": "1,2"}, "no changes from 1 to 2: it has changes from 0 to 1"),
        ({"limit": "x"}, "'limit'"),
    ],
)
@pytest.mark.cases(2)
def test_bad_read_options_are_named(spark, path, options, message):
    save(orders(spark, A), path)
    with pytest.raises(Exception, match=rf"(?s){message}"):
        load(spark, path, **options).collect()


def test_system_tables_are_read_by_path(spark, path):
    save(orders(spark, A, B), path, **{"primary-key": "id", "bucket": "1"})
    files = load(spark, path + "$files")
    assert files.schema["creation_time"].dataType.typeName() == "timestamp_ntz"
    actual = files.where("level = 0 AND partition = '{}'").selectExpr("sum(record_count)", "count(write_cols)").first()
    assert tuple(actual) == (2, 0)
    assert load(spark, path + "$snapshots").count() == 1
    log = load(spark, path + "$audit_log")
    assert log.columns[0] == "rowkind"
    assert rows(log.where("rowkind = '+I'").drop("rowkind")) == rows(load(spark, path))
    assert load(spark, path + "$binlog").selectExpr("size(id)").distinct().collect()[0][0] == 1
    assert paimon_spark.PaimonTable.forPath(spark, path + "$files").toDF().where("level >= 0").count() == files.count()
    with pytest.raises(Exception, match="can only be read"):
        save(orders(spark, C), path + "$files")


def test_missing_table_system_table_and_missing_path_are_named(spark, path):
    with pytest.raises(Exception, match=r"no table at .*orders"):
        load(spark, path)
    save(orders(spark, A), path)
    with pytest.raises(Exception, match=r"there is no system table '\$snapshot'; did you mean '\$snapshots'"):
        load(spark, path + "$snapshot")
    with pytest.raises(Exception, match="no table is named"):
        spark.read.format("paimon").load()


def test_read_optimized_view(spark, path):
    save(orders(spark, A, B), path, **{"primary-key": "id", "bucket": "1", "write-only": "true"})
    assert rows(load(spark, path + "$ro")) == []
    Table.open(path).compact(full=True)
    save(orders(spark, C), path)
    assert rows(load(spark, path + "$ro")) == rows(orders(spark, A, B))
    with pytest.raises(Exception, match="can only be read"):
        save(orders(spark, C), path + "$ro")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("CAST(NULL AS bigint) AS id, 'd1' AS dt", "(?i)id.*not null|null.*id"),
        ("1L AS id", "dt"),
        ("1L AS id, 'd1' AS dt, 'x' AS extra", "extra"),
        ("1L AS id, 'd1' AS dt, 12345678901.5BD AS amount", "amount"),
        ("1.5D AS id, 'd1' AS dt", "id"),
        ("1L AS id, 'd1' AS dt, 5 AS note", "note"),
    ],
)
@pytest.mark.cases(2)
def test_data_that_does_not_fit_is_refused(spark, path, columns, message):
    save(orders(spark, A), path, **KEYED)
    with pytest.raises(Exception, match=rf"(?s){message}"):
        save(spark.sql(f"SELECT {columns}"), path)
    assert rows(load(spark, path)) == [A]


def test_schema_that_does_not_fit_is_refused(spark, path):
    save(orders(spark, A), path)
    for schema in ("id int", "nope long", "id string"):
        with pytest.raises(Exception, match=r"(?s)column '(id|nope)'"):
            spark.read.format("paimon").schema(schema).load(path).collect()


def test_unsupported_spark_types_are_named(spark, path):
    with pytest.raises(Exception, match=r"(?s)column 'i' has Spark type interval"):
        save(spark.sql("SELECT INTERVAL '1' DAY AS i"), path)
    with pytest.raises(Exception, match=r"(?s)column 'v' has Spark type void"):
        save(spark.sql("SELECT NULL AS v"), path)


def test_odd_partition_values_survive(spark, path):
    values = ["a/b", "x=y", "50%", "two words", "ünï", "", None, "__DEFAULT_PARTITION__x"]
    frame = spark.createDataFrame([(i, v) for i, v in enumerate(values)], "id long, dt string")
    save(frame, path, partition="dt")
    assert [tuple(row) for row in load(spark, path).orderBy("id").collect()] == list(enumerate(values))


@pytest.mark.more
def test_thousand_columns_and_long_strings(spark, path):
    wide = spark.range(3).select("id", *[F.lit(i).alias(f"c{i}") for i in range(999)])
    save(wide, path)
    assert load(spark, path).agg(F.sum("c998")).first()[0] == 3 * 998
    save(spark.range(3).selectExpr("id", "repeat('x', 1048576) AS s"), path + "_long")
    assert load(spark, path + "_long").agg(F.sum(F.length("s"))).first()[0] == 3 << 20


# ---- clustered, PaimonTable, register


@everywhere
def test_clustered_gives_each_bucket_to_one_task(spark, path):
    def frame():
        return spark.range(0, 20_000, numPartitions=4).selectExpr("id", "cast(id % 3 as string) AS dt", "id AS v")

    save(frame(), path, primary_key="dt,id", partition="dt", bucket="2", write_only="true")
    save(frame().transform(paimon_spark.clustered(path)), path)
    table = Table.open(path)
    assert load(spark, path).count() == 20_000
    files = {}
    for split in table.scan().plan().splits:
        for file in split.files:
            files.setdefault(split.bucket_ref, []).append(file.file_name)
    assert len(files) == 6
    assert {len(names) for names in files.values()} == {4 + 1}


def test_clustered_without_partitions(spark, path):
    frame = spark.range(0, 100, numPartitions=3).selectExpr("cast(id as int) AS id", "current_timestamp() AS t")
    save(frame, path, primary_key="id", bucket="3")
    save(frame.transform(paimon_spark.clustered(path)), path)
    assert load(spark, path).count() == 100


def test_partition_is_overwritten_by_name_and_snapshots_have_properties(spark, path):
    rows = spark.createDataFrame([(1, 1, "a"), (2, 1, "b"), (3, 2, "c")], "id long, p int, v string")
    save(rows, path, partition="p")
    new = spark.createDataFrame([(9, 1, "new")], "id long, p int, v string")
    named = {"overwrite-partition": "P=1", "snapshot-property.run": "seven"}
    new.write.format("paimon").mode("overwrite").options(**named).save(path)
    assert sorted(map(tuple, load(spark, path).collect())) == [(3, 2, "c"), (9, 1, "new")]
    assert Table.open(path).snapshot().properties == {"run": "seven"}
    new.limit(0).write.format("paimon").mode("overwrite").options(**named).save(path)
    assert sorted(map(tuple, load(spark, path).collect())) == [(3, 2, "c")]
    save(new, path, **{"snapshot-property.by": "append"})
    assert Table.open(path).snapshot().properties == {"by": "append"}
    for wrong, said in [
        ({"overwrite-partition": "p=2"}, "leave them out, or overwrite that partition"),
        ({"overwrite-partition": "p=x"}, "'x'"),
        ({"overwrite-partition": "p=99999999999"}, "99999999999"),
        ({"overwrite-partition": "id=1"}, "partition columns of .* are p"),
    ]:
        with pytest.raises(Exception, match=said):
            new.write.format("paimon").mode("overwrite").options(**wrong).save(path)
    with pytest.raises(Exception, match="for mode overwrite"):
        save(new, path, **named)
    assert sorted(map(tuple, load(spark, path).collect())) == [(3, 2, "c"), (9, 1, "new")]


def test_watermark_chooses_snapshot(spark, path):
    save(spark.range(1), path)
    table = Table.open(path)
    for at in (1000, 2000):
        with table.writer() as writer:
            writer.write(pa.table({"id": [at]}))
            table.committer().commit(writer.prepare_commit(), watermark=at)
    actual = spark.read.format("paimon").option("scan.watermark", "1000").load(path)
    assert sorted(r.id for r in actual.collect()) == [0, 1000]
    with pytest.raises(Exception, match="startingTimestamp"):
        spark.read.format("paimon").option("startingTimestamp", "2099-01-01 00:00:00+00:00").load(path).collect()


def test_clustered_changes_nothing_for_table_without_buckets(spark, path):
    save(orders(spark, A), path)
    frame = orders(spark, A)
    assert frame.transform(paimon_spark.clustered(path)) is frame
    save(frame.transform(paimon_spark.clustered(path, 3)), path)
    assert load(spark, path).count() == 2 * frame.count()
    with pytest.raises(Exception, match="tasks must be 1 or more, got 0"):
        paimon_spark.clustered(path, 0)


@everywhere
def test_paimon_table_shows_rows_and_history(spark, path):
    save(orders(spark, A), path, **KEYED)
    save(orders(spark, B), path, mode="overwrite")
    table = paimon_spark.PaimonTable.forPath(spark, path)
    assert rows(table.toDF()) == [B]
    assert rows(table.toDF(versionAsOf="1")) == [A]
    history = table.history().select("snapshot_id", "commit_kind", "total_record_count").collect()
    assert [tuple(row) for row in history] == [(1, "APPEND", 1), (2, "OVERWRITE", 1)]


@pytest.mark.more
def test_register_is_harmless_for_discovered_format(spark, path):
    paimon_spark.register(spark)
    save(orders(spark, A), path)
    assert rows(load(spark, path)) == [A]


def tasks_of(frame):
    return frame.select(F.spark_partition_id()).distinct().count()


def test_one_large_file_is_read_by_several_tasks(spark, path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
    table = Table.create(path, Schema(schema, primary_keys=["id"], options={"bucket": "1"}))
    values = range(0, 3_000_000_000, 10_000)
    table.write(pa.table({"id": range(len(values)), "v": values}, schema))
    (split,) = table.scan().plan().splits
    assert len(split.files) == 1
    assert tasks_of(load(spark, path)) == 1
    cut = load(spark, path, minPartitions="1", **{"source.split.target-size": f"{split.size // 4 + 1} b"})
    assert tasks_of(cut) == 4
    assert cut.agg(F.count("*"), F.countDistinct("id"), F.sum("v")).first() == (len(values), len(values), sum(values))
    assert cut.where("id BETWEEN 1000 AND 1999").count() == 1000


@everywhere
def test_small_files_share_tasks_and_table_fills_slots_of_its_cluster(spark, path, python_reads):
    save(spark.range(40).withColumn("p", F.col("id")), path, partition="p")
    assert tasks_of(load(spark, path)) == 1  # a task has no less than an eighth of 128 MB, which 64 files count as
    assert tasks_of(load(spark, path, **{"source.split.open-file-cost": "1 mb"})) == 3
    assert tasks_of(load(spark, path, minPartitions="1")) == 1
    cost = {"source.split.open-file-cost": "4 mb"}
    assert tasks_of(load(spark, path, **cost)) == 8  # the least number of tasks where none is given
    assert tasks_of(load(spark, path, **cost, **{"read.min-tasks": "1"})) == 2
    assert tasks_of(load(spark, path, **cost, **{"read.min-tasks": "1", "source.split.target-size": "16 mb"})) == 10
    table = paimon_spark.PaimonTable.forPath(spark, path, **cost)
    assert tasks_of(table.toDF()) == 2
    assert tasks_of(table.toDF(minPartitions="5")) == 5
    assert rows(table.toDF()) == [(i, i) for i in range(40)]
    changes = {**cost, "incremental-between": "0,1", "read.min-tasks": "1"}
    assert tasks_of(load(spark, path, **changes)) == 2
    assert rows(load(spark, path, **changes)) == [(i, i) for i in range(40)]
