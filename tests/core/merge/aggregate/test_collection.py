"""Functions on collections: the examples of the specification, element types, and refused options."""

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.collection import collect, merge_map, merge_map_with_keytime
from paimon_core.merge.aggregate.nested import nested_partial_update, nested_update
from tests.core.merge.aggregate.test_collection_model import ADD, LATE, RETRACT, feed

TABLE = "ARRAY<ROW<k INT, s INT, x INT>>"


def one(make, type_, *rows, options=None, opened=False):
    """Return the result for one group of (value, kind) rows."""
    (result,) = feed(make, type_, [(list(rows), opened)], options)
    return result


def row(k, x, s=None):
    return {"k": k, "s": s, "x": x}


def test_collect_concatenates_and_ignores_null():
    assert one(collect, "ARRAY<INT>", ([1, 2], ADD), (None, ADD), ([2, None], ADD), ([], ADD)) == [1, 2, 2, None]
    assert one(collect, "ARRAY<INT>", (None, ADD), (None, ADD)) is None
    assert one(collect, "ARRAY<INT>", (None, ADD), ([], ADD)) == []


def test_collect_retract_removes_oldest_equal_element():
    assert one(collect, "ARRAY<STRING>", (["a", "b", "a"], ADD), (["a"], RETRACT)) == ["b", "a"]
    assert one(collect, "ARRAY<STRING>", (["a"], RETRACT), (["a"], ADD)) == ["a"]
    assert one(collect, "ARRAY<STRING>", (["a"], ADD), (["a", "a"], RETRACT)) == []


def test_distinct_collect_copied_array_keeps_duplicates_until_next_value():
    distinct = {"distinct": "true"}
    rows = (([1, 1, 1], ADD), ([1], RETRACT))
    assert one(collect, "ARRAY<INT>", *rows, options=distinct, opened=True) == [1, 1]
    assert one(collect, "ARRAY<INT>", *rows, (None, ADD), options=distinct, opened=True) == [1]


@pytest.mark.parametrize(
    ("type_", "elements"),
    [
        ("DOUBLE", [float("inf"), 0.5]),
        ("DECIMAL(20, 2)", [None]),
        ("BOOLEAN", [True, False]),
        ("BYTES", [b"", b"\0"]),
        ("ARRAY<STRING>", [["a", "b"], ["a"], [], None, ["ab"], ["b", "a"]]),
        ("MAP<STRING, INT>", [{"a": 1, "b": None}, {}, {"a": 1}, None]),
        ("ROW<a INT, b ARRAY<INT>>", [{"a": 1, "b": [1]}, {"a": None, "b": None}, None, {"a": 1, "b": []}]),
    ],
)
def test_distinct_collect_compares_elements_of_any_type(type_, elements):
    distinct = {"distinct": "true"}
    column = f"ARRAY<{type_}>"
    result = one(collect, column, (elements, ADD), (elements[::-1], ADD), options=distinct)
    assert result == one(collect, column, (elements, ADD))
    assert one(collect, column, (elements * 2, ADD), (elements, RETRACT)) == result
    assert one(collect, column, (elements, ADD), (elements[:1], RETRACT), options=distinct) == result[1:]


def test_map_elements_are_equal_in_any_entry_order():
    there, back = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert (
        len(one(collect, "ARRAY<MAP<STRING, INT>>", ([there], ADD), ([back], ADD), options={"distinct": "true"})) == 1
    )


def test_signed_zeros_are_equal_only_inside_rows():
    distinct, zeros = {"distinct": "true"}, ([0.0], [-0.0])
    plain = one(collect, "ARRAY<DOUBLE>", *((zero, ADD) for zero in zeros), options=distinct)
    assert [str(zero) for zero in plain] == ["0.0", "-0.0"]
    rows = [([{"d": zero[0], "x": 1}], ADD) for zero in zeros]
    assert one(collect, "ARRAY<ROW<d DOUBLE, x INT>>", *rows, options=distinct) == [{"d": 0.0, "x": 1}]
    assert one(nested_update, "ARRAY<ROW<d DOUBLE, x INT>>", rows[0], (rows[1][0], RETRACT)) == []
    assert len(one(nested_update, "ARRAY<ROW<d DOUBLE, x INT>>", *rows, options={"nested-key": "d"})) == 2


