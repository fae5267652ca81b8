"""Masks of merged files: Spark's own scan and a filter return the rows that the merge returns."""

from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import SetOption
from paimon_core.format import parquet_writer
from paimon_core.table import Table
from paimon_spark import PaimonTable, internals
from paimon_spark.sql.reads import driver_rows, mask_choice, masks, native_rows
from paimon_spark.sql.reads.mask_choice import MergeCost
from paimon_spark.sql.reads.masks import merge_threads
from paimon_spark.sql.session_options import MASK_MEMORY, MASK_ROWS, NATIVE_READS
from tests.spark.sql.test_masks import location, plan
from tests.spark.sql.test_native import TYPES
from tests.support.tables import keyed_table

MASKED = "with superseded rows masked"
ROWS = pa.schema([pa.field("id", pa.int32(), False), ("s", pa.int32()), ("v", pa.string())])
KINDS = ["+I", "-U", "+U", "-D"]


@pytest.fixture(autouse=True)
def _driver_reads_nothing(monkeypatch):
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    monkeypatch.setattr(driver_rows, "_MOST_KEYS", 0)


@pytest.fixture
def merges(monkeypatch):
    """The conditions with which the driver merges sections during a test."""
    conditions = []
    merge = masks.merge_masks
    monkeypatch.setattr(
        masks,
        "merge_masks",
        lambda store, section, condition: conditions.append(condition) or merge(store, section, condition),
    )
    return conditions


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


def keyed(sql, options="", columns="id INT NOT NULL, s INT, v STRING", by=""):
    """Create a table ``t`` with the key ``id`` and return it."""
    sql(
        f"CREATE TABLE t ({columns}) {by} TBLPROPERTIES "
        f"('primary-key' = '{'id,p' if by else 'id'}', 'bucket' = '1', 'write-only' = 'true'{options})"
    )
    return Table.open(location(sql, "t"))


def write(table, rows):
    """Commit rows (kind, id, s, v)."""
    with table.writer("u") as writer:
        columns = zip(*(row[1:] for row in rows), strict=True)
        writer.write(pa.table(list(map(list, columns)), ROWS), row_kinds=[row[0] for row in rows])
        table.committer("u").commit(writer.prepare_commit())


def test_superseded_rows_are_masked_and_merged_once(sql, merges):
    table = keyed(sql)
    write(table, [("+I", n, 0, "old") for n in range(4)])
    write(table, [("+U", 1, 1, "new"), ("+U", 2, None, None), ("-D", 3, 0, "old")])
    merged = f"read by: native: 2 of 2 Parquet files, {MASKED}: the driver merges 7 rows\n"
    assert merged in plan(sql, "SELECT * FROM t")
    assert merges == [None]
    assert f"{MASKED}: the driver has the masks\n" in plan(sql, "SELECT * FROM t")
    assert len(both(sql, "SELECT * FROM t")) == 3
    assert sql("SELECT 6 DIV (id - 3) AS x FROM t WHERE 6 DIV (id - 3) = -3") == [(-3,)]  # a deleted row fails
    assert sql("SELECT id FROM t WHERE v = 'old'") == [(0,)]
    assert merges == [None]


@pytest.mark.more
@pytest.mark.versions
def test_every_type_is_read_with_masks(sql):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    values = ", ".join(value for _, value in TYPES.values())
    keyed(sql, columns=f"id INT NOT NULL, {columns}")
    sql(f"INSERT INTO t VALUES {', '.join(f'({n}, {values})' for n in range(4))}")
    sql(f"INSERT INTO t VALUES (1, {values}), (2{', NULL' * len(TYPES)})")
    sql("DELETE FROM t WHERE id = 3")
    assert len(both(sql, "SELECT * FROM t")) == 3
    assert both(sql, "SELECT id FROM t WHERE i4 < 0 ORDER BY id") == [(0,), (1,)]


