"""The stored columns of a Parquet file that a read decodes."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_core.types.datatype import DataField, DataType, PartialVariant, RowType
from paimon_core.variant.partial import parts_to_decode


def schema_of(metadata: Any) -> Any:
    """Return the `pyarrow.parquet.ParquetSchema` of a footer.

    The footer's own property ``schema`` keeps one that refers to the footer. This cycle lives until the garbage
    collector runs, which does not see the megabytes of a footer of thousands of columns.
    """
    return pq.ParquetSchema(metadata)


def paths_to_decode(stored: pa.Schema, fields: Sequence[DataField]) -> list[str]:
    """Return the paths of the columns to decode for these fields, which may be parts of stored structs and variants.

    Args:
        stored: the columns of the file. Fields that the file lacks have no path.
        fields: the columns to read.
    """
    names = set(stored.names)
    types = {f.name: f.type for f in fields if f.name in names}
    return [path for name, kind in types.items() for path in _paths(name, stored.field(name).type, kind)]


def _paths(path: str, stored: pa.DataType, wanted: DataType) -> list[str]:
    """Return the paths of a column's parts to decode: some, if only some fields of a struct or a variant are wanted.

    A variant is a struct in the file, but it needs all its parts, unless only some of its paths are wanted.
    """
    if isinstance(wanted, PartialVariant) and pa.types.is_struct(stored):
        needed = parts_to_decode(stored, wanted.paths)
        return [path] if needed is None else [".".join((path, *part)) for part in needed]
    if not (pa.types.is_struct(stored) and isinstance(wanted, RowType)):
        return [path]
    found = [field for field in wanted.fields if stored.get_field_index(field.name) >= 0]
    whole = [f"{path}.{field.name}" for field in found]
    parts = zip(whole, found, strict=True)
    inner = [part for name, f in parts for part in _paths(name, stored.field(f.name).type, f.type)]
    return [path] if not inner or (inner == whole and len(whole) == stored.num_fields) else inner
