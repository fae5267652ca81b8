"""Every merge engine against a record-by-record model, on windows in any order."""

import functools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.merge import merge_engine
from paimon_core.merge.window import Window
from paimon_core.options.option import Options
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support import merge_model as model
from tests.support.merge_model import Agg

KINDS = ["+I", "-U", "+U", "-D"]
VALUES = {
    "INT": st.integers(-4, 4),
    "BIGINT": st.integers(-(2**40), 2**40),
    "DECIMAL(38, 2)": st.decimals(-(10**9), 10**9, places=2, allow_nan=False, allow_infinity=False),
    "DECIMAL(6, 2)": st.decimals(-50, 50, places=2, allow_nan=False, allow_infinity=False),
    "DOUBLE": st.sampled_from([0.0, -0.0, 1.5, -2.5, 0.1, 1e16, math.nan, math.inf]),
    "FLOAT": st.sampled_from([0.0, -0.0, 1.5, -2.5, math.nan]),
    "STRING": st.sampled_from(["", "a", "b", "a,b", "ä", "abcdefghijk", "abcdefghijl", "\U0001f600"]),
    "BOOLEAN": st.booleans(),
    "TIMESTAMP(6)": st.integers(-3, 3),
    "DATE": st.integers(-3, 3),
    "BYTES": st.binary(max_size=2),
    "SMALL": st.integers(0, 3),
    "UNIT": st.sampled_from([1, -1, 2, 3]),
}
ADD_ONLY, ALL = st.sampled_from(["+I", "+U"]), st.sampled_from(["+I", "+I", "+I", "-U", "+U", "-D"])


def histories(columns, kinds):
    """Rows of up to six keys, in order of arrival: (key, kind, values)."""
    values = {name: st.none() | VALUES[pool] for name, (_, pool) in columns.items()}
    return st.lists(st.tuples(st.integers(0, 5), kinds, st.fixed_dictionaries(values)), max_size=30)


def window(columns, rows, seed):
    """Return the rows as a window in random order, or in sorted order without a seed."""
    positions = np.arange(len(rows)) if seed is None else np.random.default_rng(seed).permutation(len(rows))
    if seed is None:
        positions = np.array(sorted(range(len(rows)), key=lambda i: rows[i][0]), int)
    arrays = {"k": pa.array([rows[i][0] for i in positions], pa.int64())}
    for name, (kind, _) in columns.items():
        arrays[name] = pa.array([rows[i][2][name] for i in positions], to_arrow(parse_type(kind)))
    arrays["_SEQUENCE_NUMBER"] = pa.array(positions, pa.int64())
    arrays["_VALUE_KIND"] = pa.array([KINDS.index(rows[i][1]) for i in positions], pa.int8())
    order = np.lexsort((positions, [rows[i][0] for i in positions])) if len(rows) else np.zeros(0, int)
    keys = np.array([rows[positions[i]][0] for i in order])
    starts = np.flatnonzero(np.diff(keys, prepend=-1)) if len(rows) else np.zeros(0, int)
    return Window(pa.table(arrays), None if seed is None else order, starts)


def shown(value):
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return [shown(v) for v in value]
    return value


def plain(table, columns):
    """Return {key: (kind, values)} with instants as integers."""
    result = {}
    for name in columns:
        column = table.column(name).combine_chunks()
        if pa.types.is_temporal(column.type):
            column = column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
        result[name] = [shown(v) for v in column.to_pylist()]
    kinds = [KINDS[k] for k in table.column("_VALUE_KIND").to_pylist()]
    keys = table.column("k").to_pylist()
    assert keys == sorted(set(keys))
    return {k: (kinds[i], {n: v[i] for n, v in result.items()}) for i, k in enumerate(keys)}


def expected(rows, fold):
    result = {}
    for key in sorted({k for k, _, _ in rows}):
        made = fold([(kind, values) for k, kind, values in rows if k == key])
        if made is not None:
            result[key] = (made[0], {n: shown(v) for n, v in made[1].items()})
    return result


def check(columns, options, rows, fold, seed):
    fields = [DataField(0, "k", parse_type("BIGINT NOT NULL"))]
    fields += [DataField(i, name, parse_type(kind)) for i, (name, (kind, _)) in enumerate(columns.items(), 1)]
    engine = merge_engine(Options(options), fields, ("k",))
    try:
        want = expected(rows, fold)
    except model.Refused:
        with pytest.raises(InvalidInputError):
            engine.fold(window(columns, rows, seed))
        return
    got = engine.fold(window(columns, rows, seed))
    assert got.schema == window(columns, rows, seed).rows.schema
    assert plain(got, columns) == want
    numbers = got.column("_SEQUENCE_NUMBER").to_pylist()
    assert all(rows[number][0] == key for number, key in zip(numbers, got.column("k").to_pylist(), strict=True))


def case(kinds, columns, options, fold):
    return kinds, columns, options, fold


