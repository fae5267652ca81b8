"""The queries of TPC-H answer as on plain Parquet, on append tables, on compacted ones and on five runs to merge.

``PAIMON_TPCH_SCALE=1`` sets the scale factor.
"""

import os

import pytest

import paimon_spark
from benchmarks.tpch_data import KEYS, KINDS, generate, load
from benchmarks.tpch_queries import QUERIES, query
from tests.spark.conftest import MODE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]
SCALE = float(os.environ.get("PAIMON_TPCH_SCALE", "0.01"))
QUICK = {(3, "runs"), (4, "compacted"), (14, "runs"), (18, "compacted"), (22, "append")}


def _mark(number, kind):
    if (number, kind) in QUICK:
        return ()
    return pytest.mark.more if kind == KINDS[number % len(KINDS)] else pytest.mark.slow


CASES = [
    pytest.param(number, kind, id=f"{number}-{kind}", marks=_mark(number, kind)) for number in QUERIES for kind in KINDS
]


@pytest.fixture(scope="module")
def plain(spark, tmp_path_factory):
    """A session with the plain files as views, and the answers that it has given."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", str(SCALE > 0.1).lower())  # compiling takes longer than few rows
    session.conf.set("spark.sql.shuffle.partitions", "2")
    files = generate(tmp_path_factory.mktemp("tpch"), SCALE)
    for name in KEYS:
        session.read.parquet(str(files / f"{name}.parquet")).createOrReplaceTempView(name)
    return session, files, {}


@pytest.fixture(scope="module")
def ours(spark, plain, tmp_path_factory):
    """A function that returns a session whose current database has the tables of a kind."""
    warehouse = str(tmp_path_factory.mktemp("tpch-warehouse"))
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", str(SCALE > 0.1).lower())  # compiling takes longer than few rows
    session.conf.set("spark.sql.shuffle.partitions", "2")
    paimon_spark.catalog(session, "tpch", warehouse=warehouse)
    loaded = set()

    def of(kind):
        if kind not in loaded:
            load(plain[1], warehouse, kind)
            loaded.add(kind)
        session.sql(f"USE tpch.{kind}")
        return session

    return of


@pytest.mark.parametrize(("number", "kind"), CASES)
@pytest.mark.more
def test_query_answers_as_on_plain_parquet(plain, ours, number, kind):
    session, _, answers = plain
    text = query(number, SCALE)
    if number not in answers:
        answers[number] = [tuple(row) for row in session.sql(text).collect()]
    assert [tuple(row) for row in ours(kind).sql(text).collect()] == answers[number]
