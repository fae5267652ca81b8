"""The aggregate functions nested_update and nested_partial_update: arrays of rows as small tables.

Both copy the first array, null rows and repeated keys included; the next array makes it a table. Rows of a table with a
key have no defined order.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.merge.aggregate.elements import Classes, Elements, codes
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, refuse_retract, valid
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import any_of, first
from paimon_core.types.datatype import ArrayType, RowType
from paimon_core.types.selection import Mask, Positions

_UNKNOWN = ("nested-sequence-field", "nested-key-null-strategy")


@dataclass(frozen=True, slots=True)
class _Nested:
    """The options of a column; inner columns are identified by their index in the inner rows."""

    field: FieldOptions
    key: tuple[int, ...]
    limit: int

    @staticmethod
    def of(field: FieldOptions, function: str) -> "_Nested":
        """Return the options of a column.

        Raises InvalidInputError if the type is not an array of rows, or if an option names an unknown inner column.
        Raises UnsupportedError for two options of later releases.
        """
        row = field.type.element if isinstance(field.type, ArrayType) else None
        field.check_type(function, isinstance(row, RowType), "ARRAY of ROW")
        assert isinstance(row, RowType)
        for option in _UNKNOWN:
            if field.text(option, ""):
                raise UnsupportedError(
                    f"'fields.{field.name}.{option}' is not supported yet: the Java engine 1.4.2 does not know it, so "
                    "its rules could not be checked against it; leave it out"
                )
        key = _indexes(field, [f.name for f in row.fields], "nested-key", field.nested_key)
        return _Nested(field, key, field.count_limit)


def _indexes(field: FieldOptions, names: Sequence[str], option: str, chosen: Iterable[str]) -> tuple[int, ...]:
    for name in chosen:
        if name not in names:
            raise InvalidInputError(
                f"'fields.{field.name}.{option}' names {name!r}, but the rows in column {field.name!r} have the "
                f"columns {', '.join(names)}"
            )
    return tuple(map(names.index, chosen))


# ---- common to both functions


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The inner rows of a column: the codes of their keys, the mask of rows of a table, the mask of copied rows.

    ``rank``: the rank of each inner row in the final order, from :meth:`Elements.final_rank`.
    """

    elements: Elements
    code: Positions
    table: Mask
    copied: Mask
    rank: Positions

    @staticmethod
    def of(nested: _Nested, column: Column, inputs: AggregateInput) -> "_Rows":
        elements = Elements.of(column, inputs)
        values, row, group = elements.values, elements.row, elements.group
        present, opening = valid(column), first(valid(column) & ~inputs.retract, inputs.starts)
        later = present & (np.arange(len(column)) > opening[inputs.group()]) & (opening[inputs.group()] >= 0)
        touched = any_of(later, inputs.starts)
        in_use = (row >= opening[group]) & (opening[group] >= 0)
        table = touched[group] & in_use & valid(values)
        columns = values.flatten()
        keys = [columns[i] for i in nested.key or range(len(columns))]
        named = pa.StructArray.from_arrays(keys, [str(i) for i in range(len(keys))])
        code = codes(named, one_zero=not nested.key)  # keys are compared by bits
        return _Rows(elements, code, table, ~touched[group] & (row == opening[group]), elements.final_rank())


# ---- nested_update


def nested_update(field: FieldOptions) -> Aggregate:
    """Make nested_update: an upsert of rows by nested key, or without a key a concatenation, of up to count-limit rows.

    At the limit new keys are dropped, and rows of existing keys are still replaced. A retract removes rows by key, or
    without a key all equal rows. Associative without retracts and limits.
    """
    return partial(_nested_update, _Nested.of(field, "nested_update"))


def _nested_update(nested: _Nested, column: Column, inputs: AggregateInput) -> Column:
    rows = _Rows.of(nested, column, inputs)
    elements = rows.elements
    absent = ~any_of(valid(column) & ~inputs.retract, inputs.starts)
    many = np.bincount(elements.group[~elements.retract], minlength=len(inputs.starts)) >= nested.limit
    if not many.any():
        return elements.gather(_updated(nested, rows), absent)
    keep = _updated(nested, rows)
    keep = keep[~many[elements.group[keep]]]
    plain = many & ~any_of(inputs.retract | inputs.late, inputs.starts) if nested.key else many & False
    keep = np.concatenate(
        [keep, _limited(nested, rows, plain), _row_by_row(nested, rows, np.flatnonzero(many & ~plain))]
    )
    return elements.gather(keep[np.argsort(elements.group[keep], kind="stable")], absent)


def _updated(nested: _Nested, rows: _Rows) -> Positions:
    """Return the inner rows of the result in groups that cannot meet the limit."""
    elements, stays = rows.elements, rows.copied.copy()
    if nested.key or elements.retract.any():
        among = np.flatnonzero(rows.table)
        classes = Classes.of(rows.code[among], elements.group[among])
        minus = elements.retract[among][classes.order]
        live = ~minus & (np.arange(len(minus)) > classes.spread(classes.last(minus)))
        if nested.key:
            rank = np.where(live, rows.rank[among][classes.order], -1)
            live &= rank == classes.spread(classes.best(rank))
        stays[among[classes.order[live]]] = True
    else:
        stays |= rows.table
    keep = np.flatnonzero(stays)
    return keep[np.argsort(rows.rank[keep], kind="stable")]


