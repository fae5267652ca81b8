"""Functions on collections against a row-by-row model that follows the specification of each step."""

import itertools
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.format.python_rows import python_rows
from paimon_core.merge.aggregate.collection import collect, merge_map, merge_map_with_keytime
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import AggregateInput
from paimon_core.merge.aggregate.nested import nested_partial_update, nested_update
from paimon_core.options.option import Options
from paimon_core.types.arrow import to_arrow
from paimon_core.types.parse import parse_type

ADD, RETRACT, LATE = "add", "retract", "late"


# ---- the model: a step is (held, new) to held


def _late(add):
    return lambda held, new: held if new is None else add(new, held)


def _remove_one(held, gone):
    gone = list(gone)
    return [e for e in held if not (e in gone and (gone.remove(e) or True))]


def _collect(held, new):
    return held if new is None else new if held is None else held + new


def _distinct(held, new):
    if held is None and new is None:
        return None
    both = (held or []) + (new or [])
    return [e for i, e in enumerate(both) if e not in both[:i]]


def _merge_map(held, new):
    return held if new is None else new if held is None else {**held, **new}


def _keytime(held, new):
    if held is None or new is None:
        return new if held is None else held
    made = dict(held)
    for key, row in new.items():
        if row is None:
            made.pop(key, None)
        elif row["t"] is not None and ((old := made.get(key)) is None or old["t"] is None or row["t"] > old["t"]):
            made[key] = row
    return made


def _key(row):
    return row["k"]


def _by_key(rows):
    return list({_key(row): row for row in rows}.values())


def _nested(limit):
    def add(held, new):
        if held is None or new is None:
            return new if held is None else held
        if len(held) >= limit:
            return held
        return [r for r in held if r is not None] + [r for r in new if r is not None][: limit - len(held)]

    return add


def _nested_by_key(limit):
    def add(held, new):
        if new is None or (held is None and len(new) < limit):  # a first array below the limit is copied as it is
            return new if held is None else held
        made = {_key(row): row for row in held or () if row is not None}
        for row in new:
            if row is not None and (_key(row) in made or len(made) < limit):
                made[_key(row)] = row
        return list(made.values())

    return add


def _newer_nested(limit, sequence, ignore):
    """The rules of Java's releases after 1.4.2, which these options choose."""

    def put(made, rows, most):
        for row in rows:
            if row is None or (ignore and _key(row) is None):
                continue
            old = made.get(_key(row))
            if old is None:
                if len(made) < most:
                    made[_key(row)] = row
            elif not sequence or (row["s"] is not None, row["s"] or 0) >= (old["s"] is not None, old["s"] or 0):
                made[_key(row)] = row

    def add(held, new):
        if new is None:
            return held
        made = {}
        put(made, held or (), 2**31)
        put(made, new, limit)
        return list(made.values())

    return add


def _newer_retract(ignore):
    def retract(held, gone):
        made = {_key(row): row for row in held if row is not None and not (ignore and _key(row) is None)}
        for row in gone:
            if row is not None and not (ignore and _key(row) is None):
                made.pop(_key(row), None)
        return list(made.values())

    return retract


def _newer_partial(held, new):
    return held if new is None else _partial([], [r for r in [*(held or ()), *new] if r and r["k"] is not None])


def _newer_case(limit, sequence, ignore):
    options = {"nested-key": "k", "count-limit": str(limit)}
    options |= {"nested-sequence-field": "s"} if sequence else {}
    options |= {"nested-key-null-strategy": "ignore"} if ignore else {}
    add, retract = _newer_nested(limit, sequence, ignore), _newer_retract(ignore)
    return SimpleNamespace(make=nested_update, options=options, add=add, retract=retract, copies_single=True)


def _nested_retract(keyed):
    def retract(held, gone):
        rows = [row for row in held if row is not None]
        if not keyed:
            return [row for row in rows if row not in gone]
        keys = [_key(row) for row in gone if row is not None]
        return [row for row in _by_key(rows) if _key(row) not in keys]

    return retract


def _partial(held, new):
    if held is None or new is None:
        return new if held is None else held
    made = {}
    for row in held + new:
        if row is not None:
            old = made.get(_key(row), dict.fromkeys(row))
            made[_key(row)] = {c: old[c] if v is None else v for c, v in row.items()}
    return list(made.values())


CASES = {
    "collect": SimpleNamespace(make=collect, add=_collect, retract=_remove_one, late=_collect),
    "collect-distinct": SimpleNamespace(
        make=collect, options={"distinct": "true"}, add=_distinct, retract=_remove_one, late=_distinct
    ),
    "merge_map": SimpleNamespace(
        make=merge_map, add=_merge_map, retract=lambda held, gone: {k: v for k, v in held.items() if k not in gone}
    ),
    "merge_map_with_keytime": SimpleNamespace(make=merge_map_with_keytime, add=_keytime, retract=None),
    "nested_update": SimpleNamespace(make=nested_update, add=_nested(2**31), retract=_nested_retract(False)),
    "nested_update-limit": SimpleNamespace(
        make=nested_update, options={"count-limit": "3"}, add=_nested(3), retract=_nested_retract(False)
    ),
    "nested_update-key": SimpleNamespace(
        make=nested_update, options={"nested-key": "k"}, add=_nested_by_key(2**31), retract=_nested_retract(True)
    ),
    "nested_update-key-limit": SimpleNamespace(
        make=nested_update,
        options={"nested-key": "k", "count-limit": "3"},
        add=_nested_by_key(3),
        retract=_nested_retract(True),
    ),
    "nested_update-sequence": _newer_case(2**31 - 1, True, False),
    "nested_update-sequence-limit": _newer_case(3, True, True),
    "nested_update-ignore": _newer_case(2**31 - 1, False, True),
    "nested_update-ignore-limit": _newer_case(2, False, True),
    "nested_partial_update": SimpleNamespace(
        make=nested_partial_update, options={"nested-key": "k"}, add=_partial, retract=None
    ),
    "nested_partial_update-ignore": SimpleNamespace(
        make=nested_partial_update,
        options={"nested-key": "k", "nested-key-null-strategy": "ignore"},
        add=_newer_partial,
        retract=None,
        copies_single=True,
    ),
}