def test_merge_map_later_entry_wins_and_late_entry_loses():
    rows = (({1: "a", 2: "b"}, ADD), ({2: "c"}, ADD), ({2: "d", 3: "e"}, LATE), ({1: "x"}, RETRACT))
    assert one(merge_map, "MAP<INT, STRING>", *rows) == {2: "c", 3: "e"}
    assert one(merge_map, "MAP<INT, STRING>", (None, ADD), ({}, ADD)) == {}
    assert one(merge_map, "MAP<INT, STRING>", ({1: "a"}, RETRACT), (None, ADD)) is None


def test_merge_map_with_keytime_keeps_greatest_time():
    type_ = "MAP<INT, ROW<t STRING, x INT>>"
    rows = (
        ({1: {"t": "2", "x": 1}, 2: {"t": None, "x": 2}, 3: None}, ADD),
        ({1: {"t": "10", "x": 3}, 2: {"t": "0", "x": 4}, 3: {"t": None, "x": 5}, 4: {"t": None, "x": 6}}, ADD),
    )
    result = {1: {"t": "2", "x": 1}, 2: {"t": "0", "x": 4}, 3: None}
    time = {"ts-field": "t"}
    assert one(merge_map_with_keytime, type_, *rows, options=time) == result
    assert one(merge_map_with_keytime, type_, *rows, ({1: None, 5: None}, ADD), options=time) == {2: result[2], 3: None}
    with pytest.raises(InvalidInputError, match="cannot retract a value"):
        one(merge_map_with_keytime, type_, (None, ADD), (None, RETRACT), options=time)


def test_nested_update_upserts_by_key():
    keyed = {"nested-key": "k"}
    rows = (([row(1, 1), row(2, 2)], ADD), ([row(1, 3), None, row(3, 4)], ADD), ([row(2, None)], RETRACT))
    result = one(nested_update, TABLE, *rows, options=keyed)
    assert sorted(result, key=lambda r: r["k"]) == [row(1, 3), row(3, 4)]


def test_nested_update_without_key_appends_up_to_limit():
    rows = (([row(1, 1), None], ADD), ([row(1, 1), row(2, 2)], ADD))
    assert one(nested_update, TABLE, *rows) == [row(1, 1), row(1, 1), row(2, 2)]
    assert one(nested_update, TABLE, *rows, options={"count-limit": "3"}) == [row(1, 1), row(1, 1)]
    assert one(nested_update, TABLE, *rows, ([row(1, 1)], RETRACT)) == [row(2, 2)]
    assert one(nested_update, TABLE, *rows[:1], options={"count-limit": "1"}) == [row(1, 1), None]


def test_nested_update_at_limit_still_updates_existing_keys():
    limited = {"nested-key": "k", "count-limit": "2"}
    full = ([row(1, 1), row(2, 2)], ADD)
    for kinds in [(ADD, ADD), (ADD, RETRACT)]:
        rows = (full, ([row(3, 3), row(1, 4)], kinds[0]), ([row(3, 5)], kinds[1]))
        result = one(nested_update, TABLE, *rows, options=limited)
        assert sorted(result, key=lambda r: r["k"]) == [row(1, 4), row(2, 2)]
    room = (full, ([row(2, None)], RETRACT), ([row(3, 3), row(4, 4)], ADD))
    assert one(nested_update, TABLE, *room, options=limited) == [row(1, 1), row(3, 3)]


