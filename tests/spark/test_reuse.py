"""One DataFrame, view or cached plan that serves several queries: each query gets its own rows.

Spark makes one Python reader for each ``load()`` and keeps it, so a reader must not remember a query's filters.
"""

import random

import pytest

from paimon_spark import PaimonTable
from paimon_spark.sql.session_options import NATIVE_READS
from tests.support.draws import rounds

pytestmark = pytest.mark.spark
everywhere = pytest.mark.everywhere
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(params=["native", "true", "false"])
def pushdown(spark, request):
    """Native reads, or the Python data source with and without Spark's setting for filters of Python data sources."""
    native = request.param == "native"
    spark.conf.set(NATIVE_READS, str(native).lower())
    spark.conf.set(PUSHDOWN, "true" if native else request.param)
    yield request.param
    spark.conf.unset(NATIVE_READS)
    spark.conf.unset(PUSHDOWN)


def numbers(spark, rows=10):
    return spark.range(rows).selectExpr("id", "CAST(id % 3 AS INT) AS part", "IF(id % 4 = 0, NULL, id * 10) AS v")


def save(frame, path, **options):
    frame.write.format("paimon").mode("append").options(**options).save(path)


def load(spark, path, **options):
    return spark.read.format("paimon").options(**options).load(path)


def rows(frame):
    return sorted(map(repr, frame.collect()))


@pytest.mark.cases(1)
@everywhere
def test_dataframe_does_not_keep_filter_of_earlier_query(spark, path, pushdown):
    save(numbers(spark), path, partition="part")
    frame = load(spark, path)
    assert frame.where("id = 3").count() == 1
    assert frame.count() == 10
    assert frame.where("part = 1").count() == 3


@pytest.mark.cases(1)
@everywhere
def test_table_by_name_does_not_keep_filter_of_earlier_query(spark, warehouse, pushdown):
    named = {"warehouse": warehouse, "table": "db.t"}
    numbers(spark).write.format("paimon").mode("append").options(**named).save()
    frame = spark.read.format("paimon").options(**named).load()
    assert frame.where("id = 3").count() == 1
    assert frame.count() == 10


@pytest.mark.cases(1)
@everywhere
def test_system_table_does_not_keep_filter_of_earlier_query(spark, path, pushdown):
    save(numbers(spark), path, partition="part")
    files = load(spark, f"{path}$files")
    actual = files.count()
    assert files.where("record_count > 1000").count() == 0
    assert files.count() == actual > 0


@pytest.mark.cases(1)
@everywhere
def test_one_query_reads_dataframe_with_and_without_filter(spark, path, pushdown):
    save(numbers(spark), path)
    frame = load(spark, path)
    assert frame.join(frame.where("id < 2").withColumnRenamed("v", "w"), "part").count() == 7
    frame.createOrReplaceTempView("reused")
    assert spark.sql("SELECT * FROM reused WHERE id = 1 UNION ALL SELECT * FROM reused").count() == 11
    assert spark.sql("SELECT count(*), (SELECT max(v) FROM reused WHERE id < 4) FROM reused").first() == (10, 30)


@pytest.mark.cases(1)
@everywhere
def test_copy_after_filtered_query_has_all_rows(spark, path, pushdown):
    save(numbers(spark), path)
    frame = load(spark, path)
    assert frame.where("id = 3").count() == 1
    save(frame, f"{path}_copy")
    assert load(spark, f"{path}_copy").count() == 10


@everywhere
def test_option_filter_stays_with_filters_of_queries(spark, path, pushdown):
    save(numbers(spark), path)
    frame = load(spark, path, filter="id >= 5")
    assert frame.where("id = 7").count() == 1
    assert frame.where("id = 3").count() == 0
    assert frame.count() == 5


@pytest.fixture
def path(warehouse):
    return f"{warehouse}/db.db/numbers"


CONDITIONS = ["id = 3", "id < 4", "part = 1", "part <> 1 AND v > 20", "v IS NULL", "v IS NOT NULL", "id IN (1, 5, 99)"]
CONDITIONS += ["NOT (part = 0)", "v > 30 OR id = 0", "text LIKE 'a%'", "text = 'b1'", "id > 100", "s.inner > 2"]


