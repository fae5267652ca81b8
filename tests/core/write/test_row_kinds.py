"""Row kinds of incoming rows: passed, read from a column, ignored, refused."""

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.options.option import Options
from paimon_core.types.row_kind import DELETE, parse_kinds
from paimon_core.write.row_kinds import check_kinds, kinds_of, rows_to_write

ROWS = pa.record_batch({"id": [1, 2, 3], "kind": ["+I", "-U", "-D"]})
NONE = Options({})
FROM_COLUMN = Options({"rowkind.field": "kind"})


def kinds(*texts):
    return pa.array(texts)


def test_without_kinds_every_row_is_insert():
    assert kinds_of(ROWS, None, NONE, keyed=True) is None
    assert kinds_of(ROWS, kinds("+I", "+I", "+I"), NONE, keyed=True) is None


def test_kinds_are_numbers():
    assert kinds_of(ROWS, kinds("+I", "+U", "-D"), NONE, keyed=True).to_pylist() == [0, 2, 3]


def test_option_names_column_of_kinds():
    assert kinds_of(ROWS, None, FROM_COLUMN, keyed=True).to_pylist() == [0, 1, 3]
    with pytest.raises(InvalidInputError, match="reads them from its column 'kind'"):
        kinds_of(ROWS, kinds("+I", "+I", "+I"), FROM_COLUMN, keyed=True)


@pytest.mark.parametrize(
    ("given", "keyed", "error"),
    [
        (kinds("+I"), True, "got 1 row kinds for 3 rows"),
        (kinds("+I", "+U", "-D"), False, "row 2 has kind -D: a table without a primary key accepts inserts only"),
    ],
)
def test_invalid_row_kinds_are_refused(given, keyed, error):
    with pytest.raises(InvalidInputError, match=error):
        kinds_of(ROWS, given, NONE, keyed=keyed)


@pytest.mark.parametrize(
    ("options", "mask"),
    [
        ({}, None),
        ({"ignore-update-before": "true"}, [True, False, True, True]),
        ({"ignore-delete": "true"}, [True, False, True, False]),
        ({"ignore-delete": "true", "ignore-update-before": "true"}, [True, False, True, False]),
    ],
)
def test_options_ignore_kinds(options, mask):
    given = parse_kinds(kinds("+I", "-U", "+U", "-D"))
    actual = rows_to_write(given, Options(options))
    assert (actual if actual is None else actual.tolist()) == mask
    assert rows_to_write(None, Options(options)) is None


def test_row_kind_that_merges_refuse_is_refused_on_write():
    given = parse_kinds(kinds("+I", "-D"))
    check_kinds(given, {})
    check_kinds(parse_kinds(kinds("+I", "+U")), {DELETE: "sums take no deletes"})
    with pytest.raises(InvalidInputError, match="a row of kind -D cannot be written: sums take no deletes"):
        check_kinds(given, {DELETE: "sums take no deletes"})
