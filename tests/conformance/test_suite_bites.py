"""The comparisons find what is wrong: a changed value, a changed byte, a row too few, a row too many."""

import copy
from pathlib import Path

import pytest

from paimon_core.errors import PaimonError
from tests.conformance.compare import TALLY, Difference, same
from tests.conformance.filters import draw
from tests.conformance.kinds import APPEND
from tests.conformance.shared_table import created_by_java


@pytest.fixture(autouse=True)
def uncounted():
    """Differences found here are meant, so they do not count."""
    before = copy.copy(TALLY)
    yield
    TALLY.comparisons, TALLY.differences = before.comparisons, before.differences


@pytest.mark.parametrize(
    "other",
    [
        [[1, "a"]],
        [[1, "a"], [1, "a"], [2, "b"]],
        [[1, "a"], [2, "c"]],
        [[1, "a"], [2.0, "b"]],
        [[1, "a"], [True, "b"]],
        [],
    ],
)
def test_rows_that_differ_are_found(other):
    same([[2, "b"], [1, "a"]], [[1, "a"], [2, "b"]], "the same")
    with pytest.raises(Difference):
        same(other, [[1, "a"], [2, "b"]], "not the same")
    assert TALLY.differences


@pytest.mark.java
def test_changed_value_is_found(judge, name, rng):
    table = created_by_java(judge, name, APPEND)
    table.java("write", rows=APPEND.rows(rng, 20))
    expected = table.agree()
    at = next(i for i, f in enumerate(table.fields_at()) if f.name == "k")
    expected[7][at] += 1
    with pytest.raises(Difference):
        same(table.our_rows(table.fields_at()), expected, name)


@pytest.mark.java
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_changed_byte_is_found(judge, name, rng, file_format):
    """A byte of the data, in a file without compression, so that it decodes: a difference or damage, never silence."""
    kind = APPEND.of_format(file_format)
    codec = {"avro": "null"}.get(file_format, "none")
    table = created_by_java(judge, name, kind, options={"file.format": file_format, "file.compression": codec})
    rows = kind.rows(rng, 20)
    rows[3][1]["p"] = "needle in the haystack"
    table.java("write", rows=rows)
    expected = table.agree()
    (file,) = Path(table.path).rglob("data-*")
    data = file.read_bytes()
    assert b"needle" in data
    file.write_bytes(data.replace(b"needle", b"noodle"))
    with pytest.raises((Difference, PaimonError)):
        same(table.our_rows(table.fields_at()), expected, name)


def test_filters_select_some_rows_and_not_others(rng):
    """The random filters ask something: over a table's rows they keep some, all and none, in good measure."""
    rows = [row for _, row in APPEND.rows(rng, 50)]
    kept = []
    for _ in range(200):
        _, says = draw(rng, APPEND.fields, rows)
        kept.append(sum(says(row) is True for row in rows))
    some = sum(0 < n < len(rows) for n in kept)
    assert some > 80
    assert kept.count(0) < 80
