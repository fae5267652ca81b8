"""The deduplicate engine and the kinds of rows."""

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.merge.deduplicate import deduplicate
from paimon_core.merge.kway import MergeOrder, sort_rows
from paimon_core.merge.row_kinds import drop_retracts
from paimon_core.merge.window import Window

ADD, BEFORE, AFTER, DELETE = range(4)


def rows(*triples):
    keys, kinds, values = zip(*triples, strict=True)
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "_SEQUENCE_NUMBER": pa.array(range(len(keys)), pa.int64()),
            "_VALUE_KIND": pa.array(kinds, pa.int8()),
            "v": pa.array(values),
        }
    )


def folded(table, **options):
    result = deduplicate(**options)(sort_rows(table, MergeOrder(("k",))))
    return [(r["k"], r["_VALUE_KIND"], r["v"]) for r in result.to_pylist()]


def test_deduplicate_last_row_wins_with_its_kind():
    table = rows((2, ADD, "x"), (1, ADD, "a"), (2, AFTER, "y"), (1, DELETE, "a"))
    assert folded(table) == [(1, DELETE, "a"), (2, AFTER, "y")]


def test_ignore_delete_keeps_last_adding_row():
    adds = ((1, ADD, "a"), (1, DELETE, "b"), (1, BEFORE, "c"), (3, ADD, "z"))
    assert folded(rows(*adds, (2, DELETE, "x"), (2, BEFORE, "y")), ignore_delete=True) == [
        (1, ADD, "a"),
        (3, ADD, "z"),
    ]


def test_ignore_delete_keeps_single_row():
    assert folded(rows((2, DELETE, "x"), (3, ADD, "z"), (3, ADD, "y")), ignore_delete=True) == [
        (2, DELETE, "x"),
        (3, ADD, "y"),
    ]


def test_ignore_delete_without_deletes_equals_deduplicate():
    table = rows((1, ADD, "a"), (1, AFTER, "b"))
    assert folded(table, ignore_delete=True) == [(1, AFTER, "b")]


@pytest.mark.parametrize("ignore_delete", [False, True])
def test_sorted_unique_rows_are_not_copied(ignore_delete):
    table = rows((1, ADD, "a"), (2, AFTER, "b"))
    window = Window(table, None, np.arange(2))
    assert deduplicate(ignore_delete=ignore_delete)(window) is table


def test_deduplicate_is_associative():
    random = np.random.default_rng(5)
    table = rows(*[(int(k), int(kind), str(i)) for i, (k, kind) in enumerate(random.integers(0, 4, (200, 2)))])
    for ignore_delete in (False, True):
        fold = deduplicate(ignore_delete=ignore_delete)
        order = MergeOrder(("k",))
        parts = [fold(sort_rows(table.slice(i, 50), order)) for i in range(0, 200, 50)]
        by_parts, whole = fold(sort_rows(pa.concat_tables(parts), order)), fold(sort_rows(table, order))
        assert drop_retracts(by_parts).equals(drop_retracts(whole))


def test_window_copies_columns_on_request_only():
    window = sort_rows(rows((2, ADD, "x"), (1, ADD, "a"), (2, ADD, "y")), MergeOrder(("k",)))
    assert window.starts.tolist() == [0, 1]
    assert window.ends.tolist() == [1, 3]
    assert window.num_groups == 2
    assert window.column("v").to_pylist() == ["a", "x", "y"]
    assert window.column("v") is window.column("v")
    assert window.take(np.array([0, 2])).column("v").to_pylist() == ["a", "y"]


def test_drop_retracts_keeps_adding_rows_without_copy():
    table = rows((1, ADD, "a"), (2, BEFORE, "b"), (3, AFTER, "c"), (4, DELETE, "d"))
    assert drop_retracts(table).column("k").to_pylist() == [1, 3]
    clean = rows((1, ADD, "a"), (2, AFTER, "b"))
    assert drop_retracts(clean) is clean
    assert drop_retracts(table.slice(0, 0)).num_rows == 0
