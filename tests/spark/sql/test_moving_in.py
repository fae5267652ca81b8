"""Files and tables that move in through Spark: the procedures, tables of Spark's own catalog, other formats."""

from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

import paimon_spark
from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import MissingDependencyError, UnsupportedError
from paimon_spark import PaimonTable
from paimon_spark.sql.reads.native import unsuitable_files
from paimon_spark.table_import import iceberg_partitions

pytestmark = pytest.mark.spark


@pytest.fixture
def files(sql, tmp_path):
    """Parquet files that Spark wrote, partitioned; one of them holds one row."""
    frame = sql.spark.sql(
        "SELECT * FROM VALUES (1, 'a', DATE '2026-01-01', 'b c'), (2, NULL, DATE '2026-01-01', 'b c'), "
        "(3, 'c', DATE '2026-01-02', 'ü/%=') AS (id, v, day, shop)"
    )
    frame.coalesce(1).write.partitionBy("day", "shop").parquet(str(tmp_path / "in"))
    return tmp_path / "in"


ROWS = [
    (1, "a", date(2026, 1, 1), "b c"),
    (2, None, date(2026, 1, 1), "b c"),
    (3, "c", date(2026, 1, 2), "ü/%="),
]


def test_files_that_spark_wrote(sql, files):
    call = f"CALL sys.migrate_table('parquet', '{files}', target_table => 't', options => 'target-file-size=7 mb')"
    assert sql(call) == [(True,)]
    assert sorted(sql("SELECT * FROM t")) == ROWS
    assert sql("SELECT shop, day FROM t WHERE id = 3") == [("ü/%=", date(2026, 1, 2))]
    assert sql("SELECT count(*), count(v), max(id) FROM t WHERE day = DATE '2026-01-01'") == [(2, 1, 2)]
    assert "native" in str(sql("EXPLAIN SELECT id, v FROM t"))
    assert "of another tool may lack the column shop" in str(sql("EXPLAIN SELECT id, shop FROM t"))
    assert sql("SHOW PARTITIONS t") == [("day=2026-01-01/shop=b c",), ("day=2026-01-02/shop=ü%2F%25%3D",)]
    more = f"CALL sys.add_files('t', '{files}/day=2026-01-01')"
    assert sql(more) == [(0, 0, 1)]
    sql("INSERT INTO t VALUES (4, 'd', DATE '2026-01-01', 'b c')")
    sql("CALL sys.compact('t')")
    assert sorted(sql("SELECT * FROM t")) == [*ROWS, (4, "d", date(2026, 1, 1), "b c")]
    rewritten = "EXPLAIN SELECT id, shop FROM t WHERE day = DATE '2026-01-01'"
    assert "another tool" not in str(sql(rewritten))


@pytest.mark.more
def test_row_in_separate_file_has_its_partition(sql, tmp_path):
    for name in ("p=1", "p=2"):
        sql.spark.range(1).coalesce(1).write.parquet(str(tmp_path / "in" / name))
    sql(f"CALL sys.migrate_table('parquet', '{tmp_path}/in', target_table => 't')")
    assert sorted(sql("SELECT id, p FROM t")) == [(0, 1), (0, 2)]


def test_file_of_one_row_is_looked_into(tmp_path, monkeypatch):
    """The Java engine numbers such files like a writer of one row."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.int32())])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"]))

    def reason(*columns):
        return unsuitable_files(table.store, table.scan().plan().splits, columns)

    table.write(pa.table({"id": [1], "p": [1]}, schema=schema))
    assert reason("id", "p") is None
    monkeypatch.setattr("paimon_core.migration.add_files._UNNUMBERED", 0)
    pq.write_table(pa.table({"id": [2]}), tmp_path / "x.parquet")
    table.add_files(str(tmp_path / "x.parquet"), {"p": 2})
    assert "of another tool lacks the column p" in reason("id", "p")
    assert reason("id") is None


@pytest.mark.more
def test_wrong_arguments_of_migration_are_refused(sql, files):
    for call, message in [
        (f"migrate_table('parquet', '{files}')", "needs the argument 'target_table'"),
        (f"migrate_table('csv', '{files}', target_table => 't')", "one of parquet, orc, avro, hive"),
        (f"migrate_table('orc', '{files}', target_table => 't')", "is not in format orc"),
        ("migrate_database('parquet', 'x')", "source types hive, spark"),
        (f"migrate_table('parquet', '{files}', parallelism => 4, target_table => 't')", "parallelism"),
    ]:
        with pytest.raises(Exception, match=message):
            sql(f"CALL sys.{call}")
    sql("CREATE TABLE t (id INT)")
    with pytest.raises(Exception, match="'x' must be column=value"):
        sql(f"CALL sys.add_files('t', '{files}', partition => 'x')")


@pytest.fixture
def spark_tables(sql):
    """A database of Spark's own catalog; one partition of a table is in another directory."""
    name = f"src_{sql.database}"
    sql(f"CREATE DATABASE spark_catalog.{name}")
    yield f"spark_catalog.{name}", name
    sql(f"DROP DATABASE spark_catalog.{name} CASCADE")


