"""Merge engines record by record, in plain Python: the reference the column-wise folds are compared with.

A row is (kind, dict of values); rows of one key come oldest first. A result is (kind, values) or None.
"""

import math

ADDS, DELETE = ("+I", "+U"), "-D"


class Refused(Exception):
    """The engine cannot take this row."""


class Agg:
    """One aggregate of one key; ``seen`` is what first values remember."""

    def __init__(self, name, *, ignore_retract=False, delimiter=",", distinct=False):
        self.name, self.ignore, self.delimiter, self.distinct, self.seen = (
            name,
            ignore_retract,
            delimiter,
            distinct,
            False,
        )

    def agg(self, acc, new):
        if self.name in ("last_value", "primary-key"):
            return new
        if self.name == "last_non_null_value":
            return acc if new is None else new
        if self.name in ("first_value", "first_non_null_value"):
            if self.seen or (self.name == "first_non_null_value" and new is None):
                return acc
            self.seen = True
            return new
        if self.name == "listagg":
            return self._listagg(acc, new)
        if acc is None or new is None:
            return new if acc is None else acc
        return {
            "sum": lambda: acc + new,
            "product": lambda: acc * new,
            "max": lambda: max(acc, new, key=rank),
            "min": lambda: min(acc, new, key=rank),
            "bool_and": lambda: acc and new,
            "bool_or": lambda: acc or new,
        }[self.name]()

    def _listagg(self, acc, new):
        if not new or not acc:
            return new if acc is None or (new and not acc) else acc
        if not self.distinct:
            return acc + self.delimiter + new
        tokens = acc.split(self.delimiter)
        for token in new.split(self.delimiter):
            if token and token not in tokens:
                tokens.append(token)
                acc += self.delimiter + token
        return acc

    def late(self, acc, new):
        return self.agg(new, acc)

    def retract(self, acc, gone):
        if self.ignore:
            return acc
        if self.name == "last_value":
            return None
        if self.name == "last_non_null_value":
            return acc if gone is None else None
        if self.name == "primary-key":
            return gone
        if self.name == "sum":
            return acc if gone is None else -gone if acc is None else acc - gone
        if self.name == "product":
            if acc is None or gone is None:
                return acc
            return abs(acc) // abs(gone) * (1 if (acc < 0) == (gone < 0) else -1)
        raise Refused(self.name)


def rank(value):
    """Order of values: NaN largest, -0.0 below 0.0, text by bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return value.encode() if isinstance(value, str) else value


def deduplicate(rows, ignore_delete=False):
    if len(rows) == 1:
        return rows[0]
    kept = [row for row in rows if row[0] in ADDS or not ignore_delete]
    return kept[-1] if kept else None


def first_row(rows, ignore_delete=False):
    if not ignore_delete and any(kind not in ADDS for kind, _ in rows):
        raise Refused("first-row")
    kept = [row for row in rows if row[0] in ADDS]
    return kept[0] if kept else None


def after_removal(rows):
    """The rows after the last -D; if none of them adds, the -D alone."""
    removal = max((i for i, (kind, _) in enumerate(rows) if kind == DELETE), default=-1)
    rest = rows[removal + 1 :]
    return rest if removal < 0 or any(kind in ADDS for kind, _ in rest) else [rows[removal]]


def aggregation(rows, functions, remove_on_delete=False):
    """``functions``: column to a function that makes its Agg."""
    rows = after_removal(rows) if remove_on_delete else rows
    if len(rows) == 1:
        return rows[0]
    aggs = {name: make() for name, make in functions.items()}
    held = dict.fromkeys(aggs)
    for kind, row in rows:
        for name, agg in aggs.items():
            held[name] = (agg.agg if kind in ADDS else agg.retract)(held[name], row[name])
    return "+I", held


def partial_update(
    rows, columns, groups=(), functions=None, *, ignore_delete=False, remove_on_delete=False, removing=()
):
    """``groups``: (ordering columns, protected columns); ``functions`` as for aggregation, of protected columns."""
    if len(rows) == 1:
        return rows[0]
    if ignore_delete or remove_on_delete:
        rows = after_removal(rows) if remove_on_delete else rows
        adds = [row for row in rows if row[0] in ADDS]
        if not adds:
            return rows[-1]
        rows = adds
    aggs = {name: make() for name, make in (functions or {}).items()}
    group_of = {name: group for group in groups for name in (*group[0], *group[1])}
    held, filled, added, deleted = dict.fromkeys(columns), False, False, False

    def order(values, group):
        return [(values[n] is not None, rank(values[n]) if values[n] is not None else 0) for n in group[0]]

    for kind, row in rows:
        deleted = False
        if kind not in ADDS:
            if not filled:
                held, filled = dict(row), True
            if not groups:
                raise Refused("partial-update")
        else:
            filled = added = True
        for name in columns:
            group = group_of.get(name)
            if group is None:
                held[name] = row[name] if kind in ADDS and row[name] is not None else held[name]
                continue
            if all(row[n] is None for n in group[0]):
                continue
            newer = order(row, group) >= order(held, group)
            if name in group[0]:
                if newer:
                    if kind == DELETE and set(group[0]) & set(removing):
                        held, deleted = dict(row), True
                        break
                    held.update({n: row[n] for n in group[0]})
            elif kind not in ADDS:
                if name in aggs:
                    held[name] = aggs[name].retract(held[name], row[name])
                elif newer:
                    held[name] = None
            elif name in aggs:
                held[name] = (aggs[name].agg if newer else aggs[name].late)(held[name], row[name])
            elif newer:
                held[name] = row[name]
    return DELETE if deleted or not added else "+I", held
