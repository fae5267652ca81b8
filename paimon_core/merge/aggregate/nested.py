"""The aggregate functions nested_update and nested_partial_update: arrays of rows as small tables.

Both copy the first array, null rows and repeated keys included; the next array makes it a table. Rows of a table with a
key have no defined order. With an option of Java's releases after 1.4.2, ``nested-sequence-field`` or
``nested-key-null-strategy``, the first array of a key with several rows is made a table, too, as those releases do.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.elements import Classes, Elements, codes
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, refuse_retract, valid
from paimon_core.merge.normalized_keys import Column, nullable_key_words
from paimon_core.merge.segments import any_of, first
from paimon_core.types.datatype import ArrayType, RowType
from paimon_core.types.selection import Mask, Positions

_NULL_STRATEGIES = ("merge", "ignore", "error")


@dataclass(frozen=True, slots=True)
class _Nested:
    """The options of a column; inner columns are identified by their index in the inner rows."""

    field: FieldOptions
    key: tuple[int, ...]
    limit: int
    sequence: tuple[int, ...] = ()
    """The columns that decide which row of a key is the newest; for equal values, the order of arrival decides."""
    null_strategy: str | None = None
    """The treatment of inner rows with NULL in their key; `None`: not set, so they are ordinary rows."""

    @property
    def always_table(self) -> bool:
        """True if the first array of several is made a table as well."""
        return bool(self.sequence) or self.null_strategy is not None

    @staticmethod
    def of(field: FieldOptions, function: str) -> "_Nested":
        """Return the options of a column.

        Raises InvalidInputError if the type is not an array of rows, if an option names an unknown inner column, and
        for an option that needs a nested key.
        """
        row = field.type.element if isinstance(field.type, ArrayType) else None
        field.check_type(function, isinstance(row, RowType), "ARRAY of ROW")
        assert isinstance(row, RowType)
        names = [f.name for f in row.fields]
        key = _indexes(field, names, "nested-key", field.nested_key)
        sequence = _indexes(field, names, "nested-sequence-field", field.nested_sequence)
        if sequence and function != "nested_update":
            raise InvalidInputError(
                f"'fields.{field.name}.nested-sequence-field' is an option of the aggregate function nested_update, "
                f"not of {function}: leave it out"
            )
        strategy = field.text("nested-key-null-strategy", "").strip().lower() or None
        if strategy is not None and strategy not in _NULL_STRATEGIES:
            raise InvalidInputError(
                f"'fields.{field.name}.nested-key-null-strategy' is {strategy!r}: it must be one of "
                f"{', '.join(_NULL_STRATEGIES)}"
            )
        for option, given in (("nested-sequence-field", sequence), ("nested-key-null-strategy", strategy)):
            if given and not key:
                raise InvalidInputError(f"'fields.{field.name}.{option}' needs 'fields.{field.name}.nested-key'")
        return _Nested(field, key, field.count_limit, sequence, strategy)

    def usable(self, values: Column, in_use: Mask) -> Mask:
        """Return a mask of the inner rows that may be part of a table; others are null or to be ignored.

        Raises InvalidInputError for a NULL in the key of a row ``in_use``, if the option asks for it.
        """
        usable = valid(values)
        if self.null_strategy not in ("ignore", "error"):
            return usable
        columns = values.flatten()
        keyed: Mask = np.logical_and.reduce([valid(columns[i]) for i in self.key])
        if self.null_strategy == "error" and (usable & in_use & ~keyed).any():
            raise InvalidInputError(
                f"column {self.field.name!r} has an inner row with NULL in its key: "
                f"'fields.{self.field.name}.nested-key-null-strategy' is 'error'; set it to 'ignore' or 'merge', or "
                "write rows with a key"
            )
        keyed &= usable
        return keyed

    def newest(self, values: Column, arrival: Positions) -> Positions:
        """Return the rank of each inner row by the sequence columns, NULL first, then by its rank of ``arrival``."""
        if not self.sequence or not len(arrival):
            return arrival
        columns = values.flatten()
        words = [
            word(None)
            for i in self.sequence
            for word in nullable_key_words(columns[i], f"{self.field.name}.{values.type.field(i).name}")
        ]
        rank = np.empty(len(arrival), np.int64)
        rank[np.lexsort((arrival, *reversed(words)))] = np.arange(len(arrival))
        return rank


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

    ``rank``: the rank of each inner row in the final order, from :meth:`Elements.final_rank`. ``newest``: the rank
    that chooses among the rows of a key. ``usable``: the mask of rows that may be part of a table.
    """

    elements: Elements
    code: Positions
    table: Mask
    copied: Mask
    rank: Positions
    newest: Positions
    usable: Mask

    @staticmethod
    def of(nested: _Nested, column: Column, inputs: AggregateInput) -> "_Rows":
        elements = Elements.of(column, inputs)
        values, row, group = elements.values, elements.row, elements.group
        present, opening = valid(column), first(valid(column) & ~inputs.retract, inputs.starts)
        later = present & (np.arange(len(column)) > opening[inputs.group()]) & (opening[inputs.group()] >= 0)
        touched = any_of(later, inputs.starts)
        if nested.always_table:
            as_it_is = (inputs.opened & (opening == inputs.starts)) | inputs.late[opening]
            touched |= (inputs.sizes > 1) & ~as_it_is
        in_use = (row >= opening[group]) & (opening[group] >= 0)
        usable = nested.usable(values, in_use & touched[group])
        table = touched[group] & in_use & usable
        columns = values.flatten()
        keys = [columns[i] for i in nested.key or range(len(columns))]
        named = pa.StructArray.from_arrays(keys, [str(i) for i in range(len(keys))])
        code = codes(named, one_zero=not nested.key)  # keys are compared by bits
        rank = elements.final_rank()
        copied = ~touched[group] & (row == opening[group])
        return _Rows(elements, code, table, copied, rank, nested.newest(values, rank), usable)


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
    if nested.always_table:
        many &= inputs.sizes > 1
    if nested.sequence:  # a retract chooses among rows of one key in a copied array by their order
        many |= inputs.opened & any_of(inputs.retract, inputs.starts)
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
            rank = np.where(live, rows.newest[among][classes.order], -1)
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
    among = np.flatnonzero(groups[elements.group] & rows.usable & ~copied)
    classes = Classes.of(rows.code[among], elements.group[among])
    oldest = among[classes.order[classes.starts]]
    rank = rows.newest[among][classes.order]
    newest = among[classes.order[np.flatnonzero(rank == classes.spread(classes.best(rank)))]]
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
    table = _Table(nested, rows.code.tolist(), rows.usable.tolist(), rows.newest.tolist())
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
    """Inner rows that may be part of a table."""
    newest: list[int]
    """The ranks that choose among the rows of a key, if a column does."""

    def put(self, held: list[int], new: list[int]) -> list[int]:
        """Return ``held`` with the rows ``new``; rows of new keys, or of a table without keys, only up to the limit."""
        limit = self.nested.limit
        if self.nested.key:
            by_key: dict[int, int] = {}
            for e, most in itertools.chain(zip(held, itertools.repeat(len(held))), zip(new, itertools.repeat(limit))):
                old = by_key.get(self.code[e])
                if self.real[e] and (len(by_key) < most if old is None else self._follows(e, old)):
                    by_key[self.code[e]] = e
            return list(by_key.values())
        if len(held) >= limit:
            return held
        added = itertools.islice((e for e in new if self.real[e]), limit - len(held))
        return [*(e for e in held if self.real[e]), *added]

    def _follows(self, new: int, old: int) -> bool:
        """Return True if a row replaces another one of its key that came earlier."""
        return not self.nested.sequence or self.newest[new] > self.newest[old]

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