def test_nested_sequence_field_chooses_the_newest_row_of_a_key():
    options = {"nested-key": "k", "nested-sequence-field": "s,x"}
    rows = (([row(1, 1, s=5), row(1, 2, s=4)], ADD), ([row(1, 3, s=None), row(2, 4)], ADD), ([row(2, 3)], ADD))
    assert sorted(one(nested_update, TABLE, *rows, options=options), key=repr) == [row(1, 1, s=5), row(2, 4)]
    assert one(nested_update, TABLE, ([row(1, 1, s=5)], ADD), ([row(1, 1, s=5)], RETRACT), options=options) == []
    with pytest.raises(InvalidInputError, match="is an option of the aggregate function nested_update"):
        one(nested_partial_update, TABLE, ([row(1, 1)], ADD), options=options)


def test_nested_key_null_strategy():
    rows = (([row(None, 1), row(1, 1)], ADD), ([row(None, 2)], ADD))
    for make in (nested_update, nested_partial_update):
        found = {
            strategy: one(make, TABLE, *rows, options={"nested-key": "k", "nested-key-null-strategy": strategy})
            for strategy in ("merge", "Ignore")
        }
        assert sorted(found["merge"], key=repr) == [row(1, 1), row(None, 2)]
        assert found["Ignore"] == [row(1, 1)]
        refused = {"nested-key": "k", "nested-key-null-strategy": "error"}
        with pytest.raises(InvalidInputError, match="'v' has an inner row with NULL in its key"):
            one(make, TABLE, *rows, options=refused)
        assert one(make, TABLE, *rows[:1], options=refused) == rows[0][0]  # a single row is not merged


def test_nested_options_that_do_not_fit_are_refused():
    for options, message in (
        ({"nested-sequence-field": "s"}, "'fields.v.nested-sequence-field' needs 'fields.v.nested-key'"),
        ({"nested-key-null-strategy": "merge"}, "'fields.v.nested-key-null-strategy' needs 'fields.v.nested-key'"),
        ({"nested-key": "k", "nested-key-null-strategy": "drop"}, "must be one of merge, ignore, error"),
        ({"nested-key": "k", "nested-sequence-field": "y"}, "names 'y'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            one(nested_update, TABLE, ([row(1, 1)], ADD), options=options)


def test_nested_key_null_is_value():
    rows = (([row(None, 1)], ADD), ([row(None, 2), row(1, 3)], ADD))
    keyed = {"nested-key": "k"}
    for make in (nested_update, nested_partial_update):
        assert len(one(make, TABLE, *rows, options=keyed)) == 2


def test_nested_partial_update_keeps_last_non_null_values():
    rows = (([row(1, 1), row(2, 2)], ADD), ([row(1, None, s=3)], ADD), ([row(2, 9, s=9)], LATE))
    result = one(nested_partial_update, TABLE, *rows, options={"nested-key": "k"})
    assert sorted(result, key=lambda r: r["k"]) == [row(1, 1, s=3), row(2, 2, s=9)]


@pytest.mark.parametrize(
    ("make", "type_", "options", "message"),
    [
        (collect, "MAP<INT, INT>", {}, "'v' has type MAP.* collect takes ARRAY"),
        (merge_map, "ARRAY<INT>", {}, "'v' has type ARRAY.* merge_map takes MAP"),
        (merge_map_with_keytime, "MAP<INT, STRING>", {}, "takes MAP to a ROW of at least two"),
        (merge_map_with_keytime, "MAP<INT, ROW<t STRING>>", {}, "takes MAP to a ROW of at least two"),
        (merge_map_with_keytime, "MAP<INT, ROW<x INT, t INT>>", {}, "'t' has type INT"),
        (merge_map_with_keytime, "MAP<INT, ROW<x INT, t STRING>>", {"ts-field": "y"}, "'y'.*have the columns x, t"),
        (nested_update, "ARRAY<INT>", {}, "takes ARRAY of ROW"),
        (nested_update, TABLE, {"nested-key": "k, y"}, "names 'y'.*columns k, s, x"),
        (nested_partial_update, TABLE, {}, "set 'fields.v.nested-key'"),
    ],
)
def test_contradicting_collection_options_are_refused(make, type_, options, message):
    with pytest.raises(InvalidInputError, match=message):
        one(make, type_, (None, ADD), options=options)