ENGINES = {
    "deduplicate": "",
    "ignore-delete": ", 'ignore-delete' = 'true'",
    "sequence field": ", 'sequence.field' = 's'",
    "descending": ", 'sequence.field' = 's', 'sequence.field.sort-order' = 'descending'",
    "lookups": ", 'changelog-producer' = 'lookup'",
    "vectors": ", 'deletion-vectors.enabled' = 'true', 'deletion-vectors.merge-on-read' = 'true'",
    "first-row": ", 'merge-engine' = 'first-row', 'ignore-delete' = 'true'",
}


@pytest.mark.more
@pytest.mark.versions
@pytest.mark.parametrize("engine", ENGINES)
def test_filter_on_values_never_revives_a_superseded_row(sql, engine):
    table = keyed(sql, ENGINES[engine])
    pairs = [(before, after) for before in KINDS for after in KINDS]
    write(table, [*(("+I", 2 * n, 1, "first") for n in range(50)), ("+I", 200, 3, "old"), ("+I", 201, 5, "new")])
    table.compact(full=True)
    write(table, [("+I", 2 * n + 1, 9, "second") for n in range(20)])
    if engine in ("lookups", "vectors", "first-row"):
        table.compact()
    for index in (0, 1) if engine != "first-row" else ():  # whose level 0 is not read
        write(table, [(pair[index], n, (5, 3)[index], ("old", "new")[index]) for n, pair in enumerate(pairs)])
    for where in ("v = 'old'", "v = 'new'", "v = 'first' AND s <= 3", "s > 3 OR id % 4 = 3", "true"):
        both(sql, f"SELECT * FROM t WHERE {where}")
    both(sql, "SELECT count(*), min(v), max(s) FROM t WHERE s <> 3")


@pytest.fixture
def parts(sql):
    """A table ``t`` with three runs in partition 'a', two in 'b', and one in 'c'."""
    keyed(sql, columns="id INT NOT NULL, v INT, p STRING NOT NULL", by="PARTITIONED BY (p)")
    sql("INSERT INTO t SELECT id, id, p FROM range(20) CROSS JOIN (VALUES ('a'), ('b'), ('c')) v(p)")
    sql("INSERT INTO t SELECT id, -id, p FROM range(5, 25) CROSS JOIN (VALUES ('a'), ('b')) v(p)")
    sql("DELETE FROM t WHERE p = 'a' AND id IN (0, 7)")
    return sql


@pytest.mark.more
@pytest.mark.versions
def test_partitions_joins_and_runtime_filters(parts):
    sql = parts
    assert len(both(sql, "SELECT * FROM t")) == 68
    for query in (
        "SELECT p, count(*), sum(v) FROM t GROUP BY p",
        "SELECT id FROM t WHERE p = 'a' AND v > 0",
        "SELECT * FROM t WHERE p < 'c' AND v > 4",
        "SELECT t.p, t.id, u.id FROM t JOIN t u ON t.id = u.id + 1 AND t.p = u.p",
        "SELECT id FROM t WHERE id < 30 UNION ALL SELECT id FROM t WHERE id < 30",
        "SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE v < 0)",
        "WITH x AS (SELECT id FROM t WHERE v > 1) SELECT count(*) FROM x WHERE id > (SELECT avg(id) FROM x)",
    ):
        both(sql, query)
    assert MASKED not in plan(sql, "SELECT id FROM t WHERE p = 'c'")
    assert len(sql("SELECT id FROM t LIMIT 60")) == 60
    assert sql("SELECT count(*) FROM t") == [(68,)]
    sql("CREATE TABLE d (p STRING, x INT)")
    sql("INSERT INTO d VALUES ('a', 1), ('b', 1), ('c', 2)")
    for number, count in ((1, 48), (2, 20), (3, 0)):
        query = f"SELECT t.id, t.p, d.x FROM t JOIN d ON t.p = d.p WHERE d.x = {number}"
        assert "dynamicpruning" in plan(sql, query)
        assert len(both(sql, query)) == count


def counts(sql, query):
    """The result of a query without a scan, which is the same through Python."""
    assert "BatchScan" not in plan(sql, query), query
    counted = sql(query)
    sql(f"SET {NATIVE_READS} = false")
    try:
        assert "BatchScan" in plan(sql, query), query
        assert sorted(map(repr, sql(query))) == sorted(map(repr, counted)), query
    finally:
        sql(f"RESET {NATIVE_READS}")
    return counted