class Program:
    """The same frames over a Paimon table and over Parquet; each query must return the same rows from both."""

    def __init__(self, spark, rng, folder):
        self.spark, self.rng, self.folder = spark, rng, folder
        self.log = []
        self.pairs = []
        """Frames over Paimon and over Parquet that have the columns of the table."""
        self.cached = []
        self.views = 0
        self.tables = 0

    def source(self):
        """Write a new table and load it in some way."""
        rng, name = self.rng, f"t{self.tables}"
        self.tables += 1
        frame = self.spark.range(rng.randrange(1, 40)).selectExpr(
            "id",
            "CAST(id % 3 AS INT) AS part",
            "IF(id % 4 = 0, NULL, id * 10) AS v",
            "concat(IF(id % 2 = 0, 'a', 'b'), id) AS text",
            "named_struct('inner', id % 5) AS s",
        )
        paths = f"{self.folder}/db.db/{name}", f"{self.folder}/{name}.parquet"
        options = rng.choice([{}, {"primary-key": "id", "bucket": "2"}, {"partition": "part"}])
        frame.write.parquet(paths[1])
        save(frame, paths[0], **options)
        parquet = self.spark.read.parquet(paths[1])
        way = rng.choice(["path", "named", "filter", "view", "table"])
        self.say(f"{name}: {options} by {way}")
        if way == "view":
            self.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING paimon OPTIONS (path '{paths[0]}')")
            self.pairs.append((self.spark.table(name), parquet))
        elif way == "named":
            named = {"warehouse": self.folder, "table": f"db.{name}"}
            self.pairs.append((self.spark.read.format("paimon").options(**named).load(), parquet))
        elif way == "table":
            self.pairs.append((PaimonTable.forPath(self.spark, paths[0]).toDF(), parquet))
        elif way == "filter":
            self.pairs.append((load(self.spark, paths[0], filter="id > 2"), parquet.where("id > 2")))
        else:
            self.pairs.append((load(self.spark, paths[0]), parquet))

    def say(self, text):
        self.log.append(text)

    def pair(self):
        at = self.rng.randrange(len(self.pairs))
        return at, self.pairs[at]

    def step(self):
        """Make a frame of others, or run a query; Spark's own scan or the Python data source reads."""
        self.spark.conf.set(NATIVE_READS, self.rng.choice(["true", "false"]))
        getattr(self, self.rng.choice(["query"] * 4 + ["derive", "derive", "union", "view", "cache", "copy"]))()

    def derive(self):
        at, pair = self.pair()
        condition = self.rng.choice(CONDITIONS)
        self.say(f"{len(self.pairs)} = {at} where {condition}")
        self.pairs.append(tuple(frame.where(condition) for frame in pair))

    def union(self):
        (a, left), (b, right) = self.pair(), self.pair()
        condition = self.rng.choice(CONDITIONS)
        self.say(f"{len(self.pairs)} = {a} union ({b} where {condition})")
        self.pairs.append(tuple(one.unionAll(other.where(condition)) for one, other in zip(left, right, strict=True)))

    def named(self, pair):
        """Return the names of two temporary views of a pair."""
        self.views += 1
        names = f"paimon{self.views}", f"parquet{self.views}"
        for name, frame in zip(names, pair, strict=True):
            frame.createOrReplaceTempView(name)
        return names

    def view(self):
        at, pair = self.pair()
        names = self.named(pair)
        self.say(f"{len(self.pairs)} = view {names[0]} of {at}")
        self.pairs.append(tuple(self.spark.table(name) for name in names))

    def cache(self):
        at, pair = self.pair()
        self.say(f"cache {at}")
        self.cached.append(pair[0].cache())

    def copy(self):
        at, pair = self.pair()
        path = f"{self.folder}/db.db/t{self.tables}"
        self.tables += 1
        self.say(f"{len(self.pairs)} = copy of {at}")
        save(pair[0], path)
        self.pairs.append((load(self.spark, path), pair[1]))

    def query(self):
        """Compare the rows of one query."""
        (a, left), (b, right) = self.pair(), self.pair()
        one, other, column = self.rng.choice(CONDITIONS), self.rng.choice(CONDITIONS), self.rng.choice(["id", "part"])
        text = self.rng.choice(
            [
                f"SELECT * FROM {{a}} WHERE {one}",
                "SELECT count(*), sum(v), max(text) FROM {a}",
                f"SELECT {column}, count(*), sum(v) FROM {{a}} WHERE {one} GROUP BY {column}",
                f"SELECT l.id, r.v FROM {{a}} l JOIN (SELECT * FROM {{a}} WHERE {one}) r ON l.{column} = r.{column}",
                f"SELECT l.id, r.v FROM (SELECT * FROM {{a}} WHERE {one}) l LEFT JOIN {{b}} r ON l.id = r.id",
                f"SELECT * FROM {{a}} WHERE {one} UNION ALL SELECT * FROM {{b}} WHERE {other}",
                f"SELECT id FROM {{a}} WHERE {column} IN (SELECT {column} FROM {{b}} WHERE {one})",
                f"SELECT id FROM {{a}} l WHERE NOT EXISTS (SELECT 1 FROM {{a}} r WHERE r.id = l.part AND {one})",
                f"SELECT count(*), (SELECT sum(v) FROM {{b}} WHERE {one}) AS s FROM {{a}} WHERE {other}",
                f"WITH c AS (SELECT * FROM {{a}}) SELECT * FROM c WHERE {one} UNION ALL SELECT * FROM c",
                f"SELECT id FROM {{a}} EXCEPT SELECT id FROM {{b}} WHERE {one}",
            ]
        )
        self.say(f"a = {a}, b = {b}: {text}")
        names = zip(self.named(left), self.named(right), strict=True)
        paimon, parquet = (rows(self.spark.sql(text.format(a=a, b=b))) for a, b in names)
        assert paimon == parquet, "\n".join(self.log)

    def play(self, steps):
        try:
            self.source()
            for _ in range(steps):
                self.step()
                if self.rng.random() < 0.1:
                    self.source()
        finally:
            for frame in self.cached:
                frame.unpersist()


@everywhere
@pytest.mark.drawn
@pytest.mark.slow
def test_random_programs_return_rows_of_parquet(spark, seed, warehouse, pushdown):
    for number in range(rounds(10, 2)):
        Program(spark, random.Random(f"{seed} {number}"), f"{warehouse}/{number}").play(steps=12)


@everywhere
@pytest.mark.drawn
def test_random_program_returns_rows_of_parquet(spark, seed, warehouse):
    spark.conf.set(PUSHDOWN, "true")
    try:
        Program(spark, random.Random(f"{seed} one"), warehouse).play(steps=12)
    finally:
        spark.conf.unset(PUSHDOWN)
        spark.conf.unset(NATIVE_READS)
