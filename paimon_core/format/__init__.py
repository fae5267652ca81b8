"""File formats: bytes in, Arrow batches out, and back.

`FORMATS` maps names to the formats whose files describe their own columns. A text format is instantiated with the
columns of its files. Every other list of formats derives from these two.
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
from paimon_core.options.file import BLOB_AS_DESCRIPTOR
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField

__all__ = [
    "DESCRIBED_FORMATS",
    "FORMATS",
    "TEXT_FORMATS",
    "WRITABLE_FORMATS",
    "check_options",
    "codec_fault",
    "first_not_held",
    "format_named",
    "format_of",
]

FORMATS: Final[dict[str, FileFormat]] = {f.name: f for f in (ParquetFormat(), OrcFormat(), AvroFormat())}
TEXT_FORMATS: Final[dict[str, type[CsvFormat] | type[JsonFormat]]] = {f.name: f for f in (CsvFormat, JsonFormat)}
WRITABLE_FORMATS: Final = tuple(f.name for f in (*FORMATS.values(), *TEXT_FORMATS.values()) if f.writable)
"""The names of the formats that the option ``file.format`` may have."""
DESCRIBED_FORMATS: Final = {name: f for name, f in FORMATS.items() if f.magic}
"""The formats in which files of other tools can be added to tables. Their first bytes identify them."""
_TEXTS: Final = (*TEXT_FORMATS, "text")
_NO_OPTIONS: Final = Options({})


def format_named(name: str, columns: Sequence[DataField], options: Options) -> FileFormat:
    """Return the format with this name, for files with ``columns`` in a table with ``options``.

    REQUIRES: the name is a key of `FORMATS` or `TEXT_FORMATS`, or `BLOB`.
    """
    if name == BLOB:
        return BlobFormat(tuple(columns), options.value(BLOB_AS_DESCRIPTOR))
    return FORMATS[name] if name in FORMATS else TEXT_FORMATS[name].of(columns, options)


def format_of(file_name: str, columns: Sequence[DataField] = (), options: Options = _NO_OPTIONS) -> FileFormat:
    """Return the format of a data file by its last extension, ignoring a text file's compression extension.

    Args:
        file_name: the name of the file, with or without directories.
        columns: the columns that the file holds.
        options: the options of the table.

    Raises UnsupportedError naming file and format if this engine does not read the format.
    """
    parts = file_name.rsplit("/", 1)[-1].lower().split(".")[1:]
    name = next((p for p in reversed(parts) if p in _TEXTS), parts[-1] if parts else "")
    if name in FORMATS or name in TEXT_FORMATS or name == BLOB:
        return format_named(name, columns, options)
    subject = f"format {name!r}" if name else "no extension"
    names = ", ".join((*FORMATS, *TEXT_FORMATS, BLOB))
    raise UnsupportedError(f"data file {file_name} has {subject}; this engine reads {names}")


def codec_fault(name: str, key: str, codec: str, options: Options) -> tuple[str, str] | None:
    """Return the option and its codec that files of a format cannot have; `None`: they can have the codec.

    Args:
        name: a name in `WRITABLE_FORMATS`.
        key: the option that names the codec for files of any format.
        codec: the codec that it names.
        options: the options of the table. The format's own option takes precedence.
    """
    found = _class_of(name)
    if found.codec_option in options:
        key, codec = found.codec_option, options[found.codec_option]
    try:
        found.codec(codec)
    except UnsupportedError:
        return key, codec
    return None


def check_options(name: str, options: Options) -> None:
    """Raise InvalidInputError for a value with which files cannot be written, in an option of a format.

    REQUIRES: ``name`` is in `WRITABLE_FORMATS`.
    """
    _class_of(name).check_options(options)


def first_not_held(name: str, columns: Sequence[DataField]) -> DataField | None:
    """Return the first column that files of a format cannot hold; `None`: they can hold all columns.

    REQUIRES: ``name`` is in `WRITABLE_FORMATS`.
    """
    check = _class_of(name).check_column
    if check is FileFormat.check_column:  # of the formats that hold all columns
        return None
    return next((column for column in columns if not _holds(check, column)), None)


def _holds(check: Callable[[DataField], None], column: DataField) -> bool:
    try:
        check(column)
    except UnsupportedError:
        return False
    return True


def _class_of(name: str) -> FileFormat | type[CsvFormat] | type[JsonFormat]:
    return FORMATS[name] if name in FORMATS else TEXT_FORMATS[name]
