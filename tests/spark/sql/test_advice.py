"""Advice in a session of Spark: its statements run as SQL, and make it go away."""

from dataclasses import replace

import pytest

import paimon_spark
from paimon_core import Table
from paimon_core.inspect.advice.advise import health
from paimon_core.inspect.advice.table_facts import DEFAULT_LIMITS
from paimon_spark import PaimonTable
from tests.support.advice_cases import BY_COPYING, CASES, backlog, later

SHOWN = "compaction-backlog"
"""The kind that runs in `make test`."""
KINDS = [kind for kind in CASES if kind not in BY_COPYING]


def mark(kind):
    if kind == SHOWN:
        return ()
    return pytest.mark.slow if KINDS.index(kind) % 3 else pytest.mark.more  # tests/core runs the advice of each kind


@pytest.fixture
def as_sql(spark, sql):
    """A function that runs a statement in a catalog over a directory."""

    def run(statement, warehouse):
        paimon_spark.catalog(spark, "advised", warehouse=str(warehouse))
        spark.catalog.setCurrentCatalog("advised")
        spark.sql(statement).collect()

    return run


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=mark(kind)) for kind in KINDS])
def test_statements_of_advice_make_it_go_away(as_sql, tmp_path, kind):
    table, limits, days = CASES[kind](tmp_path)

    def advice_of_kind(table):
        advice = health(later(table, days).store, replace(DEFAULT_LIMITS, **limits)).advice
        return [item for item in advice if item.kind == kind]

    statements = [item.sql for item in advice_of_kind(table)]
    assert statements
    for statement in statements:
        as_sql(statement, tmp_path)
    assert not advice_of_kind(Table.open(table.path))


@pytest.mark.everywhere
def test_table_of_session_has_advice_and_measures(spark, tmp_path):
    table, _, _ = backlog(tmp_path)
    mine = PaimonTable.forPath(spark, table.path)
    assert [item.kind for item in mine.advice()] == ["compaction-backlog", "never-compacted"]
    assert mine.health().buckets.num_rows == 2
    mine.compact(full=True)
    assert mine.advice() == []
    with pytest.raises(ValueError, match="only its newest snapshot can be measured"):
        PaimonTable.forPath(spark, table.path, versionAsOf="1").advice()
