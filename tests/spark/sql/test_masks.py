"""Position masks: Spark's own scan and a filter return the rows that deletion vectors leave."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.format import parquet_writer
from paimon_core.table import Table
from paimon_spark import PaimonTable
from paimon_spark.sql.reads import driver_rows, masks, native, strategy
from paimon_spark.sql.session_options import MASK_MEMORY, NATIVE_READS
from tests.spark.sql.test_native import TYPES

MASKED = "with deleted rows masked"
PROPERTIES = "TBLPROPERTIES ('deletion-vectors.enabled' = 'true'{})"


@pytest.fixture(autouse=True)
def _driver_reads_nothing(monkeypatch):
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    monkeypatch.setattr(driver_rows, "_MOST_KEYS", 0)


def plan(sql, query):
    return sql(f"EXPLAIN {query}")[0][0]


def both(sql, query):
    """The rows of a query, which are the same with masks and through Python."""
    assert MASKED in plan(sql, query), query
    masked = sql(query)
    sql(f"SET {NATIVE_READS} = false")
    try:
        general = sql(query)
    finally:
        sql(f"RESET {NATIVE_READS}")
    assert sorted(map(repr, masked)) == sorted(map(repr, general)), query
    return masked


def location(sql, table):
    return sql(f"SHOW CREATE TABLE {table}")[0][0].split("LOCATION '")[1].split("'")[0].removeprefix("file:")


@pytest.fixture
def typed(sql):
    """A table ``t`` with a column of each type, and two of five rows deleted."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    values = ", ".join(value for _, value in TYPES.values())
    sql(f"CREATE TABLE t (id INT, {columns}) {PROPERTIES.format('')}")
    rows = [f"(0{', NULL' * len(TYPES)})", *(f"({number}, {values})" for number in range(1, 5))]
    sql(f"INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(rows)}")
    sql("DELETE FROM t WHERE id IN (1, 3)")
    return sql


@pytest.mark.everywhere
def test_every_type_is_read_with_masks(typed):
    sql = typed
    assert f"read by: native: 1 of 1 Parquet files, {MASKED}\n" in plan(sql, "SELECT * FROM t")
    assert len(both(sql, "SELECT * FROM t")) == 3
    assert both(sql, "SELECT 6 DIV (id - 3) AS x FROM t WHERE 6 DIV (id - 3) > 0") == [(6,)]  # fails for a deleted row


@pytest.mark.more
@pytest.mark.versions
def test_filters_aggregates_and_readers_of_rows(typed):
    sql = typed
    assert len(both(sql, "SELECT * FROM t")) == 3
    assert len(both(sql, "SELECT st.y.z, m['k'] FROM t WHERE i4 < 0 AND s LIKE 'ä%'")) == 2
    assert both(sql, "SELECT count(i4), sum(id), max(day) IS NULL FROM t") == [(2, 6, False)]
    assert sql("SELECT count(*) FROM t") == [(3,)]
    try:
        sql("SET spark.sql.parquet.enableVectorizedReader = false")
        assert len(both(sql, "SELECT * FROM t")) == 3
        sql("SET spark.sql.codegen.wholeStage = false")
        sql("SET spark.sql.codegen.factoryMode = NO_CODEGEN")
        assert len(both(sql, "SELECT * FROM t")) == 3
    finally:
        for name in ("parquet.enableVectorizedReader", "codegen.wholeStage", "codegen.factoryMode"):
            sql(f"RESET spark.sql.{name}")


