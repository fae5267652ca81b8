"""Appends that Spark's own Parquet encoder writes: files, metadata and errors equal the results of Python workers."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from paimon_core import metrics
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_spark import PaimonTable, frame_write
from paimon_spark.sql.session_options import NATIVE_WRITES
from paimon_spark.sql.writes import format_writes, native_writes, table_writes
from tests.spark.conftest import MODE, ROOT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(MODE == "connect", reason="Python workers write over Connect"),
    pytest.mark.usefixtures("writes_by_tasks"),
]
SPARK, ENGINE = "parquet-mr", "parquet-cpp-arrow"
EXPRESSIONS = """
    id | -id AS long | CAST(id - 5 AS TINYINT) AS tiny | CAST(id - 5 AS SMALLINT) AS small | CAST(-id AS INT) AS int
    | id % 2 = 0 AS boolean | CAST(NULL AS INT) AS nothing | CAST(NULL AS STRING) AS no_text
    | IF(id = 3, DOUBLE('NaN'), id / 2) AS with_nan | FLOAT('NaN') AS only_nan | IF(id = 3, NULL, FLOAT(id)) AS float
    | IF(id % 2 = 0, -0.0D, 0.0D) AS zeros | -0.0D AS minus_zero | 0.0D AS zero | DOUBLE('-Infinity') AS infinite
    | repeat('ä€😀', INT(id)) AS unicode | '' AS empty | repeat('x', 16) AS sixteen | repeat('long', 2000) AS long_text
    | repeat(decode(unhex('F48FBFBF'), 'UTF-8'), 20) AS last_point
    | concat(repeat('x', 15), decode(unhex('ED9FBF'), 'UTF-8'), 'z') AS before_surrogates
    | CAST(CAST(id AS STRING) AS BINARY) AS binary | unhex('FF00') AS bytes
    | CAST(id - 5 AS DECIMAL(5, 2)) AS decimal_5 | CAST(id - 5 AS DECIMAL(18, 4)) AS decimal_18
    | CAST(id - 5 AS DECIMAL(38, 10)) AS decimal_38
    | CAST('-1234567890123456789012345678.9' AS DECIMAL(38, 9)) AS digits
    | DATE'0001-01-01' AS first_day | date_add(DATE'1582-10-10', INT(id)) AS calendar | make_date(-100, 1, 1) AS bc
    | date_add(DATE'9999-12-31', 400) AS far_day | TIMESTAMP'0001-01-01 00:00:00' AS first_instant
    | TIMESTAMP_NTZ'1500-03-01 10:11:12.123456' AS old_time | timestamp_micros(id * 1000003) AS instant
    | TIMESTAMP_NTZ'9999-12-31 23:59:59.999999' AS last_time
    | named_struct('a', id, 'b', IF(id % 2 = 0, 'x', NULL)) AS row | array(id, NULL) AS list
    | map(STRING(id), named_struct('x', array(id))) AS map
    | CASE id % 3 WHEN 0 THEN array() WHEN 1 THEN NULL ELSE array(named_struct('q', map('a', array(1.5D)))) END AS deep
    | IF(id = 2, NULL, named_struct('n', named_struct('z', CAST(NULL AS INT)))) AS rows | 'x' AS `a.b c``d`
"""
SESSION = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.files.maxRecordsPerFile": "2",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.adaptive.enabled": "false",
}
"""Settings of a session that files do not depend on."""


@pytest.fixture
def python_workers(monkeypatch):
    """A function after which Python workers write all rows."""

    def switch():
        for module in (format_writes, table_writes):
            monkeypatch.setattr(module, "native_results", lambda *_: None)

    return switch


@pytest.fixture
def settings(spark):
    """Set `SESSION` for one test."""
    before = {key: spark.conf.get(key, None) for key in SESSION}
    for key, value in SESSION.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def rows(spark, start=0, end=11, *columns, tasks=2):
    return spark.range(start, end, 1, tasks).selectExpr(*(columns or ("id", "STRING(id) AS s")))


def save(frame, path, mode="append", **options):
    frame.write.format("paimon").mode(mode).options(**options).save(str(path))


def create(path, *columns, **options):
    fields = [DataField(i, *column) for i, column in enumerate((n, parse_type(t)) for n, t in columns)]
    return Table.create(str(path), Schema(fields, options=options))


def parquet_files(path):
    return sorted(Path(path).rglob("*.parquet"))


def encoders(path):
    """Return the encoders of the files of a table, without versions."""
    return {pq.read_metadata(file).created_by.split()[0] for file in parquet_files(path)}


def metadata(path):
    """Return the metadata of the live files of a table, without names, sizes and times."""
    files = [file for split in Table.open(str(path)).scan().plan().splits for file in split.files]
    return [replace(file, file_name="", file_size=0, creation_time=None) for file in files]


def stored_columns(path):
    """Return the stored columns of a table's files as text: types, ids, NOT NULL."""
    schemas = [str(pq.ParquetFile(file).schema).partition("\n")[2] for file in parquet_files(path)]
    (schema,) = {schema.partition("\n")[2] for schema in schemas}
    return schema


