"""Metadata files in ORC and Parquet, which Paimon before 2.0 writes with the option ``manifest.format``."""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from paimon_core.format.corruption import as_corrupted
from paimon_core.format.orc_tail import open_orc

_READERS: Final[dict[bytes, Callable[[Any], pa.Table]]] = {
    b"PAR1": parquet.read_table,
    b"ORC": lambda source: open_orc(source).read(),
}


def read_columnar_records(data: bytes, path: str) -> list[dict[str, Any]] | None:
    """Return the records of the file, in the form of Avro records. `None`: the file is neither ORC nor Parquet.

    Raises CorruptedError naming ``path`` if the file begins as ORC or Parquet but cannot be read.
    """
    read = next((r for magic, r in _READERS.items() if data.startswith(magic)), None)
    if read is None:
        return None
    with as_corrupted(path):
        table = read(pa.BufferReader(data))
        columns = [_without_timestamps(column.combine_chunks()) for column in table.columns]
        records: list[dict[str, Any]] = pa.Table.from_arrays(columns, table.column_names).to_pylist()
    return records


def _without_timestamps(array: Any) -> Any:
    """Return the array with timestamps as milliseconds, as in Avro files, at any depth of structs."""
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("ms")).cast(pa.int64())
    if pa.types.is_struct(array.type) and array.type.num_fields:
        fields = [field.name for field in array.type]
        return pa.StructArray.from_arrays(list(map(_without_timestamps, array.flatten())), fields, mask=array.is_null())
    return array
