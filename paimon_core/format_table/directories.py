"""The partitions and the files of a format table: both are read from its directories, as in Hive.

Names that begin with ``_`` or ``.`` are hidden: they belong to writers that have not committed, or to other tools.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, compress
from typing import Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import FileIO, FileStatus, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.format_table.settings import FormatTableSettings
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import TRUE, Predicate
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.predicate.rewrite import restrict
from paimon_core.schema.partition_spec import value_of_text
from paimon_core.store.layout import escape, is_blank, partition_text
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import AtomicType, DataField

Value = object
"""A value of a partition column, as Arrow returns it; `None`: NULL."""
_NULL_OF_HIVE: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_DAY: Final = re.compile(r"-[0-9]{1,7}")
"""The number of a day before 1970."""
_KEY_VALUE: Final = re.compile(r"([^=]+)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FormatPartition:
    """A partition of a format table. ``values``: the values of the partition columns, in their order."""

    path: str = field(repr=False)
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class FormatFile:
    """A data file of a format table. ``values``: the values of its partition."""

    path: str = field(repr=False)
    size: int
    values: tuple[Value, ...] = ()


def list_partitions(
    io: FileIO, root: str, keys: Sequence[DataField], settings: FormatTableSettings, predicate: Predicate | None = None
) -> list[FormatPartition]:
    """Return the partitions whose values satisfy the tests of a filter, in the order of their paths.

    A directory whose name is not of the form of a partition is left out. A table without partition columns has one
    partition, its root.

    Args:
        io: the storage.
        root: the directory of the table.
        keys: the partition columns; each has one level of directories.
        settings: the settings of the table.
        predicate: a bound predicate, which may also be about other columns; `None`: all partitions.

    Raises InvalidInputError for a directory that names no value of its column. Memory: the partitions of one level.
    """
    found = [FormatPartition(root)]
    for level, key in enumerate(keys):
        children = parallel_map(partial(_children, io, key, settings), found)
        found = _matching(list(chain.from_iterable(children)), keys[: level + 1], predicate)
    tests = None if predicate is None else restrict(predicate, {key.name for key in keys})
    chosen = found if tests is None else matching(found, keys, tests)
    return sorted(chosen, key=lambda partition: partition.path)


class _InPartition(Protocol):
    @property
    def values(self) -> tuple[Value, ...]: ...


Placed = TypeVar("Placed", bound=_InPartition)
"""A partition or a file, with the values of its partition."""


def matching(placed: Sequence[Placed], keys: Sequence[DataField], predicate: Predicate) -> list[Placed]:
    """Return the partitions or files for which a bound predicate on the partition columns ``keys`` is true."""
    return [item for item, truth in zip(placed, _truth(placed, keys, predicate), strict=True) if truth]


def not_matching(placed: Sequence[Placed], keys: Sequence[DataField], predicate: Predicate) -> list[Placed]:
    """Return the partitions or files that `matching` leaves out."""
    return [item for item, truth in zip(placed, _truth(placed, keys, predicate), strict=True) if not truth]


def _truth(placed: Sequence[Placed], keys: Sequence[DataField], predicate: Predicate) -> list[bool]:
    if predicate == TRUE or not placed:
        return [True] * len(placed)
    arrays = [partition_array([item.values[i] for item in placed], key) for i, key in enumerate(keys)]
    truth: list[bool] = evaluate(predicate, pa.RecordBatch.from_arrays(arrays, [key.name for key in keys])).to_pylist()
    return truth


def _children(
    io: FileIO, key: DataField, settings: FormatTableSettings, parent: FormatPartition
) -> list[FormatPartition]:
    """Return the partitions one level below a directory."""
    found = []
    for entry in io.list(parent.path):
        text = value_in_name(entry.name, key.name, settings) if entry.is_directory else None
        if text is not None:
            value = parsed_value(text, key, settings, f"the directory {entry.path}")
            found.append(FormatPartition(entry.path, (*parent.values, value)))
    return found


def value_in_name(name: str, key: str, settings: FormatTableSettings) -> str | None:
    """Return the text of the value that the name of a directory has; `None`: it is not a partition.

    ``key``: the partition column of its level.
    """
    if settings.only_values:
        return None if is_hidden(name) and name not in (settings.null_name, _NULL_OF_HIVE) else _unescaped(name)
    match = None if is_hidden(name) else _KEY_VALUE.fullmatch(name)
    return None if match is None or _unescaped(match[1]) != key else _unescaped(match[2])


def partition_name(text: str, key: str, settings: FormatTableSettings) -> str:
    """Return the name of a directory for the text of a value of the partition column ``key``."""
    return escape(text) if settings.only_values else f"{escape(key)}={escape(text)}"


def text_of_name(name: str, settings: FormatTableSettings) -> str:
    """Return the text of the value in the name of a directory of a partition."""
    return _unescaped(name if settings.only_values else name.partition("=")[2])


def parsed_value(text: str, key: DataField, settings: FormatTableSettings, where: str) -> Value:
    """Return the value of a partition column for its text in a name; ``where``: the place of the text, for errors.

    Raises InvalidInputError if the text is not a value of the column.
    """
    if text in (settings.null_name, _NULL_OF_HIVE):
        return None
    if _DAY.fullmatch(text) and isinstance(key.type, AtomicType) and key.type.root == "DATE":
        return pa.array([int(text)], pa.int32()).view(pa.date32())[0].as_py()
    return value_of_text(key.name, text, key.type, where)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _matching(
    partitions: list[FormatPartition], keys: Sequence[DataField], predicate: Predicate | None
) -> list[FormatPartition]:
    """Return the partitions whose values do not exclude every row of a predicate. ``keys``: the columns of the values.

    ``keys`` may be the first columns only.
    """
    count = len(partitions)
    if predicate is None or not count:
        return partitions
    statistics = {}
    for i, key in enumerate(keys):
        values = partition_array([partition.values[i] for partition in partitions], key)
        nulls = np.asarray(values.is_null()).astype(np.int64)
        statistics[key.name] = ColumnStats(values, values, nulls)
    mask = may_match(predicate, statistics, np.ones(count, np.int64), count)
    return list(compress(partitions, mask))


def partition_array(values: Sequence[Value], key: DataField) -> pa.Array:
    """Return values of a partition column as an Arrow array."""
    return pa.array(values, to_arrow(key.type))


def partition_directory(
    root: str, values: Sequence[Value], keys: Sequence[DataField], settings: FormatTableSettings
) -> str:
    """Return the directory of new files of a partition.

    Args:
        root: the directory of the table.
        values: the values of the first columns, or of all columns.
        keys: the partition columns.
        settings: the settings of the table.

    Raises InvalidInputError for a text that a read would not find or would take for NULL, UnsupportedError for bytes.
    """
    names = []
    for value, key in zip(values, keys, strict=False):
        text = None if value is None else partition_text(_internal(value, key), key, legacy=settings.legacy_names)
        if text in (settings.null_name, _NULL_OF_HIVE):
            raise InvalidInputError(f"{text!r} of column {key.name!r} cannot name a partition: it stands for NULL")
        if text is not None and is_blank(text):
            raise InvalidInputError(f"a blank text of column {key.name!r} cannot name a partition: use NULL")
        text = settings.null_name if text is None else text
        if settings.only_values and value is not None and is_hidden(text):
            raise InvalidInputError(
                f"{text!r} of column {key.name!r} cannot name a partition: a directory with this name is hidden"
            )
        names.append(partition_name(text, key.name, settings))
    return join(root, *names)


def _internal(value: Value, key: DataField) -> Value:
    """Return a value as the engine stores it: times as numbers."""
    array = partition_array([value], key)
    kind = array.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        array = array.view(pa.int64())
    elif pa.types.is_binary(kind):
        raise UnsupportedError(f"column {key.name!r} is {key.type}, which cannot partition a format table")
    return array[0].as_py()


def list_files(io: FileIO, partitions: Sequence[FormatPartition]) -> list[FormatFile]:
    """Return the data files of partitions, in the order of the partitions and of their paths."""
    listed = parallel_map(lambda partition: _files_of(io, partition), partitions)
    return list(chain.from_iterable(listed))


def _files_of(io: FileIO, partition: FormatPartition) -> list[FormatFile]:
    """Return the data files of a partition, also below directories that are not hidden."""
    files: list[FileStatus] = []
    waiting = [partition.path]
    while waiting:
        for entry in io.list(waiting.pop()):
            if is_hidden(entry.name):
                continue
            if entry.is_directory:
                waiting.append(entry.path)
            else:
                files.append(entry)
    files.sort(key=lambda entry: entry.path)
    return [FormatFile(entry.path, entry.size, partition.values) for entry in files]


def is_hidden(name: str) -> bool:
    """Return True if a file or directory with this name holds no rows of a table."""
    return name.startswith(("_", "."))
