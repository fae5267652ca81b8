"""Files that hold columns of the same rows, as tables with ``data-evolution.enabled`` have them. Pure functions."""

from collections.abc import Iterable, Sequence

from paimon_core.errors import CorruptedError
from paimon_core.manifest.data_file import DataFileMeta

__all__ = ["Slices", "is_blob", "row_groups"]

Slices = tuple[DataFileMeta, ...]
"""Files of one range of row ids: those with values of any columns first, the newest before; then blobs by row id."""


def is_blob(file: DataFileMeta) -> bool:
    """Whether the file holds the values of one BLOB column only; several of them may follow one another in a range."""
    return file.file_name.endswith(".blob")


def row_groups(files: Iterable[DataFileMeta]) -> list[Slices]:
    """The files by the rows they hold, in order of row ids; one without ids holds rows of its own.

    Raises CorruptedError where files share some of their rows but not all.
    """
    files = list(files)
    groups: list[Slices] = [(f,) for f in files if f.first_row_id is None]
    current: list[DataFileMeta] = []
    end = 0
    for file in sorted((f for f in files if f.first_row_id is not None), key=_first):
        if current and _first(file) >= end:
            groups.append(_arranged(current))
            current, end = [], 0
        current.append(file)
        end = max(end, _first(file) + file.row_count)
    return [*groups, _arranged(current)] if current else groups


def _first(file: DataFileMeta) -> int:
    return file.first_row_id or 0


def _arranged(files: Sequence[DataFileMeta]) -> Slices:
    data = sorted((f for f in files if not is_blob(f)), key=lambda f: -f.max_sequence_number)
    if len({(f.first_row_id, f.row_count) for f in data}) != 1:
        names = ", ".join(f"{f.file_name} ({f.row_count} from {f.first_row_id})" for f in data or files)
        raise CorruptedError(f"files must hold the same rows or none in common, but these share some: {names}")
    return (*data, *sorted(filter(is_blob, files), key=_first))