@pytest.mark.more
@pytest.mark.parametrize("bits", [32, pytest.param(64, marks=pytest.mark.versions)])
def test_files_of_several_splits_and_row_groups(sql, monkeypatch, bits):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 2500)
    sql(
        "CREATE TABLE t (id BIGINT, g INT, s STRING) "
        + PROPERTIES.format(f", 'deletion-vectors.bitmap64' = '{str(bits == 64).lower()}'")
    )
    table = Table.open(location(sql, "t"))
    for ids in (range(30000), range(30000, 40000)):
        columns = {"id": ids, "g": [i % 5 for i in ids], "s": [f"x{i}" for i in ids]}
        table.write(pa.table({**columns, "g": pa.array(columns["g"], pa.int32())}))
    files = Path(table.path).glob("bucket-*/*.parquet")
    assert sorted(pq.read_metadata(file).num_row_groups for file in files) == [4, 12]
    sql("DELETE FROM t WHERE id < 20000 AND id % 7 = 3")
    sql("SET spark.sql.files.maxPartitionBytes = 8000")
    sql("SET spark.sql.files.openCostInBytes = 0")
    try:
        assert f"native: 2 of 2 Parquet files, {MASKED}" in plan(sql, "SELECT * FROM t")
        assert sql.spark.table(f"pm.{sql.database}.t").rdd.getNumPartitions() > 4
        assert len(both(sql, "SELECT * FROM t")) == 40000 - 2857
        for query in (
            "SELECT * FROM t WHERE id BETWEEN 9990 AND 10010",
            "SELECT id FROM t WHERE id = 10",
            "SELECT g, count(*), sum(id), max(s) FROM t WHERE id > 19000 GROUP BY g",
            "SELECT id FROM t WHERE s IN ('x10', 'x17', 'x18', 'x29999')",
            "SELECT id, s FROM t WHERE g = 3 ORDER BY id LIMIT 10",
            "SELECT a.id, b.s FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.id < 100",
            "SELECT id FROM t WHERE id < 30 UNION ALL SELECT id FROM t WHERE id < 30",
            "WITH x AS (SELECT id FROM t WHERE g = 1) SELECT count(*) FROM x WHERE id > (SELECT avg(id) FROM x)",
        ):
            both(sql, query)
        assert both(sql, "SELECT id FROM t WHERE id BETWEEN 9 AND 11") == [(9,), (11,)]
        assert len(sql("SELECT id FROM t LIMIT 25000")) == 25000
        assert sql("SELECT count(*), min(id) FROM t") == [(40000 - 2857, 0)]
    finally:
        sql("RESET spark.sql.files.maxPartitionBytes")
        sql("RESET spark.sql.files.openCostInBytes")


@pytest.fixture
def parts(sql):
    """A table ``t`` of two files in each partition: in 'a' both have deleted rows, in 'b' one, and in 'c' none."""
    sql(f"CREATE TABLE t (id INT, v INT, p STRING) PARTITIONED BY (p) {PROPERTIES.format('')}")
    for first in (0, 10):
        sql(
            f"INSERT INTO t SELECT /*+ COALESCE(1) */ id, id * 2, p FROM range({first}, {first + 10}, 1, 1) "
            "CROSS JOIN (VALUES ('a'), ('b'), ('c')) v(p)"
        )
    table = Table.open(location(sql, "t"))
    table.delete("p = 'a' AND id IN (0, 5, 17)")
    table.delete("p = 'b' AND id BETWEEN 1 AND 9")
    return sql


@pytest.mark.more
@pytest.mark.versions
def test_partitions_and_runtime_filters(parts):
    sql = parts
    assert len(both(sql, "SELECT * FROM t")) == 48
    for query in (
        "SELECT p, count(*), sum(v) FROM t GROUP BY p",
        "SELECT id FROM t WHERE p = 'a'",
        "SELECT * FROM t WHERE p < 'c' AND v > 4",
        "SELECT t.p, t.id, u.id FROM t JOIN t u ON t.id = u.id + 1 AND t.p = u.p",
    ):
        both(sql, query)
    assert len(both(sql, "SELECT * FROM t WHERE p = 'b'")) == 11
    assert MASKED not in plan(sql, "SELECT id FROM t WHERE p = 'c'")
    assert "native: 2 of 2 Parquet files\n" in plan(sql, "SELECT id FROM t WHERE p = 'c'")
    sql("CREATE TABLE d (p STRING, x INT)")
    sql("INSERT INTO d VALUES ('a', 1), ('b', 1), ('c', 2)")
    for number, count in ((1, 28), (2, 20), (3, 0)):
        query = f"SELECT t.id, t.p, d.x FROM t JOIN d ON t.p = d.p WHERE d.x = {number}"
        assert "dynamicpruning" in plan(sql, query)
        assert len(both(sql, query)) == count


