"""File formats: bytes in, Arrow batches out, and back.

`FORMATS` holds those whose files say what they hold, by name; a text format is made for the columns of its files.
"""

from collections.abc import Callable, Sequence
from typing import Final

from paimon_core.errors import UnsupportedError
from paimon_core.format.avro_rows import AvroFormat
from paimon_core.format.blob_records import BLOB, BlobFormat
from paimon_core.format.csv_lines import CsvFormat
from paimon_core.format.file_format import FileFormat
from paimon_core.format.json_lines import JsonFormat
from paimon_core.format.orc import OrcFormat
from paimon_core.format.parquet import ParquetFormat
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField

__all__ = ["FORMATS", "TEXT_FORMATS", "format_named", "format_of"]

FORMATS: Final[dict[str, FileFormat]] = {f.name: f for f in (ParquetFormat(), OrcFormat(), AvroFormat())}
TEXT_FORMATS: Final[dict[str, Callable[[Sequence[DataField], Options], FileFormat]]] = {
    "csv": CsvFormat.of,
    "json": JsonFormat.of,
}


_NO_OPTIONS: Final = Options({})


def format_named(name: str, columns: Sequence[DataField], options: Options) -> FileFormat:
    """The format of this known name for files that hold ``columns``, of a table with these options."""
    if name == BLOB:
        return BlobFormat.of(columns, options)
    return FORMATS[name] if name in FORMATS else TEXT_FORMATS[name](columns, options)


def format_of(file_name: str, columns: Sequence[DataField] = (), options: Options = _NO_OPTIONS) -> FileFormat:
    """The format of a data file that holds ``columns``, by its last extension; before that of a compression for text.

    Raises UnsupportedError naming file and format for one this engine does not read.
    """
    parts = file_name.rsplit("/", 1)[-1].lower().split(".")[1:]
    kind = next((p for p in reversed(parts) if p in _TEXTS), parts[-1] if parts else "")
    if kind in FORMATS or kind in TEXT_FORMATS or kind == BLOB:
        return format_named(kind, columns, options)
    named = f"format {kind!r}" if kind else "no extension"
    known = ", ".join((*FORMATS, *TEXT_FORMATS, BLOB))
    raise UnsupportedError(f"data file {file_name} has {named}; this engine reads {known}")


_TEXTS = (*TEXT_FORMATS, "text")
