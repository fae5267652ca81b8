"""The SQL corpus: each file of statements runs from an empty warehouse and answers what it says."""

from pathlib import Path

import pyspark
import pytest

import paimon_spark
from tests.spark.conftest import MODE
from tests.support.sql_cases import Corpus, answer, matches, read_corpus, rewrite

pytestmark = pytest.mark.spark
FILES = [read_corpus(path) for path in sorted(Path(__file__).with_name("corpus").glob("*.sql.txt"))]
FAST = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
"""Settings that make queries of few rows quick."""
VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))


def _marks(corpus: Corpus) -> list[pytest.MarkDecorator]:
    return [getattr(pytest.mark, mark) for mark in ("more", "versions") if mark in corpus.marks]


@pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")
@pytest.mark.parametrize("corpus", [pytest.param(c, id=c.name, marks=_marks(c)) for c in FILES])
def test_statements_return_rows_of_corpus(spark, warehouse, corpus, request):
    session = spark.newSession()
    for key, value in FAST.items():
        session.conf.set(key, value)
    paimon_spark.catalog(session, "paimon", warehouse=warehouse)
    session.sql("CREATE DATABASE paimon.c")
    session.sql("USE paimon.c")
    wrong, results = [], {}
    for statement in corpus.statements_of(VERSION):
        result = answer(session, statement.text, warehouse, statement.columns)
        if not matches(result, statement.expected):
            results[statement.line] = result
            wrong.append(
                f"{corpus.path.name}:{statement.line}: {statement.text}\n"
                f"  expected:\n{statement.expected}\n  found:\n{result}\n"
            )
    if request.config.option.rewrite:
        rewrite(corpus, results)
    else:
        assert not wrong, "\n".join(wrong)


def test_corpus_is_large():
    assert sum(len(corpus.statements) for corpus in FILES) >= 400
