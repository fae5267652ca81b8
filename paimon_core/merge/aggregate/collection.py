"""The aggregate functions collect, merge_map and merge_map_with_keytime: arrays and maps as collections.

A null has no effect, even if it is retracted.
"""

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.elements import Classes, Elements, codes
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, numbers, refuse_retract, valid
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import any_of, first
from paimon_core.types.datatype import ArrayType, AtomicType, MapType, RowType
from paimon_core.types.selection import Mask, Positions

# ---- collect


def collect(field: FieldOptions) -> Aggregate:
    """Make collect: concatenation, or with distinct the set union, of arrays. Associative without retracts.

    Each retracted element removes the oldest equal element; a retract before any array has no effect. Late rows are
    appended like other rows. A distinct collect keeps the first of equal elements, but an array that was copied as the
    first value keeps its duplicates until another value is added.
    """
    field.check_type("collect", isinstance(field.type, ArrayType), "ARRAY")
    return partial(_collect, field.distinct)


def _collect(distinct: bool, column: Column, inputs: AggregateInput) -> Column:
    elements = Elements.of(column, inputs)
    absent = _never_added(column, inputs)
    if not (distinct or elements.retract.any()) or not len(elements.row):
        return elements.gather(np.arange(len(elements.row)), absent)
    code = codes(elements.values, one_zero=pt.is_nested(elements.values.type))  # plain elements are compared by bits
    classes = Classes.of(code, elements.group)
    order, position = classes.order, np.arange(len(classes.order))
    add = ~elements.retract[order]
    in_set = _in_set(inputs)[elements.row[order]] if distinct else np.zeros(len(order), np.bool_)
    length = classes.spread(_queue_length(np.where(in_set, 0, np.where(add, 1, -1)), classes))
    listed = np.cumsum(add & ~in_set)
    added_later = classes.spread(listed[classes.starts + classes.counts - 1]) - listed
    cleared = classes.spread(classes.last(in_set & ~add))
    stays = add & (position > cleared) & (in_set | (added_later < length))
    if distinct:
        made_set = any_of(_in_set(inputs), inputs.starts)[elements.group[order]]
        stays &= ~made_set | (position == classes.spread(classes.first(stays)))
    return elements.gather(np.sort(order[stays]), absent)


def _in_set(inputs: AggregateInput) -> Mask:
    """Return the mask of rows that a distinct collect adds as a set: all but a copied array and its retracts."""
    added: Positions = np.cumsum(~inputs.retract)
    within: Positions = added - (added - ~inputs.retract)[inputs.starts][inputs.group()]
    in_set: Mask = ~inputs.opened[inputs.group()] | (within > 1)
    return in_set


def _queue_length(steps: Positions, classes: Classes) -> Positions:
    """Return the length of each class's queue after steps of +1 and -1; -1 on an empty queue has no effect."""
    total = np.cumsum(steps)
    total -= classes.spread(total[classes.starts] - steps[classes.starts])
    lowest = np.minimum.reduceat(total, classes.starts)
    length: Positions = total[classes.starts + classes.counts - 1] - np.minimum(lowest, 0)
    return length


def _never_added(column: Column, inputs: AggregateInput) -> Mask:
    return ~any_of(valid(column) & ~inputs.retract, inputs.starts)


# ---- merge_map


def merge_map(field: FieldOptions) -> Aggregate:
    """Make merge_map: union of maps; the last entry of a key wins, and a retract removes keys.

    Associative without retracts.
    """
    field.check_type("merge_map", isinstance(field.type, MapType), "MAP")
    return _merge_map


def _merge_map(column: Column, inputs: AggregateInput) -> Column:
    elements = Elements.of(column, inputs)
    classes = Classes.of(codes(elements.values.flatten()[0]), elements.group)
    rank = np.where(_live(elements, classes), elements.final_rank()[classes.order], -1)
    return elements.gather(_winners(rank, classes), _never_added(column, inputs))


def _live(elements: Elements, classes: Classes) -> Mask:
    """Return the mask, in class order, of added elements that no later element of their class retracts."""
    minus = elements.retract[classes.order]
    stays: Mask = ~minus & (np.arange(len(minus)) > classes.spread(classes.last(minus)))
    return stays


def _winners(rank: Positions, classes: Classes) -> Positions:
    """Return the element of the highest rank in each class, in element order; no element if all ranks are -1."""
    best = classes.best(rank)
    return np.sort(classes.order[(rank >= 0) & (rank == classes.spread(best))])