@pytest.mark.more
def test_tables_of_sparks_own_catalog(sql, spark_tables, tmp_path):
    full, database = spark_tables
    sql(f"CREATE TABLE {full}.t (id INT, v STRING, z TIMESTAMP, p STRING, `q` INT) USING parquet PARTITIONED BY (p, q)")
    sql(f"INSERT INTO {full}.t VALUES (1, 'a', TIMESTAMP '2026-01-01 00:00:00', 'x y', 1), (2, NULL, NULL, NULL, 2)")
    sql(f"CREATE TABLE {full}.o (id INT, v STRING) USING orc")
    sql(f"INSERT INTO {full}.o VALUES (1, 'a'), (2, 'b')")
    sql(f"CREATE TABLE {full}.c (id INT) USING csv")
    sql(f"INSERT INTO {full}.c VALUES (1)")
    sql(f"CREATE VIEW {full}.w AS SELECT 1 AS one")
    expected = sorted(sql(f"SELECT * FROM {full}.t"), key=str)
    assert sql(f"CALL sys.migrate_table('spark', '{database}.t', target_table => 'mine')") == [(True,)]
    assert sorted(sql("SELECT * FROM mine"), key=str) == expected
    assert sorted(sql(f"SELECT * FROM {full}.t"), key=str) == expected
    answer = f"CALL sys.migrate_database('spark', '{database}')"
    assert sql(answer) == [("migrate database is finished, success cnt: 2 , failed cnt: 1: c",)]
    assert sorted(sql(f"SELECT * FROM pm.{database}.o")) == [(1, "a"), (2, "b")]
    for name, message in (("c", "a table of format csv"), ("w", "a view"), ("nope", "there is no table")):
        with pytest.raises(Exception, match=message):
            sql(f"CALL sys.migrate_table('spark', '{database}.{name}', target_table => 'x')")
    with pytest.raises(Exception, match="delete_origin is not supported"):
        sql(f"CALL sys.migrate_table('spark', '{database}.t', target_table => 'x', delete_origin => true)")
    sql(f"DROP DATABASE pm.{database} CASCADE")


@pytest.mark.more
def test_clone_in_sql(sql, tmp_path):
    sql("CREATE TABLE t (id INT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    for i in range(2):
        sql(f"INSERT INTO t VALUES (1, 'v{i}'), ({i + 2}, 'x')")
    assert sql("CALL sys.clone('t', 'copy', snapshot => 1)") == [(1, 1)]
    assert sorted(sql("SELECT * FROM copy")) == [(1, "v0"), (2, "x")]
    assert sql("CALL sys.clone('t', 'copy')")[0][0] == 2
    assert sorted(sql("SELECT * FROM copy")) == sorted(sql("SELECT * FROM t"))
    FileSystemCatalog(str(tmp_path)).create_database(sql.database)
    sql(f"CALL sys.clone('t', 'copy', target_warehouse => '{tmp_path}')")
    there = FileSystemCatalog(str(tmp_path)).table(f"{sql.database}.copy")
    assert there.to_arrow().num_rows == 3


@pytest.mark.more
def test_files_by_table_of_path(sql, files, tmp_path):
    sql("CREATE TABLE t (id INT, v STRING, day DATE, shop STRING) PARTITIONED BY (day, shop)")
    table = PaimonTable.forName(sql.spark, f"pm.{sql.database}.t")
    assert table.addFiles(str(files)).rows == 3
    assert sorted(map(tuple, table.toDF().collect())) == ROWS


class FakeDelta(DataSource):
    """A source that stands for the reader of another format."""

    @classmethod
    def name(cls):
        return "fakelake"

    def schema(self):
        return "id INT, v STRING, day DATE"

    def reader(self, schema):
        return FakeReader(self.options["path"])


class FakeReader(DataSourceReader):
    def __init__(self, path):
        self.path = path

    def read(self, partition):
        yield from ((i, f"{self.path} {i}", date(2026, 1, 1 + i % 2)) for i in range(4))


@pytest.mark.more
def test_table_of_another_format(sql):
    sql.spark.dataSource.register(FakeDelta)
    target = f"pm.{sql.database}.t"
    options = {"primary-key": "day,id", "bucket": "1"}
    paimon_spark.import_table(sql.spark, "fakelake", "x", target, partition_keys=["day"], options=options)
    assert sorted(sql("SELECT * FROM t")) == [(i, f"x {i}", date(2026, 1, 1 + i % 2)) for i in range(4)]
    table = PaimonTable.forName(sql.spark, target)
    assert table._newest_table("seen").schema.partition_keys == ("day",)
    assert sql("SELECT count(*) FROM `t$snapshots` WHERE commit_kind = 'APPEND'") == [(1,)]
    with pytest.raises(Exception, match="ALREADY_EXISTS"):
        paimon_spark.import_table(sql.spark, "fakelake", "x", target)


@pytest.mark.more
@pytest.mark.parametrize(("name", "package"), [("iceberg", "iceberg-spark-runtime"), ("nolake", "format 'nolake'")])
def test_format_without_reader_names_package(sql, name, package):
    with pytest.raises(MissingDependencyError, match=package):
        paimon_spark.import_table(sql.spark, name, "/nowhere", f"pm.{sql.database}.t")
    assert sql("SHOW TABLES") == []


class OfIceberg:
    """A session whose Iceberg reader shows these partition fields."""

    def __init__(self, **fields):
        self.read, self.columns = self, ["partition"]
        self.schema = StructType().add("partition", struct(**fields))

    def format(self, _):
        return self

    def load(self, path):
        assert path == "/ice#partitions"
        return self


def struct(**fields):
    type_ = StructType()
    for name, kind in fields.items():
        type_.add(name, kind)
    return type_


def test_partitions_of_iceberg_are_columns_or_refused():
    columns = struct(id="integer", day="date", ts="timestamp")
    assert iceberg_partitions(OfIceberg(day="date", id="integer"), "/ice", columns) == ["day", "id"]
    for transform in ({"ts_day": "date"}, {"id": "long"}):
        with pytest.raises(UnsupportedError, match="a transform of a column"):
            iceberg_partitions(OfIceberg(**transform), "/ice", columns)