@pytest.mark.more
def test_time_travel_schema_changes_and_expired_files(parts):
    sql = parts
    assert len(both(sql, "SELECT * FROM t VERSION AS OF 3")) == 57
    assert len(sql("SELECT * FROM t VERSION AS OF 2")) == 60
    sql("ALTER TABLE t ADD COLUMN w STRING")
    sql("INSERT INTO t (id, v, w, p) VALUES (99, 1, 'w', 'a')")
    assert len(both(sql, "SELECT id, w, p FROM t WHERE p = 'a'")) == 18
    assert both(sql, "SELECT id FROM t WHERE w IS NOT NULL OR id = 4 AND p = 'a' ORDER BY id") == [(4,), (99,)]
    sql("ALTER TABLE t RENAME COLUMN v TO u")
    assert "column u has changed since schema" in plan(sql, "SELECT u FROM t")
    assert len(both(sql, "SELECT id, p FROM t")) == 49
    frame = sql.spark.sql(f"SELECT id, p FROM pm.{sql.database}.t")
    sql("INSERT OVERWRITE t VALUES (1, 1, 'a', 'z')")
    assert frame.count() == 1


@pytest.mark.more
def test_other_readers_than_a_query_by_name(parts):
    sql = parts
    path, name = location(sql, "t"), f"pm.{sql.database}.t"
    table = PaimonTable.forPath(sql.spark, path)
    assert f"read by: native: 6 of 6 Parquet files, {MASKED}\n" in str(table.explain())
    by_path = sql.spark.read.format("paimon").load(path)
    for rows in (
        table.toDF(),
        by_path,
        sql.spark.newSession().table(name),
        sql.spark.table(name).cache(),
    ):
        assert MASKED in rows._jdf.queryExecution().toString()
        assert rows.count() == 48
        assert sorted(row.id for row in rows.where("p = 'a'").collect()) == sorted({*range(20)} - {0, 5, 17})
    sql.spark.catalog.clearCache()
    assert sql("DELETE FROM t WHERE p = 'a' AND id = 1") == [(1,)]
    assert sql("UPDATE t SET v = 7 WHERE p = 'a' AND id = 2") == [(1,)]
    assert both(sql, "SELECT v FROM t WHERE p = 'a' AND id < 4 ORDER BY v") == [(6,), (7,)]
    assert by_path.where("p = 'a'").count() == 16


@pytest.mark.more
def test_scan_that_no_rule_changes_is_read_by_tasks(parts):
    sql = parts
    methods = sql.spark._jsparkSession.sessionState().experimentalMethods()
    rules = methods.extraOptimizations()
    frame = sql.spark.sql(f"SELECT * FROM pm.{sql.database}.t WHERE id < 10")
    getattr(methods, "extraOptimizations_$eq")(rules.take(0))
    try:
        shown = frame._jdf.queryExecution().toString()
        assert MASKED not in shown
        assert "through Python: bucket 0 has deletion vectors" in shown
        assert frame.count() == 19
    finally:
        getattr(methods, "extraOptimizations_$eq")(rules)