def test_masks_count_rows_of_merged_files(sql, merges):
    table = keyed(sql)
    write(table, [("+I", n, 0, "old") for n in range(100)])
    write(table, [("+U", 1, 9, "new"), ("-D", 3, 0, "old"), ("+I", 200, None, None)])
    assert counts(sql, "SELECT count(*), count(id), count(1) FROM t") == [(100, 100, 100)]
    assert counts(sql, "SELECT count(*) + 1 FROM t LIMIT 1") == [(101,)]
    for query in ("SELECT max(s) FROM t", "SELECT count(*), max(id) FROM t", "SELECT count(v) FROM t"):
        both(sql, query)
    both(sql, "SELECT count(*) FROM t WHERE id < 50")
    assert merges == [None]
    sql.spark.conf.set(MASK_MEMORY, "1")
    try:
        assert "BatchScan" in plan(sql, "SELECT count(*) FROM t")
        assert sql("SELECT count(*) FROM t") == [(100,)]
    finally:
        sql.spark.conf.unset(MASK_MEMORY)


@pytest.mark.more
@pytest.mark.versions
def test_files_without_live_rows_are_not_read(sql, monkeypatch):
    monkeypatch.setattr(native_rows, "base_run", lambda store, plan: None)
    table = keyed(sql)
    write(table, [("+I", n, 0, "old") for n in range(100)])
    (old,) = Path(table.path).rglob("data-*.parquet")
    write(table, [("+I", n, 1, "new") for n in range(100)])
    write(table, [("+I", n, 2, "newest") for n in range(50)])
    assert len(both(sql, "SELECT * FROM t WHERE v <> 'old'")) == 100
    old.rename(table.path + "/moved")
    assert sql("SELECT max(s), min(s), count(v) FROM t") == [(2, 1, 100)]
    assert sql("UPDATE t SET v = 'x' WHERE s = 1 AND id < 99") == [(49,)]
    Path(table.path + "/moved").rename(old)
    assert len(both(sql, "SELECT * FROM t WHERE v = 'x'")) == 49
    sql("DELETE FROM t WHERE id >= 0")
    assert sql("SELECT id, v FROM t") == sql("SELECT max(v) FROM t WHERE s IS NULL HAVING count(v) > 0") == []


@pytest.mark.more
@pytest.mark.versions
@pytest.mark.parametrize("engine", ENGINES)
def test_masks_count_rows_of_each_engine(sql, engine):
    table = keyed(sql, ENGINES[engine])
    pairs = [(before, after) for before in KINDS for after in KINDS]
    write(table, [*(("+I", 2 * n, 1, "first") for n in range(50)), ("-D", 201, 5, "new")])
    assert len(sql("SELECT * FROM t")) == sql("SELECT count(*) FROM t")[0][0]
    table.compact(full=True)
    write(table, [("+I", 2 * n + 1, 9, "second") for n in range(20)])
    for index in (0, 1):
        if engine in ("lookups", "vectors", "first-row"):
            table.compact()
        write(table, [(pair[index], n, (5, 3)[index], ("old", "new")[index]) for n, pair in enumerate(pairs)])
    assert len(sql("SELECT * FROM t")) == counts(sql, "SELECT count(*) FROM t")[0][0]


