"""Joins and aggregations by the bucket key: without a shuffle if Spark's setting is on, and with the same rows."""

import pytest

from paimon_spark.sql.reads.bucketed import SETTING
from paimon_spark.sql.session_options import NATIVE_READS

SHUFFLE = "spark.sql.sources.v2.bucketing.shuffle.enabled"
SUBSET = "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
TABLES = {
    "plain": ("id BIGINT, v STRING", "", "'bucket'='4', 'bucket-key'='id'"),
    "keyed": ("id BIGINT NOT NULL, v STRING", "", "'bucket'='4', 'primary-key'='id'"),
    "parts": ("id BIGINT, dt STRING, n INT", "PARTITIONED BY (dt, n)", "'bucket'='4', 'bucket-key'='id'"),
    "eight": ("id BIGINT, v STRING", "", "'bucket'='8', 'bucket-key'='id'"),
    "ints": ("id INT, v STRING", "", "'bucket'='4', 'bucket-key'='id'"),
    "floats": ("id DOUBLE, v STRING", "", "'bucket'='4', 'bucket-key'='id'"),
    "two": ("id BIGINT, v STRING", "", "'bucket'='4', 'bucket-key'='id,v'"),
    "deleted": ("id BIGINT, v STRING", "", "'bucket'='4', 'bucket-key'='id', 'deletion-vectors.enabled'='true'"),
}
ROWS = {
    "keyed": ["SELECT id * 2, string(id) FROM range(80)", "SELECT id * 3, concat('x', id) FROM range(30)"],
    "parts": ["SELECT id, if(id % 5 = 4, NULL, string(id % 2)), int(id % 3) FROM range(90)"],
    "floats": ["SELECT if(id = 0, -0D, double(id)), string(id) FROM range(50)"],
}
PLAIN = ["SELECT id, string(id) FROM range(100)"]


@pytest.fixture
def tables(sql):
    """A function that makes tables of `TABLES` with rows and returns the function `sql`; no side is broadcast."""

    def make(*names):
        for name in names:
            columns, partitions, properties = TABLES[name]
            sql(f"CREATE TABLE {name} ({columns}) {partitions} TBLPROPERTIES ({properties})")
            for rows in ROWS.get(name, PLAIN):
                sql(f"INSERT INTO {name} {rows}")
        return sql

    sql.spark.conf.set(BROADCAST, "-1")
    yield make
    for name in (BROADCAST, SETTING, SHUFFLE, SUBSET):
        sql.spark.conf.unset(name)


def exchanges(spark, statement):
    """Return the number of shuffles of a query with the setting on; the query returns the same rows without it."""
    spark.conf.set(SETTING, "false")
    expected = sorted(map(str, spark.sql(statement).collect()))
    spark.conf.set(SETTING, "true")
    frame = spark.sql(statement)
    assert sorted(map(str, frame.collect())) == expected
    assert expected
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return plan.partition("== Initial Plan ==")[0].count("Exchange")


@pytest.mark.more
@pytest.mark.versions
def test_tables_bucketed_alike_are_joined_without_shuffle(tables):
    spark = tables("plain", "keyed").spark  # plain files for Spark's own scan, and files that Python merges
    assert exchanges(spark, "SELECT * FROM plain JOIN keyed USING (id)") == 0
    assert exchanges(spark, "SELECT * FROM plain a FULL JOIN keyed b ON a.id = b.id AND b.id > 10") == 0
    assert exchanges(spark, "SELECT id, count(*) FROM keyed GROUP BY id") == 0


@pytest.mark.more
def test_buckets_are_reported_on_request_only(tables):
    """Spark 4.3 has the setting on by default."""
    sql = tables("keyed")
    (plan,) = sql("EXPLAIN SELECT * FROM keyed")[0]
    assert "in the driver" in plan
    assert "joins by buckets" not in plan
    sql.spark.conf.set(SETTING, "true")
    (plan,) = sql("EXPLAIN SELECT * FROM keyed")[0]
    assert "Spark joins by buckets" in plan