THREE = {"a": ("INT", "INT"), "b": ("STRING", "STRING"), "c": ("DOUBLE", "DOUBLE")}
PLAIN = {
    "deduplicate": case(ALL, THREE, {}, model.deduplicate),
    "deduplicate ignore-delete": case(
        ALL, THREE, {"ignore-delete": "true"}, lambda rows: model.deduplicate(rows, ignore_delete=True)
    ),
    "first-row": case(ADD_ONLY, THREE, {"merge-engine": "first-row"}, model.first_row),
    "first-row refuses": case(ALL, THREE, {"merge-engine": "first-row"}, model.first_row),
    "first-row ignore-delete": case(
        ALL,
        THREE,
        {"merge-engine": "first-row", "ignore-delete": "true"},
        lambda rows: model.first_row(rows, ignore_delete=True),
    ),
}
PARTIAL = {"merge-engine": "partial-update"}
WIDE = {
    "u": ("INT", "INT"),
    "a": ("INT", "INT"),
    "s": ("INT", "SMALL"),
    "b": ("STRING", "STRING"),
    "c": ("INT", "INT"),
    "t": ("INT", "SMALL"),
    "d": ("BOOLEAN", "BOOLEAN"),
}
TWO_GROUPS = {"fields.s.sequence-group": "a,b", "fields.t.sequence-group": "c,d"}
GROUPS = ((("s",), ("a", "b")), (("t",), ("c", "d")))
BY_TWO = {"fields.s,t.sequence-group": "a,b,c,d"}
ODD = {
    "s": ("STRING", "STRING"),
    "t": ("DECIMAL(6, 2)", "DECIMAL(6, 2)"),
    "w": ("BIGINT", "BIGINT"),
    "a": ("INT", "INT"),
}


def partial(columns, **how):
    return lambda rows: model.partial_update(rows, list(columns), **how)


PARTIAL_CASES = {
    "partial-update": case(ADD_ONLY, THREE, PARTIAL, partial(THREE)),
    "partial-update refuses": case(ALL, THREE, PARTIAL, partial(THREE)),
    "partial-update ignore-delete": case(
        ALL, THREE, PARTIAL | {"ignore-delete": "true"}, partial(THREE, ignore_delete=True)
    ),
    "remove-record-on-delete": case(
        ALL,
        THREE,
        PARTIAL | {"partial-update.remove-record-on-delete": "true"},
        partial(THREE, remove_on_delete=True),
    ),
    "groups, adds": case(ADD_ONLY, WIDE, PARTIAL | TWO_GROUPS, partial(WIDE, groups=GROUPS)),
    "groups, retracts": case(ALL, WIDE, PARTIAL | TWO_GROUPS, partial(WIDE, groups=GROUPS)),
    "groups, ignore-delete": case(
        ALL, WIDE, PARTIAL | TWO_GROUPS | {"ignore-delete": "true"}, partial(WIDE, groups=GROUPS, ignore_delete=True)
    ),
    "two ordering columns": case(
        ALL, WIDE, PARTIAL | BY_TWO, partial(WIDE, groups=((("s", "t"), ("a", "b", "c", "d")),))
    ),
    "ordering of other types": case(
        ALL, ODD, PARTIAL | {"fields.s,t,w.sequence-group": "a"}, partial(ODD, groups=((("s", "t", "w"), ("a",)),))
    ),
    "removing": case(
        ALL,
        WIDE,
        PARTIAL | TWO_GROUPS | {"partial-update.remove-record-on-sequence-group": "s"},
        partial(WIDE, groups=GROUPS, removing=("s",)),
    ),
    "two removing": case(
        ALL,
        WIDE,
        PARTIAL | TWO_GROUPS | {"partial-update.remove-record-on-sequence-group": "s,t"},
        partial(WIDE, groups=GROUPS, removing=("s", "t")),
    ),
}
TAKES_BACK = ("sum", "product", "last_value", "last_non_null_value")
FUNCTIONS = {
    "sum": ("BIGINT", "INT"),
    "product": ("BIGINT", "UNIT"),
    "max": ("STRING", "STRING"),
    "min": ("DOUBLE", "DOUBLE"),
    "last_value": ("INT", "INT"),
    "last_non_null_value": ("BYTES", "BYTES"),
    "first_value": ("INT", "INT"),
    "first_non_null_value": ("INT", "INT"),
    "bool_and": ("BOOLEAN", "BOOLEAN"),
    "bool_or": ("BOOLEAN", "BOOLEAN"),
    "listagg": ("STRING", "STRING"),
}