@pytest.mark.more
def test_masks_count_rows_of_partitions(parts, merges):
    sql = parts
    assert counts(sql, "SELECT p, count(*) FROM t GROUP BY p ORDER BY p") == [("a", 23), ("b", 25), ("c", 20)]
    for where, count in (("p = 'a'", 23), ("p > 'a'", 45), ("p = 'c'", 20), ("p IN ('a', 'x')", 23), ("p = 'x'", 0)):
        assert sql(f"SELECT count(*) FROM t WHERE {where}") == [(count,)]
    assert counts(sql, "SELECT min(p), max(p), count(p) FROM t WHERE p <> 'c'") == [("a", "b", 48)]
    assert counts(sql, "SELECT count(*) FROM t VERSION AS OF 2") == [(70,)]
    assert len(merges) == 1, "DELETE has merged the files of partition a, and the driver keeps their masks"
    sql("DELETE FROM t WHERE p = 'b' AND id < 25")
    assert counts(sql, "SELECT p, count(*) FROM t GROUP BY p ORDER BY p") == [("a", 23), ("c", 20)]
    by_path = sql.spark.read.format("paimon").load(location(sql, "t"))
    assert by_path.count() == 43
    assert by_path.where("p = 'a'").limit(5).count() == 5
    assert sql("SELECT count(*) FROM (SELECT * FROM t LIMIT 30)") == [(30,)]


@pytest.mark.more
def test_time_travel_schema_changes_and_concurrent_commits(parts, merges):
    sql = parts
    assert len(both(sql, "SELECT * FROM t")) == 68
    count = len(merges)
    assert len(both(sql, "SELECT * FROM t VERSION AS OF 2")) == 70
    assert len(merges) == count, "DELETE has read these files, and the driver keeps their masks"
    frame = sql.spark.sql(f"SELECT id, v FROM pm.{sql.database}.t WHERE p = 'a'")
    internals.optimized(frame)
    sql("INSERT INTO t VALUES (1, 77, 'a')")
    assert both(sql, "SELECT v FROM t WHERE p = 'a' AND id = 1") == [(77,)]
    sql("CALL sys.compact(table => 't')")
    assert sorted(row.v for row in frame.collect())[-2:] == [3, 4]
    sql("ALTER TABLE t ADD COLUMN w STRING")
    sql("INSERT INTO t (id, v, w, p) VALUES (2, 5, 'w', 'a')")
    assert both(sql, "SELECT id, v FROM t WHERE w IS NOT NULL") == [(2, 5)]
    assert len(both(sql, "SELECT id, w, p FROM t WHERE p = 'a'")) == 23
    sql("ALTER TABLE t RENAME COLUMN v TO u")
    assert "column u has changed since schema" in plan(sql, "SELECT u FROM t")
    assert len(both(sql, "SELECT id, p FROM t WHERE p = 'a'")) == 23


@pytest.mark.more
def test_merge_rules_are_part_of_the_identity_of_masks(sql):
    table = keyed(sql)
    write(table, [("+I", 1, 2, "a"), ("+I", 2, 1, "c")])
    write(table, [("+I", 1, 1, "b"), ("+I", 2, 2, "d")])
    write(table, [("-D", 2, 3, "e")])
    assert both(sql, "SELECT v FROM t") == [("b",)]
    table.store.alter([SetOption("ignore-delete", "true")])  # another engine does not look for deletes
    assert both(sql, "SELECT v FROM t") == [("b",)]
    write(Table.open(table.path), [("+I", 3, 3, "f")])
    assert sorted(both(sql, "SELECT v FROM t")) == [("b",), ("d",), ("f",)]


@pytest.mark.more
@pytest.mark.versions
def test_files_of_several_splits_and_row_groups(sql, monkeypatch):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 1000)
    table = keyed(sql)
    for run in range(5):
        ids = range(run, 15000, run + 1)
        write(table, [("-D" if i % 7 == run else "+I", i, run, f"x{i % 100}") for i in ids])
    sql("SET spark.sql.files.maxPartitionBytes = 8000")
    sql("SET spark.sql.files.openCostInBytes = 0")
    try:
        assert sql.spark.table(f"pm.{sql.database}.t").rdd.getNumPartitions() > 4
        for query in (
            "SELECT * FROM t",
            "SELECT s, count(*), sum(id), max(v) FROM t GROUP BY s",
            "SELECT * FROM t WHERE id BETWEEN 9990 AND 10010",
            "SELECT id FROM t WHERE v IN ('x10', 'x17') AND s = 0",
            "SELECT id, s FROM t WHERE s = 3 ORDER BY id LIMIT 10",
        ):
            both(sql, query)
    finally:
        sql("RESET spark.sql.files.maxPartitionBytes")
        sql("RESET spark.sql.files.openCostInBytes")