@pytest.mark.more
def test_reasons_against_masks(sql):
    sql(f"CREATE TABLE t (id INT, __Paimon_Masked_File INT) {PROPERTIES.format('')}")
    sql("CREATE TABLE o (id INT) " + PROPERTIES.format(", 'file.format' = 'orc'"))
    sql(f"CREATE TABLE u (id INT) {PROPERTIES.format('')}")
    for name in "tou":
        sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ {'id, ' if name == 't' else ''}id FROM range(0, 100, 1, 1)")
        sql(f"DELETE FROM {name} WHERE id < 3")
    vectors = "read by: through Python: bucket 0 has deletion vectors, and "
    shown = plan(sql, "SELECT id FROM t")
    assert f"{vectors}a column is called __Paimon_Masked_File, as a column of position masks\n" in shown
    assert f"{vectors}only Parquet files have masks\n" in plan(sql, "SELECT * FROM o")
    both(sql, "SELECT * FROM u")
    sql.spark.conf.set(MASK_MEMORY, "15")
    try:
        assert f"{vectors}their masks of 16 bytes exceed {MASK_MEMORY}\n" in plan(sql, "SELECT * FROM u")
        assert len(sql("SELECT * FROM u")) == 97
        sql.spark.conf.set(MASK_MEMORY, "much")
        with pytest.raises(Exception, match=f"setting '{MASK_MEMORY}' is 'much': it must be a size"):
            sql("SELECT * FROM u")
    finally:
        sql.spark.conf.unset(MASK_MEMORY)


@pytest.mark.more
def test_masks_are_read_once_and_kept_within_memory(parts, monkeypatch):
    sql = parts
    reads = []
    load = masks.load_vectors
    monkeypatch.setattr(masks, "load_vectors", lambda io, stored: reads.extend(stored) or load(io, stored))
    for _ in range(2):
        assert len(sql("SELECT id FROM t")) == 48
    assert len(sql("SELECT id FROM t WHERE p = 'a'")) == 17
    assert sorted(reads, key=str) == sorted(set(reads), key=str)
    assert len(reads) == 3
    sql("DELETE FROM t WHERE p = 'a' AND id = 1")
    assert len(sql("SELECT id FROM t")) == 47
    assert len(reads) > 3
    sql.spark.conf.set(MASK_MEMORY, "24")
    try:
        sql("DELETE FROM t WHERE p = 'a' AND id IN (2, 12)")
        del reads[:]
        for _ in range(2):
            assert len(sql("SELECT id FROM t")) == 45
        assert len(reads) > 3
    finally:
        sql.spark.conf.unset(MASK_MEMORY)


@pytest.mark.more
def test_missing_vectors_are_an_error(parts):
    sql = parts
    for index in Path(location(sql, "t")).glob("index/index-*"):
        index.unlink()
    with pytest.raises(Exception, match=r"deletion vectors .* are missing"):
        sql("SELECT * FROM t")


@pytest.mark.more
@pytest.mark.versions
def test_merged_files_and_masked_files_are_two_scans(sql, monkeypatch):
    monkeypatch.setattr(native, "LEAST_BYTES", 1)
    monkeypatch.setattr(strategy, "unsuitable_merge", lambda *_: "tasks merge")
    options = (
        ", 'primary-key' = 'id,p', 'bucket' = '1', 'deletion-vectors.merge-on-read' = 'true', 'write-only' = 'true'"
    )
    sql(f"CREATE TABLE t (id INT NOT NULL, p STRING NOT NULL, v INT) PARTITIONED BY (p) {PROPERTIES.format(options)}")
    table = Table.open(location(sql, "t"))
    sql("INSERT INTO t SELECT id, p, 1 FROM range(9) CROSS JOIN (VALUES ('a'), ('b')) v(p)")
    table.compact(full=True)
    sql("INSERT INTO t SELECT id, p, 2 FROM range(3, 5) CROSS JOIN (VALUES ('a'), ('b')) v(p)")
    table.compact()
    sql("INSERT INTO t VALUES (1, 'b', 3), (77, 'b', 3)")
    shown = plan(sql, "SELECT * FROM t")
    assert "Union" in shown
    assert f"Parquet files, {MASKED}, others through Python" in shown
    assert f"Parquet files, {MASKED}; through Python: " in shown
    assert len(both(sql, "SELECT * FROM t")) == 19
    both(sql, "SELECT v, count(*), sum(id) FROM t WHERE id > 0 GROUP BY v")