def contents(path):
    """Return all rows as text, in which NaN equals NaN, and dates beyond Python's years are numbers."""
    table = Table.open(str(path)).to_arrow()
    return [str(column.cast(_NUMBERS.get(str(column.type).partition("[")[0], column.type))) for column in table.columns]


_NUMBERS = {"date32": "int32", "timestamp": "int64"}


def same_files(spark, tmp_path, python_workers, frame, *columns, **options):
    """Write rows with both encoders, and compare the files."""
    for name, encoder in (("spark", SPARK), ("engine", ENGINE)):
        if columns:
            create(tmp_path / name, *columns, **options)
        save(frame, tmp_path / name, **({} if columns else options))
        assert encoders(tmp_path / name) == {encoder}
        python_workers()
    native, engine = tmp_path / "spark", tmp_path / "engine"
    assert metadata(native) == metadata(engine)
    assert stored_columns(native) == stored_columns(engine)
    assert contents(native) == contents(engine)


@pytest.mark.versions
@pytest.mark.everywhere
def test_files_of_each_type_are_those_of_the_engine(spark, tmp_path, python_workers, settings):
    frame = rows(spark, 0, 11, *EXPRESSIONS.split("|"))
    same_files(spark, tmp_path, python_workers, frame)


@pytest.mark.more
@pytest.mark.parametrize(
    "options",
    [
        {"metadata.stats-mode": "full", "file.compression": "snappy"},
        {"metadata.stats-mode": "counts", "metadata.stats-dense-store": "false", "file.compression": "none"},
        {"metadata.stats-mode": "none", "fields.unicode.stats-mode": "truncate(2)", "fields.id.stats-mode": "full"},
        {"metadata.stats-mode": "none", "row-tracking.enabled": "true", "file.suffix.include.compression": "true"},
        {"metadata.stats-keep-first-n-columns": "3", "data-file.prefix": "new-", "parquet.compression": "snappy"},
    ],
)
def test_statistics_in_each_mode_are_those_of_the_engine(spark, tmp_path, python_workers, options):
    frame = rows(spark, 0, 11, *EXPRESSIONS.split("|"))
    same_files(spark, tmp_path, python_workers, frame, **options)
    native, engine = (
        {file.name.partition("-")[0] + "".join(file.suffixes) for file in parquet_files(tmp_path / encoder)}
        for encoder in ("spark", "engine")
    )
    assert native == engine


def test_columns_are_matched_checked_and_completed(spark, tmp_path, python_workers):
    columns = (("Id", "BIGINT NOT NULL"), ("c", "CHAR(3)"), ("v", "VARCHAR(3)"), ("b", "VARBINARY(2)"), ("no", "INT"))
    columns += (("i", "INT"), ("j", "BIGINT"))
    narrow = ("CAST(id AS TINYINT) AS id", "CAST(-id AS SMALLINT) AS i", "IF(id = 3, NULL, INT(-id)) AS j")
    frame = rows(spark, 0, 11, "unhex('0102') AS b", "'ä€😀' AS V", "'x' AS c", *narrow)
    same_files(spark, tmp_path, python_workers, frame, *columns)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("CAST(NULLIF(id, 7) AS BIGINT) AS id", "cannot write NULL to column 'id', which is NOT NULL"),
        (
            "id | repeat('ä', INT(id)) AS v",
            "column 'v', row 4: 'ääää' cannot be stored as VARCHAR\\(3\\): it has 4",
        ),
        ("id | CAST(repeat('a', INT(id)) AS BINARY) AS b", "column 'b', row 3: .* it has 3 bytes"),
    ],
)
def test_refused_row_has_error_of_engine_and_leaves_no_files(spark, tmp_path, column, message):
    create(tmp_path / "t", ("id", "BIGINT NOT NULL"), ("v", "VARCHAR(3)"), ("b", "BINARY(2)"))
    with pytest.raises(Exception, match=message):
        save(rows(spark, 0, 11, *column.split("|"), tasks=1), tmp_path / "t")
    assert parquet_files(tmp_path / "t") == []
    assert Table.open(str(tmp_path / "t")).snapshot() is None


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ((("id", "BIGINT"),), {"bucket": "2", "bucket-key": "id"}),
        ((("id", "BIGINT"),), {"file.format": "orc"}),
        ((("id", "BIGINT"),), {"file-index.bloom-filter.columns": "id"}),
        ((("id", "BIGINT"),), {"file.block-size": "1 mb"}),
        ((("id", "BIGINT"),), {"file.compression": "gzip"}),
        ((("id", "DOUBLE"),), {}),
        ((("id", "BIGINT"), ("t", "TIMESTAMP(3)")), {}),
        ((("id", "BIGINT"), ("t", "ARRAY<INT NOT NULL>")), {}),
        ((("id", "BIGINT"), ("t", "VARIANT")), {}),
    ],
)
def test_other_tables_are_written_by_the_engine(spark, tmp_path, monkeypatch, columns, options):
    monkeypatch.setattr(native_writes, "_run", None)
    create(tmp_path / "t", *columns, **options)
    save(rows(spark, 0, 11, "id", tasks=1), tmp_path / "t")
    assert Table.open(str(tmp_path / "t")).to_arrow().num_rows == 11