def fold(case, rows, opened):
    """Return the model's result for one group's (value, kind) rows."""
    if getattr(case, "copies_single", False) and len(rows) == 1:
        return None if rows[0][1] == RETRACT else rows[0][0]
    held, rows = (rows[0][0], rows[1:]) if opened else (None, rows)
    for value, kind in rows:
        if kind == RETRACT:
            held = held if held is None or value is None else case.retract(held, value)
        elif kind == LATE:
            held = (getattr(case, "late", None) or _late(case.add))(held, value)
        else:
            held = case.add(held, value)
    return held


# ---- feeding the function


def feed(make, type_, groups, options=None):
    """Return the function's result, as Python values, for groups of (rows, opened)."""
    kind = parse_type(type_)
    texts = Options({f"fields.v.{k}": v for k, v in (options or {}).items()})
    rows = [row for group, _ in groups for row in group]
    sizes = [len(group) for group, _ in groups]
    fed = AggregateInput(
        np.cumsum(sizes) - sizes,
        np.array([kind == RETRACT for _, kind in rows]),
        np.array([kind == LATE for _, kind in rows]),
        np.array([opened for _, opened in groups]),
    )
    padded = [rows[0][0], *(value for value, _ in rows)]  # the column is a slice, as columns of windows are
    made = make(FieldOptions("v", kind, texts))(pa.array(padded, to_arrow(kind))[1:], fed)
    made.validate(full=True)
    assert made.type == to_arrow(kind)
    return [row["v"] for row in python_rows(pa.record_batch({"v": made}))]


def groups_of(values, is_retract_batch, at_most=6):
    kinds = st.sampled_from([ADD, ADD, ADD, RETRACT, LATE] if is_retract_batch else [ADD, ADD, LATE])

    def opening(drawn):
        rows, opened = drawn
        return ([(rows[0][0], ADD), *rows[1:]] if opened else rows, opened)

    group = st.tuples(st.lists(st.tuples(st.none() | values, kinds), min_size=1, max_size=at_most), st.booleans())
    return st.lists(group.map(opening), min_size=1, max_size=4)


small = st.integers(0, 3)
inner_rows = st.fixed_dictionaries({"k": st.none() | small, "s": st.none() | small, "x": st.none() | small})
times = st.sampled_from(["1", "2", "10"])
TYPES = {
    "collect": ("ARRAY<INT>", st.lists(st.none() | small, max_size=4)),
    "merge_map": ("MAP<INT, STRING>", st.dictionaries(small, st.none() | st.sampled_from("ab"), max_size=3)),
    "merge_map_with_keytime": (
        "MAP<INT, ROW<x INT, t STRING>>",
        st.dictionaries(
            small,
            st.none()
            | st.fixed_dictionaries({"x": st.none() | small, "t": st.none() | st.sampled_from(["1", "2", "10"])}),
            max_size=3,
        ),
    ),
    "nested_update": ("ARRAY<ROW<k INT, s INT, x INT>>", st.lists(st.none() | inner_rows, max_size=4)),
    "nested_partial_update": ("ARRAY<ROW<k INT, s INT, x INT>>", st.lists(st.none() | inner_rows, max_size=4)),
}
IN_ORDER = {"collect", "nested_update", "nested_update-limit"}


def comparable(name, value):
    """Return the rows, or their counts if their order is undefined."""
    if not isinstance(value, list) or name in IN_ORDER:
        return value
    return Counter(repr(sorted(row.items()) if isinstance(row, dict) else row) for row in value)


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_collection_functions_equal_model(name, data):
    case = CASES[name]
    type_, values = TYPES[name.partition("-")[0]]
    groups = data.draw(groups_of(values, is_retract_batch=case.retract is not None))
    result = feed(case.make, type_, groups, getattr(case, "options", None))
    expected = [fold(case, rows, opened) for rows, opened in groups]
    assert [comparable(name, v) for v in result] == [comparable(name, v) for v in expected]


@given(groups_of(st.lists(st.none() | inner_rows, max_size=3), is_retract_batch=True))
def test_distinct_collect_of_rows_keeps_first_of_equal_rows(groups):
    case = CASES["collect-distinct"]
    result = feed(collect, "ARRAY<ROW<k INT, s INT, x INT>>", groups, case.options)
    assert result == [fold(case, rows, opened) for rows, opened in groups]


LAWFUL = ("collect", "collect-distinct", "merge_map", "nested_update", "nested_update-key", "nested_partial_update")


@pytest.mark.parametrize("name", LAWFUL)
@given(data=st.data())
def test_collection_functions_are_associative_without_retracts(name, data):
    case = CASES[name]
    type_, values = TYPES[name.partition("-")[0]]
    rows = [(v, ADD) for v in data.draw(st.lists(st.none() | values, min_size=2, max_size=6))]
    cut = data.draw(st.integers(1, len(rows) - 1))
    options = getattr(case, "options", None)
    parts = itertools.chain(*(feed(case.make, type_, [(part, False)], options) for part in (rows[:cut], rows[cut:])))
    again = feed(case.make, type_, [([(v, ADD) for v in parts], False)], options)
    whole = feed(case.make, type_, [(rows, False)], options)
    assert [comparable(name, v) for v in again] == [comparable(name, v) for v in whole]
