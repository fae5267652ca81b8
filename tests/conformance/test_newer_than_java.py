"""Differences from Java 1.4.2 that later versions of Java do not have: each test shows what both engines do."""

import pytest

from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java


@pytest.fixture
def create(judge, name):
    """Returns a function that creates a table of one bucket, keyed by its first column."""

    def created(fields, options, suffix=""):
        table = SharedTable(judge, name + suffix)
        table.java("create_table", fields=fields, primary_keys=[fields[0][0]], options={"bucket": "1", **options})
        return table

    return created


def rows_in_java(table):
    return [row[1:] for row in table.java("read")["rows"]]


def our_rows(table):
    return table.our_rows(table.fields_at())


@pytest.mark.parametrize("writer", ["we", "java"])
def test_descending_sequence_in_one_commit(create, writer):
    """Java 2.0.0 sorts its write buffer in the direction of the option, 1.4.2 always ascending."""
    options = {"sequence.field": "s", "sequence.field.sort-order": "descending"}
    table = create([["k", "INT NOT NULL"], ["s", "INT"]], options)
    changes = [["+I", {"k": 1, "s": s}] for s in (5, 3, 9)]
    if writer == "we":
        table.we_write(changes)
    else:
        table.java("write", rows=changes)
    same(table.agree(), [[1, 3 if writer == "we" else 9]], f"{table.name}: the smallest sequence, or Java's")
