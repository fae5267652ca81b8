"""Spark's own Parquet encoder writes partitioned append tables: Python workers write the same tables."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_spark import PaimonTable
from paimon_spark.sql.writes import native_writes
from tests.spark.conftest import MODE
from tests.spark.sql.test_native_writes import ENGINE, SPARK, python_workers, rows, save  # noqa: F401

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(MODE == "connect", reason="Python workers write over Connect"),
    pytest.mark.usefixtures("writes_by_tasks"),
]
PARTITIONS = {
    "STRING": "element_at(array(NULL, '', ' ', 'a/b=c%d', 'ä€😀', '{x}', 'null', '__DEFAULT_PARTITION__', 'a:b'), k)",
    "CHAR(5)": "element_at(array('', 'x', 'ä€😀'), k)",
    "BOOLEAN": "element_at(array(true, false, NULL), k)",
    "TINYINT": "CAST(k - 4 AS TINYINT)",
    "SMALLINT": "CAST(k - 4 AS SMALLINT)",
    "INT": "INT(k - 4)",
    "BIGINT": "(k - 4) * 1000000007L",
    "FLOAT": "element_at(array(FLOAT('NaN'), -FLOAT('NaN'), FLOAT(-0.0D), FLOAT(0), FLOAT(1e20), FLOAT(1e-5)), k)",
    "DOUBLE": "element_at(array(DOUBLE('NaN'), -DOUBLE('NaN'), -0.0D, 0.0D, DOUBLE('Infinity'), 0.1D, 1e7D), k)",
    "DECIMAL(9, 2)": "CAST((k - 4) * 1.25 AS DECIMAL(9, 2))",
    "DECIMAL(18, 0)": "CAST((k - 4) * 123456789012L AS DECIMAL(18, 0))",
    "DECIMAL(38, 9)": "CAST((k - 4) * CAST('1234567890123456789.5' AS DECIMAL(20, 1)) AS DECIMAL(38, 9))",
    "DATE": "element_at(array(DATE'0001-01-01', DATE'2024-02-29', make_date(-100, 1, 1), NULL), k)",
    "TIMESTAMP(6)": "element_at(array(TIMESTAMP_NTZ'1500-03-01 10:11:12.123456', TIMESTAMP_NTZ'2024-01-01'), k)",
    "TIMESTAMP_LTZ(6)": "element_at(array(timestamp_micros(-1), timestamp_micros(1700000000000000)), k)",
    "VARBINARY(3)": "element_at(array(unhex(''), unhex('61'), unhex('2F3D')), k)",
}
"""The values of partitions by the type of the column; k is 1, 2 ... of each row."""


def create(path, *columns, keys=("p",), **options):
    fields = [DataField(i, name, parse_type(kind)) for i, (name, kind) in enumerate(columns)]
    return Table.create(str(path), Schema(fields, partition_keys=keys, options=options))


def parquet_files(path):
    return sorted(Path(path).rglob("*.parquet"))


def encoders(path):
    return {pq.read_metadata(file).created_by.split()[0] for file in parquet_files(path)}


def partitions(path):
    """Return the directories of the files of a table."""
    return sorted({str(file.parent.relative_to(path)) for file in parquet_files(path)})


def files(path):
    """Return the partition and the metadata of the live files of a table, without names, sizes and times."""
    found = [
        (split.partition.hex(), split.bucket, replace(file, file_name="", file_size=0, creation_time=None))
        for split in Table.open(str(path)).scan().plan().splits
        for file in split.files
    ]
    return sorted(found, key=str)


def contents(path):
    return sorted(map(str, Table.open(str(path)).to_arrow().select(["id"]).to_pylist()))


def same_tables(native, engine):
    """Compare a table that Spark's encoder wrote with one that Python workers wrote."""
    assert (encoders(native), encoders(engine)) == ({SPARK}, {ENGINE})
    assert partitions(native) == partitions(engine)
    assert files(native) == files(engine)
    assert contents(native) == contents(engine)