@pytest.mark.more
def test_default_value_is_written_by_the_engine(spark, tmp_path):
    table = Table.create(
        str(tmp_path / "t"),
        Schema([DataField(0, "id", parse_type("BIGINT")), DataField(1, "d", parse_type("INT"), default="7")]),
    )
    save(rows(spark, 0, 2, "id"), tmp_path / "t")
    assert Table.open(table.path).to_arrow()["d"].to_pylist() == [7, 7]


@pytest.mark.more
def test_setting_turns_the_encoder_off(spark, tmp_path):
    spark.conf.set(NATIVE_WRITES, "false")
    try:
        save(rows(spark), tmp_path / "t")
    finally:
        spark.conf.unset(NATIVE_WRITES)
    assert encoders(tmp_path / "t") == {ENGINE}


def test_files_end_at_the_target_size(spark, tmp_path):
    """As the engine's files, they end at the size or the number of rows, and their sequence numbers continue."""
    options = {"target-file-size": "200 kb"}
    save(rows(spark, 0, 200_000, "id", "uuid() AS u", tasks=1), tmp_path / "size", **options)
    sizes = [file.stat().st_size for file in parquet_files(tmp_path / "size")]
    assert len(sizes) > 10
    assert max(sizes) < 400_000
    save(rows(spark, 0, 250, tasks=1), tmp_path / "rows", **{"target-file-row-num": "100"})
    numbers = [(f.row_count, f.min_sequence_number, f.max_sequence_number) for f in metadata(tmp_path / "rows")]
    assert sorted(numbers, key=lambda number: number[1]) == [(100, 0, 99), (100, 100, 199), (50, 200, 249)]


def test_rows_of_the_table_itself(spark, tmp_path):
    path = tmp_path / "t"
    save(rows(spark), path)
    save(spark.read.format("paimon").load(str(path)), path)
    assert Table.open(str(path)).to_arrow().num_rows == 22
    save(spark.read.format("paimon").load(str(path)).where("id < 3"), path, "overwrite")
    assert sorted(Table.open(str(path)).to_arrow()["id"].to_pylist()) == [0, 0, 1, 1, 2, 2]
    save(rows(spark, 0, 0), path, "overwrite")
    assert Table.open(str(path)).to_arrow().num_rows == 0
    assert encoders(path) == {SPARK}


def test_overwrite_of_python_measures_time_of_tasks(spark, tmp_path):
    path = tmp_path / "t"
    create(path, ("id", "BIGINT"), ("i", "INT"))
    table = PaimonTable.forPath(spark, str(path))
    with metrics.collect(all_threads=True) as measured:
        table.overwrite(rows(spark, 0, 9, "id", "CAST(id AS TINYINT) AS i"))
        table.overwrite(table.toDF().where("id < 3"))
    commits = measured.commits
    assert encoders(path) == {SPARK}
    assert sorted(Table.open(str(path)).to_arrow().to_pylist(), key=str) == [{"id": n, "i": n} for n in range(3)]
    assert [commit.rows_received for commit in commits] == [9, 3]
    assert all(0 < commit.write_seconds < 600 for commit in commits)


def test_observe_counts_every_row_once(spark, tmp_path):
    observation = Observation("rows")
    frame = rows(spark, 0, 50_000).repartition(3).observe(observation, F.count("id").alias("n"))
    save(frame, tmp_path / "t")
    assert observation.get == {"n": 50_000}
    assert encoders(tmp_path / "t") == {SPARK}


