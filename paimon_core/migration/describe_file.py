"""The format of a file by its first bytes, and its description by its footer."""

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format import DESCRIBED_FORMATS
from paimon_core.format.file_description import FileDescription

_MAGIC_BYTES = max(len(format.magic) for format in DESCRIBED_FORMATS.values())


def describe(io: FileIO, path: str, size: int, format: str | None = None) -> FileDescription:
    """Return the description of a file of another tool.

    Args:
        io: of its store.
        path: of the file.
        size: in bytes.
        format: the format that the file must have; `None`: any of `DESCRIBED_FORMATS`.

    Raises InvalidInputError for a file of another format, NotFoundError if the file is gone, UnsupportedError naming a
    column that not every engine reads right, CorruptedError for a damaged file.
    """
    try:
        with io.open(path, size) as source:
            start = bytes(source.read(_MAGIC_BYTES))
            found = next((f for f in DESCRIBED_FORMATS.values() if start.startswith(f.magic)), None)
            if found is None or format not in (None, found.name):
                wanted = " or ".join(DESCRIBED_FORMATS) if format is None else format
                raise InvalidInputError(
                    f"{path} is no {wanted} file: it begins with {start!r}; give other files a name that begins "
                    "with '_' or '.', or keep them out of the directory"
                )
            source.seek(0)
            return found.describe(source, path)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} was deleted while it was being added: nothing is changed; try again") from error
