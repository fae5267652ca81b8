"""The SQL corpus through a server: clients of Spark Connect and of JDBC get the answers of a classic session."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import paimon_spark
from tests.spark.conftest import MODE, ROOT
from tests.spark.sql.test_corpus import FAST, FILES, VERSION
from tests.support.jdbc import JdbcClient
from tests.support.servers import free_port
from tests.support.sql_cases import Corpus, matches

CLIENT = Path(__file__).with_name("corpus_client.py")
OVER_CONNECT = ("merge",)
OVER_THRIFT = ("dml_keyed",)
"""The files that run within CI; the tests marked slow run all files."""
ALL = tuple(corpus.name for corpus in FILES)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.more,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]


@pytest.fixture
def served(spark, warehouse):
    """The addresses of Spark Connect and of the Thrift server of a session with the catalog ``paimon``."""
    context = spark.sparkContext._jsc.sc().conf()
    before = {key: context.get(key, "") for key in FAST}
    for key, value in FAST.items():  # clients' sessions begin with the settings of the context
        context.set(key, value)
    paimon_spark.catalog(spark, "paimon", warehouse=warehouse)
    addresses = tuple(f"127.0.0.1:{free_port()}" for _ in range(2))
    with paimon_spark.serve(spark, connect=addresses[0], thrift=addresses[1]):
        yield addresses
    for key, value in before.items():
        context.remove(key) if value == "" else context.set(key, value)
    spark.conf.unset("spark.sql.catalog.paimon")


def wrong(corpus: Corpus, answers: dict[int, str]) -> list[str]:
    """Return the statements of a file whose answers differ from the expected ones."""
    return [
        f"{corpus.path.name}:{one.line}: {one.text}\n{one.expected}\n  found:\n{answers[one.line]}"
        for one in corpus.statements
        if one.line in answers and not matches(answers[one.line], one.expected)
    ]


@pytest.mark.parametrize(
    "names", [pytest.param(OVER_CONNECT, id="some"), pytest.param(ALL, id="all", marks=pytest.mark.slow)]
)
def test_statements_over_connect(served, warehouse, names):
    pytest.importorskip("grpc", reason="the extra connect is not installed")
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_REMOTE"} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, CLIENT, f"sc://{served[0]}", warehouse, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    answers = {name: dict(pairs) for name, pairs in json.loads(done.stdout.splitlines()[-1]).items()}
    assert set(answers) == set(names)
    faults = [fault for corpus in FILES if corpus.name in answers for fault in wrong(corpus, answers[corpus.name])]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "names", [pytest.param(OVER_THRIFT, id="some"), pytest.param(ALL, id="all", marks=pytest.mark.slow)]
)
def test_statements_over_thrift(spark, served, warehouse, names):
    faults = []
    for corpus in FILES:
        if corpus.name in names:
            client = JdbcClient(spark, served[1])
            for statement in ("USE paimon", "DROP DATABASE IF EXISTS c CASCADE", "CREATE DATABASE c", "USE paimon.c"):
                assert not client.difference(statement, "ok", warehouse)
            for statement in corpus.statements_of(VERSION):
                found = client.difference(statement.text, statement.expected, warehouse, statement.columns)
                if found:
                    faults.append(f"{corpus.path.name}:{statement.line}: {statement.text}\n  found:\n{found}")
            client.close()
    assert not faults, "\n".join(faults)