# ---- merge_map_with_keytime


def merge_map_with_keytime(field: FieldOptions) -> Aggregate:
    """Make merge_map_with_keytime: union of maps with rows as values; for each key the row with the latest time wins.

    Times are compared as text. ``fields.<name>.ts-field`` names the row's time column, by default the last. The first
    map is copied. In later maps a null row removes its key, and a row without time has no effect. Associative without
    null rows and missing times.
    """
    kind, name = field.type, "merge_map_with_keytime"
    row = kind.value if isinstance(kind, MapType) else None
    fits = isinstance(row, RowType) and len(row.fields) >= 2
    field.check_type(name, fits, "MAP to a ROW of at least two fields")
    assert isinstance(row, RowType)
    columns = [f.name for f in row.fields]
    time = field.text("ts-field", columns[-1])
    if time not in columns:
        raise InvalidInputError(
            f"'fields.{field.name}.ts-field' is {time!r}, but the rows in column {field.name!r} have the columns "
            f"{', '.join(columns)}: name one of them"
        )
    at = columns.index(time)
    text = row.fields[at].type
    if not (isinstance(text, AtomicType) and text.root in ("CHAR", "VARCHAR")):
        raise InvalidInputError(
            f"column {field.name!r}: {name} compares times as text, but {time!r} has type {text}; make it a STRING or "
            f"name another column in 'fields.{field.name}.ts-field'"
        )
    return partial(_merge_map_with_keytime, field, at)


def _merge_map_with_keytime(field: FieldOptions, time: int, column: Column, inputs: AggregateInput) -> Column:
    refuse_retract(field, "merge_map_with_keytime", inputs)
    elements = Elements.of(column, inputs)
    keys, rows = elements.values.flatten()
    entries = _Entries(codes(keys), valid(rows), _time_ranks(rows.flatten()[time]))
    keep = _keytime_row_by_row(entries, elements) if inputs.late.any() else _keytime(entries, elements)
    return elements.gather(keep, ~any_of(valid(column), inputs.starts))


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """Map entries with rows as values: codes of the keys, mask of the present rows, ranks of their times (-1: null)."""

    key: Positions
    has_row: Mask
    time: Positions


def _time_ranks(texts: Column) -> Positions:
    ranks: Positions = codes(texts)
    present = ranks >= 0
    if present.any():
        ranks[present] = numbers(pc.rank(texts.filter(pa.array(present)), tiebreaker="dense"), 0)
    return ranks


def _keytime(entries: _Entries, elements: Elements) -> Positions:
    """Return the elements of the result. REQUIRES: no row is late."""
    classes = Classes.of(entries.key, elements.group)
    order, position = classes.order, np.arange(len(classes.order))
    opening = (elements.row == first(valid(elements.column), elements.inputs.starts)[elements.group])[order]
    has_row, time = entries.has_row[order], entries.time[order]
    cleared = classes.spread(classes.last(~has_row & ~opening))
    counts = (position > cleared) & (opening | (time >= 0))
    rank = (time + 1) * (len(order) + 1) + len(order) - position  # the first of equal times wins
    return _winners(np.where(counts, rank, -1), classes)


def _keytime_row_by_row(entries: _Entries, elements: Elements) -> Positions:
    """Return the elements of the result, by a loop over rows.

    Earlier entries are merged into a late map, so their null rows and missing times count again.
    """
    key, has_row, time = entries.key.tolist(), entries.has_row.tolist(), entries.time.tolist()
    late, present = elements.inputs.late.tolist(), valid(elements.column).tolist()
    begins = np.searchsorted(elements.row, np.arange(len(late) + 1)).tolist()

    def merged(into: dict[int, int], more: dict[int, int]) -> dict[int, int]:
        result = dict(into)
        for k, e in more.items():
            if not has_row[e]:
                result.pop(k, None)
            elif time[e] >= 0 and (k not in result or time[result[k]] < time[e]):
                result[k] = e
        return result

    keep: list[int] = []
    for begin, end in itertools.pairwise([*elements.inputs.starts.tolist(), len(late)]):
        held: dict[int, int] | None = None
        for row in range(begin, end):
            if present[row]:
                new = {key[e]: e for e in range(begins[row], begins[row + 1])}
                held = new if held is None else merged(new, held) if late[row] else merged(held, new)
        keep += sorted((held or {}).values())
    return np.array(keep, np.int64)
