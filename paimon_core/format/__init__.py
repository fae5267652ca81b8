"""File formats: bytes in, Arrow batches out, and back. `FORMATS` is the registry by name."""

from paimon_core.errors import UnsupportedError
from paimon_core.format.avro_rows import AvroFormat
from paimon_core.format.file_format import FileFormat
from paimon_core.format.orc import OrcFormat
from paimon_core.format.parquet import ParquetFormat

__all__ = ["FORMATS", "format_of"]

FORMATS: dict[str, FileFormat] = {f.name: f for f in (ParquetFormat(), OrcFormat(), AvroFormat())}


def format_of(file_name: str) -> FileFormat:
    """The format of a data file, by its last extension; the table's options do not matter.

    Raises UnsupportedError naming file and format for one this engine does not read (``.csv.gz`` counts as csv).
    """
    parts = file_name.rsplit("/", 1)[-1].lower().split(".")[1:]
    found = FORMATS.get(parts[-1]) if parts else None
    if found is None:
        kind = next((p for p in reversed(parts) if p in _TEXT_FORMATS), parts[-1] if parts else "")
        named = f"format {kind!r}" if kind else "no extension"
        raise UnsupportedError(f"data file {file_name} has {named}; this engine reads {', '.join(FORMATS)}")
    return found


_TEXT_FORMATS = ("csv", "json", "text")
