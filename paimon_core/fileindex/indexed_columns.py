"""The indexes that the options of a table define, and a builder of the indexes of one file."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.fileindex import FILE_INDEXES
from paimon_core.fileindex.index_file import pack
from paimon_core.options.file_index import index_column, index_key, index_options, indexed
from paimon_core.types.datatype import TEXT_ROOTS, AtomicType, DataField, DataType, MapType


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """An index of a column, or of the values of one key of a map."""

    item: str  # the column, or ``map[key]``
    kind: str
    type: AtomicType  # type of the values
    options: Mapping[str, str]

    def values(self, rows: pa.Table) -> list[pa.Array]:
        """Return the values to index; null where the map or the key is missing."""
        column, key = rows.column(index_column(self.item)), index_key(self.item)
        if key is None:
            return list(column.chunks)
        return [pc.map_lookup(maps, pa.scalar(key, maps.type.key_type), "last") for maps in column.chunks]


def indexed_columns(options: Mapping[str, str], fields: Sequence[DataField]) -> tuple[IndexedColumn, ...]:
    """Return the indexes that the options name. Raises InvalidInputError for a column that cannot have its index."""
    by_name = {f.name: f.type for f in fields}
    indexes = []
    for kind, item in indexed(options):
        option = f"option 'file-index.{kind}.columns'"
        if kind not in FILE_INDEXES:
            raise InvalidInputError(f"{option} names an unknown kind of index; there are {', '.join(FILE_INDEXES)}")
        if index_column(item) not in by_name:
            raise InvalidInputError(f"{option} names column {item!r}, which is not among {', '.join(by_name)}")
        settings = index_options(options, kind, item)
        try:
            values = _indexed_type(by_name[index_column(item)], index_key(item))
            FILE_INDEXES[kind].check(values, settings)
        except ValueError as error:
            raise InvalidInputError(f"{option}: {item!r} cannot have this index: {error}") from error
        indexes.append(IndexedColumn(item, kind, values, settings))
    return tuple(indexes)


def indexed_columns_then(
    options: Mapping[str, str], now: Sequence[DataField], then: Sequence[DataField]
) -> tuple[IndexedColumn, ...]:
    """Return the indexes in the options, translated from the current columns ``now`` to a file's columns ``then``.

    The result has the column names and types of the file. An index is omitted if the file lacks its column, or if the
    type of the file's column does not support the index.
    """
    ids, by_id = {f.name: f.id for f in now}, {f.id: f for f in then}
    indexes = []
    for index in indexed_columns(options, now):
        column = index_column(index.item)
        field = by_id.get(ids[column])
        if field is None:
            continue
        with suppress(ValueError):
            values = _indexed_type(field.type, index_key(index.item))
            FILE_INDEXES[index.kind].check(values, index.options)
            indexes.append(replace(index, item=field.name + index.item[len(column) :], type=values))
    return tuple(indexes)


def _indexed_type(kind: DataType, key: str | None) -> AtomicType:
    if key is not None:
        if not isinstance(kind, MapType):
            raise ValueError(f"only a MAP has keys, but the type of the column is {kind}")
        if not (isinstance(kind.key, AtomicType) and kind.key.root in TEXT_ROOTS):
            raise ValueError(f"only keys of text can be indexed, but the type of the keys is {kind.key}")
        kind = kind.value
    if not isinstance(kind, AtomicType):
        raise ValueError(f"values of type {kind} cannot be indexed")
    return kind


class FileIndexes:
    """A builder of all indexes of one data file. Memory: at most a few bytes per row and index."""

    def __init__(self, columns: Sequence[IndexedColumn]) -> None:
        self._parts = [(c, FILE_INDEXES[c.kind].builder(c.type, c.options)) for c in columns]

    def add(self, rows: pa.Table) -> None:
        """Add the next rows of the file."""
        for column, builder in self._parts:
            for values in column.values(rows):
                builder.add(values)

    def finish(self) -> bytes:
        """Return the container, without indexes whose values cannot be indexed."""
        return pack(self.bodies())

    def bodies(self) -> dict[str, dict[str, bytes]]:
        """Return the indexes by column and kind, without indexes whose values cannot be indexed."""
        indexes: dict[str, dict[str, bytes]] = {}
        for column, builder in self._parts:
            body = builder.finish()
            if body is not None:
                indexes.setdefault(column.item, {})[column.kind] = body
        return indexes