@pytest.mark.more
def test_filter_on_keys_merges_few_rows(sql, merges, monkeypatch):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", 100)
    table = keyed(sql)
    for run in range(2):
        write(table, [("+I", i, run, f"x{i}") for i in range(run, 1000)])
    shown = plan(sql, "SELECT * FROM t WHERE id BETWEEN 400 AND 410")
    assert f"{MASKED}: the driver merges the keys of the filter\n" in shown
    assert len(both(sql, "SELECT * FROM t WHERE id BETWEEN 400 AND 410")) == 11
    assert both(sql, "SELECT s FROM t WHERE id = 5 AND s < 1") == []
    assert len(both(sql, "SELECT * FROM t")) == 1000
    count = len(merges)
    assert f"{MASKED}: the driver has the masks\n" in plan(sql, "SELECT * FROM t WHERE id < 5")
    assert len(both(sql, "SELECT * FROM t WHERE id < 5")) == 5
    assert len(merges) == count


@pytest.mark.more
def test_other_readers_than_a_query_by_name(parts):
    sql = parts
    path, name = location(sql, "t"), f"pm.{sql.database}.t"
    table = PaimonTable.forPath(sql.spark, path)
    assert f"read by: native: 6 of 6 Parquet files, {MASKED}: " in str(table.explain())
    by_path = sql.spark.read.format("paimon").load(path)
    first = sql.spark.newSession().read.format("paimon").load(path)  # the first read of a session
    for rows in (table.toDF(), by_path, first, sql.spark.newSession().table(name), sql.spark.table(name).cache()):
        assert MASKED in rows._jdf.queryExecution().toString()
        assert rows.count() == 68
    sql.spark.catalog.clearCache()
    assert sql("UPDATE t SET v = 100 WHERE p = 'a' AND id = 6") == [(1,)]
    assert both(sql, "SELECT id FROM t WHERE p = 'a' AND v > 4") == [(6,)]
    assert by_path.where("p = 'a'").count() == 23


def test_reasons_against_masks(sql, monkeypatch):
    table = keyed(sql)
    for number in range(2):
        write(table, [("+I", 1, number, "x")])
    merged = "read by: through Python: 2 files of bucket 0 are merged, and "
    for setting, value, reason in (
        (MASK_ROWS, "0", f"{MASK_ROWS} is 0"),
        (MASK_MEMORY, "1", "their masks of 16 bytes exceed"),
    ):
        sql.spark.conf.set(setting, value)
        try:
            assert merged + reason in plan(sql, "SELECT * FROM t")
        finally:
            sql.spark.conf.unset(setting)
    sql.spark.conf.set(MASK_ROWS, "many")
    try:
        with pytest.raises(Exception, match=f"setting '{MASK_ROWS}' is 'many': it must be a whole number"):
            sql("SELECT * FROM t")
    finally:
        sql.spark.conf.unset(MASK_ROWS)
    with monkeypatch.context() as patched:
        patched.setattr(mask_choice, "_NATIVE", 1000.0)
        assert f"{merged}tasks take about 0.2 s, and masks about " in plan(sql, "SELECT s FROM t")
        assert sql("SELECT s FROM t") == [(1,)]
    sql("ALTER TABLE t SET TBLPROPERTIES ('scan.ignore-lost-files' = 'true')")
    assert f"{merged}scan.ignore-lost-files is on\n" in plan(sql, "SELECT * FROM t")
    sql("DROP TABLE t")
    table = keyed(sql, ", 'merge-engine' = 'partial-update'")
    for number in range(2):
        write(table, [("+I", 1, number, "x")])
    assert f"{merged}merge engine partial-update combines rows\n" in plan(sql, "SELECT * FROM t")