def functions_case(style, name, kinds, *, ignore=False, distinct=False, removing=False):
    columns = {"s": ("INT", "SMALL"), "f": FUNCTIONS[name], "g": ("INT", "INT")}
    options = {"fields.f.aggregate-function": name}
    options |= {"fields.f.ignore-retract": "true"} if ignore else {}
    options |= {"fields.f.distinct": "true"} if distinct else {}
    make = functools.partial(Agg, name, ignore_retract=ignore, distinct=distinct)
    if style == "aggregation":
        last = functools.partial(Agg, "last_non_null_value")
        options |= {"merge-engine": "aggregation"}
        options |= {"aggregation.remove-record-on-delete": "true"} if removing else {}
        aggs = {"s": last, "f": make, "g": last}
        return case(kinds, columns, options, lambda rows: model.aggregation(rows, aggs, remove_on_delete=removing))
    options |= PARTIAL | {"fields.s.sequence-group": "f,g"}
    options |= {"partial-update.remove-record-on-sequence-group": "s"} if removing else {}
    groups = ((("s",), ("f", "g")),)
    fold = partial(columns, groups=groups, functions={"f": make}, removing=("s",) if removing else ())
    return case(kinds, columns, options, fold)


REMOVALS = st.sampled_from(["+I", "+I", "+U", "-D"])
AGGREGATES = {
    **{
        f"{style} {name}": functions_case(style, name, ADD_ONLY)
        for style in ("aggregation", "group")
        for name in FUNCTIONS
    },
    **{
        f"{style} {name} retracts": functions_case(style, name, ALL, ignore=name not in TAKES_BACK)
        for style in ("aggregation", "group")
        for name in FUNCTIONS
    },
    **{f"{style} max refuses": functions_case(style, "max", ALL) for style in ("aggregation", "group")},
    **{
        f"{style} listagg distinct": functions_case(style, "listagg", ADD_ONLY, distinct=True)
        for style in ("aggregation", "group")
    },
    **{
        f"aggregation {name} removing": functions_case("aggregation", name, REMOVALS, removing=True)
        for name in FUNCTIONS
    },
    **{
        f"group {name} removing": functions_case("group", name, ALL, removing=True, ignore=name not in TAKES_BACK)
        for name in FUNCTIONS
    },
}
EXTREMES = {
    f"{name} {kind}": case(
        ADD_ONLY,
        {"f": (kind, kind)},
        {"merge-engine": "aggregation", "fields.f.aggregate-function": name},
        lambda rows, name=name: model.aggregation(rows, {"f": functools.partial(Agg, name)}),
    )
    for name in ("max", "min")
    for kind in VALUES
    if kind not in ("SMALL", "UNIT", "BOOLEAN")
}
SUMS = {
    f"{name} {kind}": case(
        ALL if name == "sum" else ADD_ONLY,
        {"f": (kind, kind)},
        {"merge-engine": "aggregation", "fields.f.aggregate-function": name},
        lambda rows, name=name: model.aggregation(rows, {"f": functools.partial(Agg, name)}),
    )
    for name, kinds in {"sum": ("BIGINT", "INT", "DECIMAL(38, 2)", "DOUBLE"), "product": ("DOUBLE",)}.items()
    for kind in kinds
}
CASES = PLAIN | PARTIAL_CASES | AGGREGATES | EXTREMES | SUMS


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=settings().max_examples // 4)  # of each of a hundred cases
@given(data=st.data())
def test_merge_engines_equal_model(name, data):
    kinds, columns, options, fold = CASES[name]
    rows = data.draw(histories(columns, kinds))
    check(columns, options, rows, fold, data.draw(st.none() | st.integers(0, 3)))


LAWFUL = [
    *PLAIN,
    "partial-update",
    "groups, adds",
    *(f"aggregation {name}" for name in FUNCTIONS),
    "aggregation listagg distinct",
    *(name for name in SUMS if "INT" in name or "DECIMAL" in name),
]
LAWFUL.remove("first-row refuses")


@pytest.mark.parametrize("name", LAWFUL)
@settings(max_examples=settings().max_examples // 4)  # of each of a hundred cases
@given(data=st.data())
def test_merge_engines_are_associative(name, data):
    kinds, columns, options, _ = CASES[name]
    kinds = kinds if name in PLAIN else ADD_ONLY
    rows = data.draw(histories(columns, kinds))
    cut = data.draw(st.integers(0, len(rows)))
    fields = [DataField(0, "k", parse_type("BIGINT NOT NULL"))]
    fields += [DataField(i, n, parse_type(kind)) for i, (n, (kind, _)) in enumerate(columns.items(), 1)]
    fold = merge_engine(Options(options), fields, ("k",)).fold
    parts = [fold(window(columns, part, None)) for part in (rows[:cut], rows[cut:])]
    laid = pa.concat_tables(parts).combine_chunks()
    order = np.argsort(laid.column("k").to_numpy(), kind="stable")
    keys = laid.column("k").to_numpy()[order]
    again = fold(Window(laid, order, np.flatnonzero(np.diff(keys, prepend=-1))))

    def adding(table):
        return {k: v[1] for k, v in plain(table, columns).items() if v[0] in ("+I", "+U")}

    assert adding(again) == adding(fold(window(columns, rows, None)))