def _limited(nested: _Nested, rows: _Rows, groups: Mask) -> Positions:
    """Return the inner rows of the result in keyed groups that may meet the limit. REQUIRES: no late or retracting row.

    A key stays if fewer than ``limit`` keys came before it, or if it is in the row that opened the group.
    """
    elements, inputs = rows.elements, rows.elements.inputs
    opening = inputs.opened[elements.group] & (elements.row == inputs.starts[elements.group])
    copied = groups[elements.group] & rows.copied & opening
    among = np.flatnonzero(groups[elements.group] & valid(elements.values) & ~copied)
    classes = Classes.of(rows.code[among], elements.group[among])
    oldest = among[classes.order[classes.starts]]
    newest = among[classes.order[classes.starts + classes.counts - 1]]
    arrival = np.argsort(oldest)
    group = elements.group[oldest[arrival]]
    before = np.arange(len(group)) - np.searchsorted(group, group)  # keys of the group that came earlier
    stays = (before < nested.limit) | opening[oldest[arrival]]
    return np.append(np.flatnonzero(copied), newest[arrival][stays])


def _row_by_row(nested: _Nested, rows: _Rows, groups: Positions) -> Positions:
    """Return the inner rows of the result in groups that may meet the limit, by a loop over rows."""
    elements, inputs = rows.elements, rows.elements.inputs
    present, retract, late = valid(elements.column).tolist(), inputs.retract.tolist(), inputs.late.tolist()
    begins = np.searchsorted(elements.row, np.arange(len(present) + 1)).tolist()
    ends = [*inputs.starts.tolist(), len(present)]
    table = _Table(nested, rows.code.tolist(), valid(elements.values).tolist())
    keep: list[int] = []
    for group in groups.tolist():
        held: list[int] | None = None
        for row in range(ends[group], ends[group + 1]):
            new = list(range(begins[row], begins[row + 1]))
            if not present[row] or (held is None and retract[row]):
                continue
            if retract[row]:
                held = table.without(held or [], new)
            elif held is None:
                copies = late[row] or (inputs.opened[group] and row == ends[group])
                held = new if copies or not nested.key else table.put([], new)
            else:
                held = table.put(new, held) if late[row] else table.put(held, new)
        keep += held or []
    return np.array(keep, np.int64)


@dataclass(frozen=True, slots=True)
class _Table:
    """Steps of a nested update on lists of inner rows, which are positions."""

    nested: _Nested
    code: list[int]
    real: list[bool]
    """Inner rows that are not null."""

    def put(self, held: list[int], new: list[int]) -> list[int]:
        """Return ``held`` with the rows ``new``; rows of new keys, or of a table without keys, only up to the limit."""
        limit = self.nested.limit
        if self.nested.key:
            by_key = {self.code[e]: e for e in held if self.real[e]}
            for e in new:
                if self.real[e] and (self.code[e] in by_key or len(by_key) < limit):
                    by_key[self.code[e]] = e
            return list(by_key.values())
        if len(held) >= limit:
            return held
        added = itertools.islice((e for e in new if self.real[e]), limit - len(held))
        return [*(e for e in held if self.real[e]), *added]

    def without(self, held: list[int], removed: list[int]) -> list[int]:
        """Return ``held`` without rows of the keys of ``removed``."""
        codes = {self.code[e] for e in removed if self.real[e]}
        rest = [e for e in held if self.real[e] and self.code[e] not in codes]
        return list({self.code[e]: e for e in rest}.values()) if self.nested.key else rest


# ---- nested_partial_update


def nested_partial_update(field: FieldOptions) -> Aggregate:
    """Make nested_partial_update: for each nested key the last non-null value of every inner column. Associative."""
    nested = _Nested.of(field, "nested_partial_update")
    if not nested.key:
        raise InvalidInputError(
            f"column {field.name!r}: the aggregate function nested_partial_update needs a key that identifies inner "
            f"rows; set 'fields.{field.name}.nested-key' to columns of the inner rows"
        )
    return partial(_nested_partial_update, nested)


def _nested_partial_update(nested: _Nested, column: Column, inputs: AggregateInput) -> Column:
    refuse_retract(nested.field, "nested_partial_update", inputs)
    rows = _Rows.of(nested, column, inputs)
    elements = rows.elements
    among = np.flatnonzero(rows.table)
    classes = Classes.of(rows.code[among], elements.group[among])
    at, rank = among[classes.order], rows.rank[among][classes.order]
    row_of_rank = np.full(len(rows.rank), -1)
    row_of_rank[rows.rank] = np.arange(len(rows.rank))
    copied = np.flatnonzero(rows.copied)
    keep = np.append(copied, at[classes.starts])
    by_group = np.argsort(elements.group[keep], kind="stable")
    columns = []
    for inner in elements.values.flatten():
        best = classes.best(np.where(valid(inner)[at], rank, -1))
        source = np.append(copied, np.where(best >= 0, row_of_rank[best], -1))[by_group]
        columns.append(inner.take(pa.array(source, mask=source < 0)))
    keep = keep[by_group]
    null = pa.array(~valid(elements.values)[keep])
    kind = elements.values.type
    merged = pa.StructArray.from_arrays(columns, fields=[kind.field(i) for i in range(kind.num_fields)], mask=null)
    return elements.gather(keep, ~any_of(valid(column), inputs.starts), merged)
