"""The format of a file by its first bytes, and its description by its footer."""

from collections.abc import Callable
from typing import Any, Final

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format.avro_description import describe_avro
from paimon_core.format.file_description import FileDescription
from paimon_core.format.orc_description import describe_orc
from paimon_core.format.parquet_description import describe_parquet

_DESCRIBE: Final[dict[str, Callable[[Any, str], FileDescription]]] = {
    "parquet": describe_parquet,
    "orc": describe_orc,
    "avro": describe_avro,
}
_MAGIC: Final = {b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro"}
FORMATS: Final = tuple(_DESCRIBE)


def describe(io: FileIO, path: str, size: int, format: str | None = None) -> FileDescription:
    """Return the description of a file of another tool.

    Args:
        io: of its store.
        path: of the file.
        size: in bytes.
        format: the format that the file must have; `None`: any of `FORMATS`.

    Raises InvalidInputError for a file of another format, NotFoundError if the file is gone, UnsupportedError naming a
    column that not every engine reads right, CorruptedError for a damaged file.
    """
    try:
        with io.open(path, size) as source:
            start = bytes(source.read(4))
            found = next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)
            if found is None or (format is not None and found != format):
                wanted = " or ".join(FORMATS) if format is None else format
                raise InvalidInputError(
                    f"{path} is no {wanted} file: it begins with {start!r}; give other files a name that begins "
                    "with '_' or '.', or keep them out of the directory"
                )
            source.seek(0)
            return _DESCRIBE[found](source, path)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} was deleted while it was being added: nothing is changed; try again") from error