def save_twice(tmp_path, python_workers, frame, *columns, keys=("p",), **options):  # noqa: F811
    """Append rows to two new tables, one with each encoder, and compare the tables."""
    for name in ("spark", "engine"):
        create(tmp_path / name, *columns, keys=keys, **options)
        save(frame, tmp_path / name)
        python_workers()
    same_tables(tmp_path / "spark", tmp_path / "engine")


def values_of(text):
    """Return the expression of a partition column, from `PARTITIONS`."""
    return text.replace("element_at", "try_element_at")


@pytest.mark.versions
@pytest.mark.everywhere
def test_partitions_of_all_types_are_those_of_the_engine(spark, tmp_path, python_workers):  # noqa: F811
    keys = {f"p{n}": kind for n, kind in enumerate(PARTITIONS)}
    texts = [f"{values_of(text)} AS p{n}" for n, text in enumerate(PARTITIONS.values())]
    frame = rows(spark, 0, 60, "id", "1 + INT(id % 10) AS k").selectExpr("id", *texts)
    columns = [("id", "BIGINT NOT NULL"), *keys.items()]
    save_twice(tmp_path, python_workers, frame, *columns, keys=tuple(keys), **{"partition.legacy-name": "false"})


@pytest.mark.more
@pytest.mark.parametrize("kind", ["STRING", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP(6)", "BOOLEAN"])
def test_equal_values_are_one_partition(spark, tmp_path, python_workers, kind):  # noqa: F811
    frame = rows(spark, 0, 60, "id", "1 + INT(id % 9) AS k").selectExpr("id", f"{values_of(PARTITIONS[kind])} AS p")
    save_twice(tmp_path, python_workers, frame, ("id", "BIGINT"), ("p", kind), **{"partition.default-name": "no=ne"})


@pytest.mark.parametrize("partition", ["id * 7919 % 10", "id div 250"])
def test_rows_keep_their_order_in_each_partition(spark, tmp_path, monkeypatch, partition):
    """Rows are sorted by partition, except in the first four partitions if the rows arrive in long runs."""
    monkeypatch.setattr(native_writes, "OPEN_FILES", 4)
    create(tmp_path / "t", ("id", "BIGINT"), ("p", "INT"), **{"target-file-row-num": "100"})
    save(rows(spark, 0, 2500, "id", f"INT({partition}) AS p", tasks=1), tmp_path / "t")
    written = files(tmp_path / "t")
    assert len(written) == 30
    assert {(f.row_count, f.min_sequence_number, f.max_sequence_number) for _, _, f in written} == {
        (100, 0, 99),
        (100, 100, 199),
        (50, 200, 249),
    }
    for file in parquet_files(tmp_path / "t"):
        ids = pq.read_table(file, partitioning=None)["id"].to_pylist()
        assert ids == sorted(ids)
    assert contents(tmp_path / "t") == sorted(str({"id": n}) for n in range(2500))
    assert encoders(tmp_path / "t") == {SPARK}


def test_refused_and_failing_rows_leave_no_files(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(native_writes, "OPEN_FILES", 2)
    create(tmp_path / "t", ("id", "BIGINT NOT NULL"), ("p", "INT"), ("v", "VARCHAR(3)"))
    wrong = rows(spark, 0, 50, "id", "INT(id % 7) AS p", "IF(id = 48, 'long', 'x') AS v")
    with pytest.raises(Exception, match=r"column 'v', row .*: 'long' cannot be stored as VARCHAR\(3\)"):
        save(wrong, tmp_path / "t")
    broken = rows(spark, 0, 50_000, "id", "INT(id % 7) AS p", "IF(id = 49000, raise_error('broken'), 'x') AS v")
    with pytest.raises(Exception, match="broken"):
        save(broken, tmp_path / "t")
    assert parquet_files(tmp_path / "t") == []
    assert Table.open(str(tmp_path / "t")).snapshot() is None


STATEMENTS = (
    "INSERT INTO t SELECT id, CAST(id AS STRING), IF(id % 5 = 0, NULL, concat('p=', id % 5)) FROM range(0, 40, 1, 2)",
    "INSERT INTO t (id, p) SELECT id, 'p=1' FROM range(50, 60)",
    "INSERT OVERWRITE t PARTITION (p = 'p=2') SELECT id, 'new' FROM range(100, 103, 1, 2)",
    "ALTER TABLE t ADD COLUMN w INT",
    "INSERT INTO t SELECT id + 1000, v, p, INT(id) FROM t WHERE p <> 'p=3'",
    "ALTER TABLE t RENAME COLUMN v TO x",
    "INSERT OVERWRITE t SELECT id, x, p, 7 FROM t WHERE p IS NULL OR p = 'p=4'",
    "INSERT OVERWRITE t SELECT id * 2, x, p, w FROM t WHERE id < 103 OR p IS NULL",
    "CREATE OR REPLACE TABLE t PARTITIONED BY (p) AS SELECT id, x, p, w FROM t WHERE id > 3",
)


@pytest.mark.more
@pytest.mark.parametrize("options", ["", "TBLPROPERTIES ('row-tracking.enabled' = 'true')"])
def test_statements_write_the_rows_of_python_workers(sql, python_workers, options):  # noqa: F811
    results = {}
    sql.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        for encoder in (SPARK, ENGINE):
            sql(f"CREATE TABLE t (id BIGINT NOT NULL, v VARCHAR(9), p STRING) PARTITIONED BY (p) {options}")
            path = dict(row[:2] for row in sql("DESCRIBE TABLE EXTENDED t"))["Location"]
            results[encoder] = []
            for statement in STATEMENTS:
                sql(statement)
                kinds = [snapshot.commit_kind for snapshot in Table.open(path).snapshots()]
                results[encoder].append((sorted(sql("SELECT * FROM t"), key=str), kinds))
            assert encoders(path) == {encoder}
            sql("DROP TABLE t")
            python_workers()
    finally:
        sql.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert results[SPARK] == results[ENGINE]


@pytest.mark.more
def test_overwrites_of_python(spark, tmp_path):
    path = tmp_path / "t"
    create(path, ("id", "BIGINT"), ("p", "STRING"))
    table = PaimonTable.forPath(spark, str(path))
    save(rows(spark, 0, 9, "id", "STRING(id % 3) AS p"), path)
    table.overwrite(rows(spark, 20, 22, "id"), partition={"p": "1"})
    table.overwrite(rows(spark, 30, 32, "id", "'2' AS p"), partition="dynamic")
    with pytest.raises(Exception, match="p=7"):
        table.overwrite(rows(spark, 40, 42, "id", "'7' AS p"), partition={"p": "1"})
    stored = Table.open(str(path)).to_arrow().to_pylist()
    assert sorted((row["p"], row["id"]) for row in stored) == [
        ("0", 0), ("0", 3), ("0", 6), ("1", 20), ("1", 21), ("2", 30), ("2", 31)]  # fmt: skip
    assert encoders(path) == {SPARK}
    assert not any("p=7" in str(file) for file in parquet_files(path))
    rows(spark, 50, 52, "id", "'8' AS p").write.format("paimon").mode("overwrite").save(str(path))
    assert contents(path) == ["{'id': 50}", "{'id': 51}"]


def test_explain_names_the_writer(sql):
    sql("CREATE TABLE t (id BIGINT, p STRING) PARTITIONED BY (p)")
    sql("CREATE TABLE k (id BIGINT NOT NULL) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    encoder, few = "Spark's Parquet encoder", "the driver writes up to 10000 rows"
    for statement, table, writer in (
        ("INSERT INTO t SELECT id, 'x' FROM range(5)", "t", encoder),
        ("INSERT OVERWRITE t SELECT id, 'x' FROM range(5)", "t", encoder),
        ("INSERT INTO k SELECT id FROM range(5)", "k", "Python workers"),
    ):
        text = sql(f"EXPLAIN {statement}")[0][0]
        assert text.partition("== Paimon Write ==\n")[2] == f"pm.{sql.database}.{table}: {writer}; {few}"
    sql.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        text = sql("EXPLAIN INSERT OVERWRITE t SELECT id, 'x' FROM range(5)")[0][0]
    finally:
        sql.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert f"t: {encoder}; " in text
    assert sql("SELECT * FROM t") == []
