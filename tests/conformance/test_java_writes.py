"""The Java engine writes, we read: every kind of table, every format and codec, every kept snapshot."""

import pytest

from tests.conformance.compare import same
from tests.conformance.filters import draw
from tests.conformance.kinds import APPEND, CODECS, LAYOUTS, MATRIX, keyed
from tests.conformance.shared_table import created_by_java

pytestmark = pytest.mark.java
TURNS = ("none", "none", "minor", "none", "full", "none")


def history(table, kind, rng, turns=TURNS, count=30):
    """Commits of random rows, with and without compaction after them."""
    for compaction in turns:
        table.java("write", rows=kind.rows(rng, count))
        if compaction != "none":
            table.java("compact", kind=compaction)


def check_questions(table, rows, rng, filters=8, projections=3):
    """Filtered and projected reads against a plain model of the same question over ``rows``, the full read."""
    fields = table.ours().schema.fields
    as_rows = [{f.name: v for f, v in zip(fields, row, strict=True)} for row in rows]
    for _ in range(filters):
        text, says = draw(rng, fields, as_rows)
        expected = [row for row, by_name in zip(rows, as_rows, strict=True) if says(by_name) is True]
        same(table.our_rows(fields, filter=text), expected, f"{table.name} where {text}")
    for _ in range(projections):
        some = rng.sample(fields, rng.randint(1, min(4, len(fields))))
        text, says = draw(rng, fields, as_rows, depth=1)
        expected = [[row[f.name] for f in some] for row in as_rows if says(row) is True]
        found = table.our_rows(some, columns=[f.name for f in some], filter=text)
        same(found, expected, f"{table.name} select {[f.name for f in some]} where {text}")


@pytest.mark.parametrize("kind", MATRIX)
@pytest.mark.cases(1)
def test_every_snapshot_of_every_kind(judge, name, rng, kind):
    table = created_by_java(judge, name, kind)
    history(table, kind, rng)
    check_questions(table, table.agree_everywhere(), rng)


@pytest.mark.slow  # what we write on after Java, in the other direction, shows most of it
@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.name)
def test_layouts_do_not_change_rows(judge, name, rng, kind):
    table = created_by_java(judge, name, kind)
    history(table, kind, rng)
    check_questions(table, table.agree_everywhere(), rng)


@pytest.mark.cases(9)
@pytest.mark.parametrize(("file_format", "codec"), [(f, c) for f, codecs in CODECS.items() for c in codecs])
def test_files_of_each_codec_are_read(judge, name, rng, file_format, codec):
    kind = APPEND.of_format(file_format)
    table = created_by_java(judge, name, kind, options={"file.format": file_format, "file.compression": codec})
    table.java("write", rows=kind.rows(rng, 50))
    table.agree()


@pytest.mark.more
def test_many_files_of_many_rows(judge, name):
    table = created_by_java(
        judge, name, keyed("wide"), fields=[["k", "BIGINT NOT NULL"], ["a", "INT"], ["b", "STRING"]]
    )
    for seed in range(3):
        table.java("write_generated", rows=8_000, seed=seed, key_start=seed * 2_000, shuffle=True)
    table.java("write_generated", rows=1_000, kind="-D", key_start=5_000)
    table.agree_everywhere()
    table.java("compact", kind="full")
    table.agree_everywhere()
