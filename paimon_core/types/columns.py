"""Columns by name: the exact name first, else the name with case folded."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, count

from paimon_core.errors import InvalidInputError, listed_names
from paimon_core.types.datatype import DataField


def repeated_names(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


class ColumnNames:
    """An index of column names; a lookup costs one or two dictionary accesses."""

    def __init__(self, names: Iterable[str]) -> None:
        self._exact: dict[str, int] = {}
        self._folded: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            self._exact.setdefault(name, position)
            self._folded.setdefault(name.lower(), []).append(position)

    def positions(self, name: str) -> list[int]:
        """Return the position of `name`, or else the positions of all names that differ from `name` in case only."""
        return [self._exact[name]] if name in self._exact else self._folded.get(name.lower(), [])


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return `name`, if necessary with the smallest number that makes it differ from each taken name, ignoring case."""
    lower = {other.lower() for other in taken}
    choices = chain([name], (f"{name}_{number}" for number in count(1)))
    return next(choice for choice in choices if choice.lower() not in lower)


def free_prefix(prefix: str, taken: Iterable[str]) -> str:
    """Return `prefix`, if necessary with a number and "_", so that no taken name begins with it, ignoring case.

    So every name with the returned prefix is free.
    """
    lower = [other.lower() for other in taken]
    choices = chain([prefix], (f"{prefix}{number}_" for number in count(1)))
    return next(choice for choice in choices if not any(other.startswith(choice.lower()) for other in lower))


def matching_positions(wanted: Iterable[str], given: Sequence[str]) -> list[list[int]]:
    """Return for each name in `wanted` the positions in `given` that it may mean.

    A name equal to one of ``wanted`` matches only this name; other names match if they differ only in case. Two
    wanted names may share a position: then it is ambiguous, as is a name with two positions.
    """
    names = list(wanted)
    exact, index = set(names).intersection(given), ColumnNames(given)
    return [[i for i in index.positions(name) if given[i] == name or given[i] not in exact] for name in names]


def find_column(fields: Sequence[DataField], name: str, where: str) -> DataField:
    """Return the field called `name`, as `Columns.find`; cost: all names, so several are found by one `Columns`."""
    return Columns(fields, where).find(name)


class Columns:
    """An index of fields by name. ``where``: what has them, for messages."""

    def __init__(self, fields: Sequence[DataField], where: str) -> None:
        self._fields, self._where = fields, where
        self._names = ColumnNames(field.name for field in fields)

    def find(self, name: str) -> DataField:
        """Return the field called `name`, or else the only field whose name differs from `name` in case only.

        Raises InvalidInputError, which names `where` and lists the columns, if no field or several fields match.
        """
        found = self._names.positions(name)
        if len(found) == 1:
            return self._fields[found[0]]
        why = "matches several columns, which differ in case only," if found else "does not exist"
        names = listed_names(name, (f.name for f in self._fields))
        raise InvalidInputError(f"column {name!r} {why} in {self._where}; it has {names}")
