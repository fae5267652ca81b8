"""The table functions of changes, and the functions of ``sys``."""

import datetime
import decimal
import random
import struct

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from paimon_core.row.bucket import buckets

TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "DECIMAL(10,3)": pa.decimal128(10, 3),
    "DECIMAL(18,18)": pa.decimal128(18, 18),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
}
LENGTHS = (0, 1, 6, 7, 8, 9, 15, 16, 17, 40)
WIDTHS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}


@pytest.mark.more
@pytest.mark.versions
def test_changes_between_snapshots_tags_and_times(sql):
    sql("CREATE TABLE t (id INT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql("INSERT INTO t VALUES (1, 'd')")
    sql("DELETE FROM t WHERE id = 2")
    for number, name in ((1, "2026-01-01"), (3, "`2026-01-02`"), (3, "other")):
        sql(f"ALTER TABLE t CREATE TAG `{name.strip('`')}` AS OF VERSION {number}")
    every = [(1, "a"), (1, "d"), (2, "b"), (3, "c")]

    def rows(call):
        return sorted(sql(f"SELECT * FROM {call}"))

    assert rows("paimon_incremental_query('t', 0, 3)") == every  # a deleted row is not shown
    assert rows(f"paimon_incremental_query('pm.{sql.database}.t', '1', 1 + 1) x WHERE x.id < 9 LIMIT 1") == [(1, "d")]
    assert rows(f"paimon_incremental_query('{sql.database}.t', '2026-01-01', concat('oth', 'er'))") == [(1, "d")]
    assert rows("paimon_incremental_query('t', 0, 0)") == rows("paimon_incremental_query('t', 3, 3)") == []
    assert rows("paimon_incremental_to_auto_tag('t', '2026-01-02')") == [(1, "d")]
    assert rows("paimon_incremental_to_auto_tag('t', '2026-01-01')") == []
    assert rows("paimon_incremental_between_timestamp('t', 0, unix_millis(now()))") == every
    assert rows("paimon_incremental_between_timestamp('t', '2000-01-01', '2000-01-02 10:00:00')") == []
    assert sql("WITH w AS (SELECT id FROM paimon_incremental_query('t', 1, 3)) SELECT count(*) FROM w") == [(1,)]
    session = sql.spark.newSession()
    assert session.table(f"pm.{sql.database}.t").count() == 2
    assert session.sql(f"SELECT * FROM paimon_incremental_query('pm.{sql.database}.t', 1, 2)").count() == 1
    for arguments, message in {
        "'t', 3, 1": "the first snapshot, 3, is after",
        "'t', 1, 9": "no changes from 1 to 9: it has changes from 0 to 3",
        "'t', 'other', 2": "use two tags or two snapshots",
        "'t', 1, 'nope'": "'nope' is neither a snapshot nor a tag",
        "'t', 1": "got 2 arguments",
        "'t', NULL, 1": "or a NULL",
        "'t', rand(), 1": "argument 2 is rand.* must be a constant",
        "'nope', 1, 2": "TABLE_OR_VIEW_NOT_FOUND",
    }.items():
        with pytest.raises(Exception, match=message):
            sql(f"SELECT * FROM paimon_incremental_query({arguments})")
    with pytest.raises(Exception, match="'x' is neither epoch milliseconds nor"):
        sql("SELECT * FROM paimon_incremental_between_timestamp('t', 'x', 'y')")
    sql("ALTER TABLE t ADD COLUMN w INT")
    sql("INSERT INTO t VALUES (5, 'e', 5)")
    sql("ALTER TABLE t CREATE TAG wide")
    assert rows("paimon_incremental_query('t', 'other', 'wide')") == [(5, "e", 5)]
    sql("CREATE TABLE log (id INT) TBLPROPERTIES ('bucket' = '-1')")
    sql("INSERT INTO log VALUES (1), (1)")
    sql("ALTER TABLE log CREATE TAG a")
    sql("INSERT INTO log VALUES (1), (2)")
    sql("CALL sys.compact(table => 'log')")
    sql("ALTER TABLE log CREATE TAG b")
    assert rows("paimon_incremental_query('log', 'a', 'b')") == [(1,), (2,)]
    sql("ALTER TABLE log ADD COLUMN w INT")
    sql("INSERT INTO log VALUES (5, 5)")
    sql("ALTER TABLE log CREATE TAG wide")
    with pytest.raises(Exception, match=r"columns of .* changed between the tags 'b' and 'wide'"):
        sql("SELECT * FROM paimon_incremental_query('log', 'b', 'wide')")


@pytest.mark.versions
def test_greatest_partition_with_rows(sql):
    sql("CREATE TABLE t (a INT NOT NULL, p DATE NOT NULL) PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'a,p')")
    assert sql("SELECT sys.max_pt('t')") == [(None,)]
    sql("INSERT INTO t VALUES (1, DATE'2026-01-02'), (2, DATE'2026-01-10'), (3, DATE'0999-01-10')")
    assert sql(f"SELECT a FROM t WHERE p = pm.sys.max_pt('{sql.database}.t')") == [(2,)]
    sql("DELETE FROM t WHERE a = 2 AND p = sys.max_pt('t')")
    assert sql("SELECT sys.max_pt(concat('', 't')), count(*) FROM t") == [("2026-01-02", 2)]
    sql("CREATE TABLE flat (a STRING)")
    for call, message in {
        "max_pt('flat')": "flat has no partitions",
        "max_pt(a)": "must be a constant",
        "max_pt('nope')": "TABLE_OR_VIEW_NOT_FOUND",
        "nope(1)": "UNRESOLVED_ROUTINE",
    }.items():
        with pytest.raises(Exception, match=message):
            sql(f"SELECT sys.{call} FROM flat")
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        sql("SELECT nope(1)")


ROW_IDS = "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'"


@pytest.mark.more
def test_functions_of_blobs(sql):
    """The bytes and the text are as in Java."""
    path = "/tmp/\u00e4"
    data = b"\x02CSEDBOLB" + struct.pack("<i", len(path.encode())) + path.encode() + struct.pack("<qq", 0, -1)
    assert sql("SELECT sys.path_to_descriptor(p) FROM VALUES (:path), (NULL) AS t(p)", args={"path": path}) == [
        (data,), (None,)
    ]  # fmt: skip
    older = b"\x01" + struct.pack("<i", 2) + b"/x" + struct.pack("<qq", 5, 2**40)
    shown = [f"BlobDescriptor{{version=2, uri='{path}', offset=0, length=-1}}", None]
    shown.append(f"BlobDescriptor{{version=1, uri='/x', offset=5, length={2**40}}}")
    rows = ", ".join(
        f"({i}, {'NULL' if d is None else 'X' + repr(d.hex())})" for i, d in enumerate([data, None, older])
    )
    assert sql(f"SELECT sys.descriptor_to_string(d) FROM VALUES {rows} AS t(i, d) ORDER BY i") == [(s,) for s in shown]
    sql(f"CREATE TABLE s (k BIGINT, b BINARY COMMENT '__BLOB_FIELD') TBLPROPERTIES ({ROW_IDS})")
    sql("CREATE TABLE plain (k BIGINT, b BINARY)")
    sql("INSERT INTO plain VALUES (1, X'')")
    assert sql("SELECT sys.blob_view(NULL, 'b', 1L), sys.blob_view('s', 'b', NULL)") == [(None, None)]
    for call, message in {
        "blob_view('s', 'k', k)": "'k' has the type BIGINT, not BLOB of",
        "blob_view('s', 'x', k)": "'x' is no column of",
        "blob_view('plain', 'b', k)": "'b' has the type BYTES, not BLOB",
        "blob_view('s', b, k)": "must be a constant",
        "blob_view('s', 'b', 1.5)": "the id of a row is a BIGINT",
        "blob_view('s', 'b')": "blob_view takes three arguments",
        "blob_view('nope', 'b', k)": "TABLE_OR_VIEW_NOT_FOUND",
        "path_to_descriptor(1)": "path_to_descriptor takes one argument of type STRING, not .INT",
        "descriptor_to_string(X'02')": "a value is no descriptor of a blob; it begins with X'02'",
        "descriptor_to_string(X'00')": "a value is no descriptor of a blob",
        f"descriptor_to_string(X'{data[:-1].hex()}')": "a value is no descriptor of a blob",
        f"descriptor_to_string(X'{data.replace(b'BLOB'[::-1], b'BLOP').hex()}')": "a value is no descriptor of a blob",
        "descriptor_to_presigned_url('s', X'', INTERVAL '1' SECOND)": "descriptor_to_presigned_url is not supported",
    }.items():
        with pytest.raises(Exception, match=message):
            sql(f"SELECT sys.{call} FROM plain")


def values(kind, generator):
    """Return many values of a type, and NULL."""
    if kind in WIDTHS:
        end = 2 ** WIDTHS[kind]
        return [None, 0, -1, end - 1, -end, *(generator.randrange(-end, end) for _ in range(60))]
    if kind == "BOOLEAN":
        return [None, False, True]
    if kind == "DATE":
        return [None, *(datetime.date.fromordinal(generator.randrange(1, 3_000_000)) for _ in range(60))]
    if kind.startswith("DECIMAL"):
        precision, scale = map(int, kind[8:-1].split(","))
        end = 10**precision
        return [None, *(decimal.Decimal(generator.randrange(1 - end, end)).scaleb(-scale) for _ in range(60))]
    texts = ["".join(generator.choice("abcäö😀z") for _ in range(length)) for length in LENGTHS for _ in range(6)]
    return [None, *(texts if kind == "STRING" else map(str.encode, texts))]


@pytest.mark.more
@pytest.mark.versions
def test_buckets_in_sql_equal_buckets_of_engine(sql):
    generator = random.Random(1)
    columns = {}
    for number, (kind, arrow) in enumerate(TYPES.items()):
        choices = values(kind, generator)
        columns[f"c{number}"] = pa.array([generator.choice(choices) for _ in range(150)], arrow)
    table = pa.table(columns)
    sql.spark.createDataFrame(table).createOrReplaceTempView("rows_to_route")
    keys = [[name] for name in columns] + [["c8", "c3", "c9"], ["c9", "c9", "c8"], list(columns)]
    calls = ", ".join(f"sys.bucket(7, {', '.join(key)})" for key in keys)
    result = sql(f"SELECT {calls} FROM rows_to_route")
    for number, key in enumerate(keys):
        batch = pa.RecordBatch.from_arrays([columns[name] for name in key], [str(i) for i in range(len(key))])
        assert [row[number] for row in result] == buckets(batch, 7).tolist(), key
    for arguments, message in {
        "0, 1": "number of buckets is 0",
        "3": "a bucket key has 1 to 56 columns",
        "'x', 1": "number of buckets, not 'x'",
        "id, id": "must be a constant",
        "3, 1.5D": "column of type DOUBLE cannot be computed in SQL",
        "3, now()": "column of type TIMESTAMP cannot",
    }.items():
        with pytest.raises(Exception, match=message):
            sql(f"SELECT sys.bucket({arguments}) FROM range(1)")
