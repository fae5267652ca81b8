"""Metadata files in ORC and Parquet, as tables with the option ``manifest.format`` have them up to Paimon 2.0."""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyarrow import orc, parquet

from paimon_core.format.corruption import as_corrupted

_READERS: Final[dict[bytes, Callable[[Any], pa.Table]]] = {
    b"PAR1": parquet.read_table,
    b"ORC": lambda source: orc.ORCFile(source).read(),
}


def read_columnar_records(data: bytes, path: str) -> list[dict[str, Any]] | None:
    """Every record of the file, shaped as those of Avro files are; None where it is neither ORC nor Parquet.

    Raises CorruptedError, naming ``path``, for a file that begins like one of these and cannot be read.
    """
    read = next((r for magic, r in _READERS.items() if data.startswith(magic)), None)
    if read is None:
        return None
    with as_corrupted(path):
        found = read(pa.BufferReader(data))
        plain = [_plain(column.combine_chunks()) for column in found.columns]
        records: list[dict[str, Any]] = pa.Table.from_arrays(plain, found.column_names).to_pylist()
    return records


def _plain(array: Any) -> Any:
    """Moments as the milliseconds that Avro files have for them."""
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("ms")).cast(pa.int64())
    if pa.types.is_struct(array.type) and array.type.num_fields:
        fields = [field.name for field in array.type]
        return pa.StructArray.from_arrays(list(map(_plain, array.flatten())), fields, mask=array.is_null())
    return array
