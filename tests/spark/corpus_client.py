"""A Connect client that runs files of the SQL corpus: ``python corpus_client.py URL WAREHOUSE FILE...``.

It prints a JSON document, which maps the name of each file to pairs of a line and the answer to its statement.
"""

import json
import os
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from tests.support.sql_cases import answer, read_corpus

CORPUS = Path(__file__).parent / "sql" / "corpus"
VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))


def answers(url, warehouse, corpus):
    """Run the statements of a file in a session of its own, in an empty database."""
    session = SparkSession.builder.remote(url).create()
    session.sql("USE paimon")
    session.sql("DROP DATABASE IF EXISTS c CASCADE")
    session.sql("CREATE DATABASE c")
    session.sql("USE paimon.c")
    for statement in corpus.statements_of(VERSION):
        yield statement.line, answer(session, statement.text, warehouse, statement.columns)


def main(url, warehouse, *names):
    """Print the answers to the files of these names."""
    files = [read_corpus(CORPUS / f"{name}.sql.txt") for name in names]
    print("\n" + json.dumps({one.name: list(answers(url, warehouse, one)) for one in files}), flush=True)
    os._exit(0)  # PySpark 4.3 waits forever for the channel of a second session at the end of a process


if __name__ == "__main__":
    main(*sys.argv[1:])
