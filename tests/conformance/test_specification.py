"""A reader and a writer made of docs/spec/format.md alone get along with the Java engine."""

import pytest

from tests.conformance.shared_table import SharedTable
from tests.support.plain_paimon import PlainTable, append, create

pytestmark = pytest.mark.java
VALUES = ("", "short", "longer than a slot", None)


def numbered(keys, text, kind=0):
    return [(kind, "ab"[k % 2] * (1 + 8 * (k % 2)), k, VALUES[k % 4] and text + VALUES[k % 4]) for k in keys]


def test_java_reads_and_extends_table_of_specification(judge, name):
    table = SharedTable(judge, name)
    judge.call("create_database", database=name.split(".")[0])
    create(table.path, 3)
    append(table.path, 3, numbered(range(60), "one "), 0)
    append(table.path, 3, [*numbered(range(10), "", kind=3), *numbered(range(10, 40), "two ", kind=2)], 60)
    assert len(table.agree()) == 50
    table.java("write", rows=[["+I", {"p": "a", "k": 2, "v": "back"}], ["-D", {"p": "b" * 9, "k": 11}]])
    actual = sorted((row[1:] for row in table.java("read")["rows"]), key=repr)
    assert len(actual) == 50
    assert sorted(map(list, PlainTable(table.path).rows()), key=repr) == actual
    table.java("compact", kind="full")
    assert sorted((row[1:] for row in table.java("read")["rows"]), key=repr) == actual
    assert sorted(map(list, PlainTable(table.path).rows()), key=repr) == actual


@pytest.mark.parametrize("bitmap64", ["false", "true"])
def test_deletes_that_java_marks_are_read_by_the_page(judge, name, bitmap64):
    table = SharedTable(judge, name)
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": bitmap64, "bucket": "-1"}
    judge.call("create_database", database=name.split(".")[0])
    table.java("create_table", fields=[["k", "INT"], ["v", "STRING"]], options=options)
    for first in (0, 40):
        table.java("write", rows=[["+I", {"k": k, "v": VALUES[k % 4]}] for k in range(first, first + 40)])
    for k in (3, 4, 5, 60):
        table.java("append_delete", where={"k": k})
    actual = sorted((row[1:] for row in table.java("read")["rows"]), key=repr)
    assert len(actual) == 76
    assert sorted(map(list, PlainTable(table.path).rows()), key=repr) == actual