@pytest.mark.more
def test_tasks_compute_masks_of_more_rows_than_the_driver_merges(sql, merges, monkeypatch):
    monkeypatch.setattr(mask_choice, "_START", 0.0)
    monkeypatch.setattr(mask_choice, "_TASK", 1.0)
    sql.spark.conf.set(MASK_ROWS, "10")
    try:
        table = keyed(sql, columns="id INT NOT NULL, s INT, v STRING, p INT NOT NULL", by="PARTITIONED BY (p)")
        for number in range(3):
            sql(f"INSERT INTO t SELECT id, {number}, 'x', id % 2 FROM range({number}, 8)")
        assert sql("SELECT count(*) FROM t") == [(8,)]
        sql("DELETE FROM t WHERE id = 5")
        assert f"{MASKED}: Spark tasks merge 22 rows\n" in plan(sql, "SELECT * FROM t")
        assert f"{MASKED}: the driver has the masks\n" in plan(sql, "SELECT * FROM t")
        assert len(both(sql, "SELECT * FROM t WHERE s < 2")) == 2
        assert sorted(both(sql, "SELECT p, sum(s) FROM t GROUP BY p")) == [(0, 6), (1, 5)]
        assert merges == []
        sql("INSERT INTO t VALUES (5, 9, 'y', 1), (6, 9, 'y', 0)")
        keys = "the filter selects keys of 23 rows, which exceed"
        assert f"and {keys} {MASK_ROWS} " in plan(sql, "SELECT * FROM t WHERE id = 5")
        assert sql("SELECT s FROM t WHERE id = 5") == [(9,)]
        sql("UPDATE t SET v = 'z' WHERE s = 9")
        assert sorted(both(sql, "SELECT id FROM t WHERE v = 'z'")) == [(5,), (6,)]
        missing = sorted(Path(table.store.root).glob("p=1/bucket-0/*.parquet"))[0]
        sql("INSERT INTO t VALUES (5, 9, 'y', 1)")
        missing.unlink()
        with pytest.raises(Exception, match=missing.name):
            sql("SELECT * FROM t")
    finally:
        sql.spark.conf.unset(MASK_ROWS)


@pytest.mark.parametrize(
    ("sections", "slots", "columns", "pays"),
    [(1, 1, 6, True), (8, 8, 1, False), (200, 200, 6, False), (200, 8, 6, True)],
)
def test_cost_model_prefers_tasks_of_many_machines(sections, slots, columns, pays):
    assert MergeCost(50_000_000, 1, columns, sections, 2, slots).pays == pays


def test_driver_merges_one_section_at_a_time_within_a_memory_limit(tmp_path):
    table = keyed_table(tmp_path / "t")
    assert merge_threads(table.store) >= 2
    assert merge_threads(table.with_options({"memory-limit": "64 mb"}).store) == 1


@pytest.mark.parametrize(("sections", "slots", "pays"), [(1, 1, True), (200, 200, True), (200, 8, True), (1, 8, True)])
def test_cost_model_compares_tasks_that_merge_keys_with_tasks_that_merge_rows(sections, slots, pays):
    assert MergeCost(500_000_000, 1, 6, sections, 2, slots, in_tasks=True).pays == pays


@pytest.mark.more
def test_files_without_overlap_are_native(sql):
    table = keyed(sql)
    for first in (0, 10, 20):
        write(table, [("+I", first + n, n, "x") for n in range(5)])
    assert "read by: native: 3 of 3 Parquet files\n" in plan(sql, "SELECT * FROM t")
    assert len(sql("SELECT * FROM t WHERE s < 4")) == 12
    write(table, [("-D", 11, 1, "x")])
    assert len(both(sql, "SELECT * FROM t WHERE s < 4")) == 11


@pytest.mark.more
def test_masks_are_dropped_beyond_memory(parts, merges):
    sql = parts
    sql.spark.conf.set(MASK_MEMORY, "56")
    try:
        for _ in range(2):
            assert len(sql("SELECT id FROM t WHERE p = 'a'")) == 23
            assert len(sql("SELECT id FROM t WHERE p = 'b'")) == 25
            assert len(sql("SELECT id FROM t")) == 68
        assert len(merges) > 2
    finally:
        sql.spark.conf.unset(MASK_MEMORY)
