"""Merge engines a table may have, each with its options and the same fold in plain Python.

A fold takes (kind, row) of one key, oldest first, and the columns that are no key; it gives (kind, values) or None.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.support import merge_model as model
from tests.support.merge_model import ADDS, Agg

Row = Mapping[str, Any]
MergeFunction = Callable[[Sequence[tuple[str, Row]], Sequence[str]], "tuple[str, Row] | None"]
ALL = ("+I", "+U", "-U", "-D")


@dataclass(frozen=True)
class Spec:
    """``lawful``: folding folded parts gives the fold of the whole, so that no compaction can be noticed.

    ``kinds``: kinds of rows that the table accepts; with ``ignores``, retractions are dropped on arrival.
    ``traced``: a flush makes one run of files.
    """

    name: str
    fold: MergeFunction
    options: Mapping[str, str] = field(default_factory=dict)
    kinds: Sequence[str] = ADDS
    lawful: bool = True
    traced: bool = True
    ignores: bool = False
    sequence: tuple[str, ...] = ()

    @property
    def engine(self) -> str:
        """Its name."""
        return self.options.get("merge-engine", "deduplicate")

    @property
    def shows_compacted_only(self) -> bool:
        """Readers pass over level 0."""
        return self.engine == "first-row"

    def __repr__(self) -> str:
        return self.name


def _deduplicate(rows, _columns):
    return model.deduplicate(rows)


def _first_row(rows, _columns):
    return model.first_row(rows)


def _aggregation(rows, columns, functions, **how):
    plain = partial(Agg, "last_non_null_value")
    return model.aggregation(rows, {name: functions.get(name, plain) for name in columns}, **how)


def _partial_update(rows, columns, **how):
    return model.partial_update(rows, columns, **how)


def _deduplicating(name, **more):
    return Spec(name, _deduplicate, **more)


def _first(name, options=None, **more):
    return Spec(name, _first_row, {"merge-engine": "first-row", **(options or {})}, **more)


def _updating(name, options=None, how=None, **more):
    return Spec(
        name, partial(_partial_update, **(how or {})), {"merge-engine": "partial-update", **(options or {})}, **more
    )


def _aggregating(name, functions, options=None, how=None, ignoring=(), **more):
    named = {f"fields.{column}.aggregate-function": function for column, function in functions.items()}
    named |= {f"fields.{column}.ignore-retract": "true" for column in ignoring}
    makers = {c: partial(Agg, f, ignore_retract=c in ignoring) for c, f in functions.items()}
    if "sequence" in more:
        makers |= {column: partial(Agg, "last_value") for column in more["sequence"]}
    fold = partial(_aggregation, functions=makers, **(how or {}))
    return Spec(name, fold, {"merge-engine": "aggregation", **named, **(options or {})}, **more)


GROUPS = {"fields.g.sequence-group": "a,b", "fields.h,t.sequence-group": "c,d"}
GROUPED = {"groups": ((("g",), ("a", "b")), (("h", "t"), ("c", "d")))}
SUMMED = {"functions": {"a": partial(Agg, "sum"), "d": partial(Agg, "max")}}
SUMS = {"fields.a.aggregate-function": "sum", "fields.d.aggregate-function": "max"}
MANY = {"a": "sum", "b": "listagg", "c": "max", "d": "min", "f": "bool_or", "g": "first_value", "h": "last_value",
        "s": "first_non_null_value", "u": "product"}  # fmt: skip
BACK = {"a": "sum", "c": "last_value", "u": "product", "d": "max", "b": "first_value"}
NEWEST = {"a": "sum", "c": "max", "g": "last_value", "b": "listagg"}

SPECS = [
    _deduplicating("deduplicate", kinds=ALL),
    _deduplicating("deduplicate ignore-delete", options={"ignore-delete": "true"}, kinds=ALL, ignores=True),
    _deduplicating("deduplicate by sequence", options={"sequence.field": "s,t"}, sequence=("s", "t")),
    _deduplicating(
        "deduplicate by sequence, deletes", options={"sequence.field": "s"}, sequence=("s",), kinds=ALL, lawful=False
    ),
    _first("first-row"),
    _first("first-row ignore-delete", {"ignore-delete": "true"}, kinds=ALL, ignores=True),
    _updating("partial-update"),
    _updating("partial-update ignore-delete", {"ignore-delete": "true"}, kinds=ALL, ignores=True),
    _updating(
        "partial-update remove on delete",
        {"partial-update.remove-record-on-delete": "true"},
        {"remove_on_delete": True},
        kinds=ALL,
        traced=False,
    ),
    _updating("partial-update by sequence", {"sequence.field": "s"}, sequence=("s",), lawful=False),
    _updating("partial-update groups", GROUPS, GROUPED),
    _updating("partial-update groups, aggregates", GROUPS | SUMS, GROUPED | SUMMED),
    _updating("partial-update groups, deletes", GROUPS, GROUPED, kinds=ALL, lawful=False),
    _updating(
        "partial-update groups, aggregates, deletes",
        GROUPS | SUMS | {"fields.d.ignore-retract": "true"},
        {**GROUPED, "functions": {**SUMMED["functions"], "d": partial(Agg, "max", ignore_retract=True)}},
        kinds=ALL,
        lawful=False,
    ),
    _updating(
        "partial-update remove on group",
        GROUPS | {"partial-update.remove-record-on-sequence-group": "g"},
        GROUPED | {"removing": ("g",)},
        kinds=ALL,
        lawful=False,
    ),
    _aggregating("aggregation", MANY),
    _aggregating("aggregation ignore-delete", MANY, {"ignore-delete": "true"}, kinds=ALL, ignores=True),
    _aggregating("aggregation, retracts", BACK, ignoring=("d", "b"), kinds=ALL, lawful=False),
    _aggregating(
        "aggregation remove on delete",
        {"a": "sum", "c": "last_value"},
        {"aggregation.remove-record-on-delete": "true"},
        {"remove_on_delete": True},
        kinds=("+I", "+U", "-D"),
        traced=False,
    ),
    _aggregating("aggregation by sequence", NEWEST, {"sequence.field": "s"}, sequence=("s",), lawful=False),
]
