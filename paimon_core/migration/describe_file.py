"""Detect the format of a file from its first bytes and describe the file from its footer."""

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format import DESCRIBED_FORMATS
from paimon_core.format.file_description import FileDescription

_MAGIC_BYTES = max(len(format.magic) for format in DESCRIBED_FORMATS.values())


def describe(io: FileIO, path: str, size: int, format: str | None = None) -> FileDescription:
    """Return the description of a file of another tool.

    Args:
        io: the file IO of the file's store.
        path: the path of the file.
        size: the size of the file in bytes.
        format: the format that the file must have; `None`: any of `DESCRIBED_FORMATS`.

    Raises InvalidInputError for a file of another format, NotFoundError if the file was deleted, UnsupportedError for a
    column that some engines misread, CorruptedError for a damaged file.
    """
    try:
        with io.open(path, size) as source:
            start = bytes(source.read(_MAGIC_BYTES))
            actual = next((f for f in DESCRIBED_FORMATS.values() if start.startswith(f.magic)), None)
            if actual is None or format not in (None, actual.name):
                expected = " or ".join(DESCRIBED_FORMATS) if format is None else format
                raise InvalidInputError(
                    f"{path} is not in format {expected}: it begins with {start!r}; give other files a name "
                    "that begins with '_' or '.', or keep them out of the directory"
                )
            source.seek(0)
            return actual.describe(source, path)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} was deleted while it was being added: nothing has changed; try again") from error