@pytest.mark.more
def test_partitioned_tables_are_joined_by_partition_and_bucket(tables):
    spark = tables("parts").spark
    by_all = "SELECT a.*, b.dt d FROM parts a LEFT JOIN parts b ON a.id = b.id AND a.dt <=> b.dt AND a.n = b.n"
    assert exchanges(spark, by_all.replace("<=>", "=")) == 0
    exchanges(spark, by_all)
    assert exchanges(spark, "SELECT a.*, b.dt d FROM parts a JOIN parts b ON a.id = b.id") > 0
    spark.conf.set(SUBSET, "true")
    exchanges(spark, "SELECT a.*, b.dt d FROM parts a JOIN parts b ON a.id = b.id")


@pytest.mark.parametrize("other", ["eight", "ints", "two"])
@pytest.mark.more
def test_tables_bucketed_differently_are_joined_with_shuffle(tables, other):
    assert exchanges(tables("plain", other).spark, f"SELECT * FROM plain JOIN {other} USING (id)") > 0


@pytest.mark.more
def test_filter_of_deleted_rows_comes_before_buckets(tables):
    sql = tables("plain", "deleted")
    assert exchanges(sql.spark, "SELECT * FROM plain JOIN deleted USING (id)") == 0
    sql("DELETE FROM deleted WHERE id % 7 = 3")
    assert exchanges(sql.spark, "SELECT * FROM plain JOIN deleted USING (id)") > 0


def test_zeros_of_both_signs_are_joined(tables):
    sql = tables("floats")
    sql("CREATE TABLE zero (id DOUBLE, w STRING) TBLPROPERTIES ('bucket'='4', 'bucket-key'='id')")
    sql("INSERT INTO zero VALUES (0D, 'zero')")
    assert exchanges(sql.spark, "SELECT * FROM floats a JOIN zero b ON a.id = b.id") > 0


def test_partition_of_another_number_of_buckets_is_shuffled(tables):
    sql = tables("plain", "keyed")
    sql("ALTER TABLE keyed SET TBLPROPERTIES ('bucket' = '8')")
    assert exchanges(sql.spark, "SELECT * FROM plain JOIN keyed USING (id)") > 0


def test_rows_of_others_are_not_shuffled_into_buckets(tables):
    """Executors would have to compute buckets, and have no class that does."""
    sql = tables("plain")
    sql.spark.conf.set(SHUFFLE, "true")
    assert exchanges(sql.spark, "SELECT * FROM plain JOIN range(50) r USING (id)") > 0


@pytest.mark.more
def test_rows_after_runtime_filter_of_join(tables):
    sql = tables("parts")
    sql("CREATE TABLE picked (dt STRING, x INT)")
    sql("INSERT INTO picked VALUES ('1', 7)")
    exchanges(
        sql.spark, "SELECT a.id, b.id, x FROM parts a JOIN parts b USING (id, dt, n) JOIN picked USING (dt) WHERE x = 7"
    )


@pytest.mark.versions
@pytest.mark.parametrize("native", ["true", "false"])
@pytest.mark.more
def test_tables_and_filters_without_rows(tables, native):
    sql = tables("plain")
    spark = sql.spark
    spark.conf.set(SETTING, "true")
    sql("CREATE TABLE empty (id BIGINT, v STRING) TBLPROPERTIES ('bucket'='4', 'bucket-key'='id')")
    spark.conf.set(NATIVE_READS, native)
    try:
        assert sql("SELECT * FROM empty") == []
        assert sql("SELECT * FROM plain WHERE id = 200") == []
        assert sql("SELECT * FROM plain JOIN empty USING (id)") == []
        assert len(sql("SELECT * FROM plain LEFT JOIN empty USING (id)")) == 100
        assert sql("SELECT count(*) FROM plain JOIN plain b USING (id) WHERE plain.v = 'none'") == [(0,)]
        assert sql("SELECT id, count(*) FROM empty GROUP BY id") == []
    finally:
        spark.conf.unset(NATIVE_READS)