def test_failing_source_leaves_no_files(spark, tmp_path):
    save(rows(spark, 0, 1), tmp_path / "t")
    before = parquet_files(tmp_path / "t")
    frame = rows(spark, 0, 100_000, "id", "IF(id = 90000, STRING(raise_error('broken')), 'x') AS s")
    with pytest.raises(Exception, match="broken"):
        save(frame, tmp_path / "t")
    assert parquet_files(tmp_path / "t") == before
    assert len(Table.open(str(tmp_path / "t")).snapshots()) == 1


@pytest.mark.more
def test_repeated_task_writes_its_rows_once(spark, tmp_path):
    marker = str(tmp_path / "failed")

    def fail_once(batches):
        yield from batches
        if not os.path.exists(marker):
            Path(marker).touch()
            raise ValueError("first attempt")

    save(rows(spark, 0, 5000, "id", tasks=1).mapInArrow(fail_once, "id long"), tmp_path / "t")
    assert os.path.exists(marker)
    assert sorted(Table.open(str(tmp_path / "t")).to_arrow()["id"].to_pylist()) == list(range(5000))
    assert len(parquet_files(tmp_path / "t")) == 1


@pytest.mark.more
def test_inserts_at_once_keep_all_rows(sql):
    path = created_by_sql(sql, "id BIGINT")
    inserts = [f"INSERT INTO t SELECT id FROM range({n * 100}, {n * 100 + 100})" for n in range(4)]
    threads = [threading.Thread(target=sql, args=(insert,)) for insert in inserts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sql("SELECT id FROM t")) == [(n,) for n in range(400)]
    assert encoders(path) == {SPARK}


def created_by_sql(sql, columns):
    """Create a table ``t`` in the database of the test, and return its path."""
    sql(f"CREATE TABLE t ({columns})")
    return dict(row[:2] for row in sql("DESCRIBE TABLE EXTENDED t"))["Location"]


@pytest.mark.more
@pytest.mark.parametrize("names", ["", "(v, id)"])
def test_statements_write_the_rows_of_python_workers(sql, python_workers, names):
    columns = "id, CAST(id AS STRING)" if not names else "CAST(id AS STRING), id"
    statements = (
        f"INSERT INTO t {names} SELECT {columns} FROM range(0, 40, 1, 2)",
        "INSERT INTO t (id) SELECT id FROM range(50, 60)",
        f"INSERT OVERWRITE t {names} SELECT {columns} FROM range(100, 103, 1, 2)",
        "INSERT INTO t SELECT id + 1, v FROM t",
        "INSERT OVERWRITE t SELECT id * 2, v FROM t WHERE id < 103",
    )
    results = {}
    for encoder in (SPARK, ENGINE):
        path = created_by_sql(sql, "id BIGINT, v VARCHAR(9)")
        results[encoder] = []
        for statement in statements:
            sql(statement)
            kinds = [snapshot.commit_kind for snapshot in Table.open(path).snapshots()]
            results[encoder].append((sorted(sql("SELECT id, v FROM t")), kinds))
        assert encoders(path) == {encoder}
        sql("DROP TABLE t")
        python_workers()
    assert results[SPARK] == results[ENGINE]


KILLED = """
    import sys, threading, time
    import paimon_spark
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    paimon_spark.register(spark)
    for number in (10, 10 ** 12):
        rows = spark.range(0, number, 1, 2).selectExpr("id", "STRING(id % 3) AS p")
        print("ready" if number > 10 else "", flush=True)
        rows.write.format("paimon").mode("append").save(sys.argv[1])
"""


@pytest.mark.more
@pytest.mark.parametrize("keys", [[], pytest.param(["p"], marks=pytest.mark.slow)])
def test_killed_driver_leaves_orphans_that_removal_finds(tmp_path, spark, keys):
    path = tmp_path / "t"
    fields = [DataField(0, "id", parse_type("BIGINT")), DataField(1, "p", parse_type("STRING"))]
    Table.create(str(path), Schema(fields, partition_keys=keys))
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(KILLED))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), str(path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        while process.stdout.readline() == b"\n":
            pass
        end = time.monotonic() + 60
        while len(parquet_files(path)) < (6 if keys else 3) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    table = Table.open(str(path))
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(10))
    time.sleep(1.1)  # files of the newest second are kept
    table.maintenance.remove_orphan_files(int(time.time() * 1000))
    assert len(parquet_files(path)) == (3 if keys else 1)
    save(rows(spark, 10, 20, "id"), path)
    assert sorted(Table.open(str(path)).to_arrow()["id"].to_pylist()) == list(range(20))


def test_driver_still_writes_few_rows(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(frame_write, "FEW_ROWS", 100)
    save(rows(spark), tmp_path / "t")
    assert encoders(tmp_path / "t") == {ENGINE}
