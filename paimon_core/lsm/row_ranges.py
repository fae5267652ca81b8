"""Files with columns of the same rows, in tables with ``data-evolution.enabled`` (format 11.2). Pure functions."""

from collections.abc import Iterable, Sequence

from paimon_core.errors import CorruptedError
from paimon_core.manifest.data_file import DataFileMeta

__all__ = ["RowRangeFiles", "blobs_in_order", "group_by_row_range", "is_blob", "overlap"]

RowRangeFiles = tuple[DataFileMeta, ...]
"""Files of one range of row ids: those with values of any columns first, the newest before; then blobs by row id."""


def is_blob(file: DataFileMeta) -> bool:
    """Whether the file holds the values of one BLOB column only; several of them may follow one another in a range."""
    return file.file_name.endswith(".blob")


def group_by_row_range(files: Iterable[DataFileMeta]) -> list[RowRangeFiles]:
    """The files by the rows they hold, in order of row ids; one without ids holds rows of its own.

    Raises CorruptedError where files share some of their rows but not all.
    """
    files = list(files)
    groups: list[RowRangeFiles] = [(f,) for f in files if f.first_row_id is None]
    current: list[DataFileMeta] = []
    end = 0
    for file in sorted((f for f in files if f.first_row_id is not None), key=_first):
        if current and _first(file) >= end:
            groups.append(_arranged(current))
            current, end = [], 0
        current.append(file)
        end = max(end, _end(file))
    return [*groups, _arranged(current)] if current else groups


def blobs_in_order(group: RowRangeFiles, files: Sequence[DataFileMeta]) -> RowRangeFiles:
    """Of files with blobs of one column those that hold them for all rows of the group, one after another.

    A newer file comes instead of older ones that begin within it. Raises CorruptedError where that leaves a gap, or a
    newer file begins within an older one.
    """
    end, chosen = _first(group[0]), list[DataFileMeta]()
    for file in sorted(files, key=lambda f: (_first(f), -f.max_sequence_number)):
        if _first(file) == end:
            chosen.append(file)
            end += file.row_count
        elif _first(file) > end or not chosen or file.max_sequence_number >= chosen[-1].max_sequence_number:
            break
    else:
        if end == _end(group[0]):
            return tuple(chosen)
    names = ", ".join(f"{f.file_name} ({f.row_count} from {f.first_row_id})" for f in files)
    raise CorruptedError(f"files of blobs do not follow one another in the rows of {group[0].file_name}: {names}")


def overlap(one: DataFileMeta, other: DataFileMeta) -> bool:
    """Whether the files hold some of the same rows, or columns of them."""
    known = one.first_row_id is not None and other.first_row_id is not None
    return known and _first(one) < _end(other) and _first(other) < _end(one)


def _first(file: DataFileMeta) -> int:
    return file.first_row_id or 0


def _end(file: DataFileMeta) -> int:
    return _first(file) + file.row_count


def _arranged(files: Sequence[DataFileMeta]) -> RowRangeFiles:
    data = sorted((f for f in files if not is_blob(f)), key=lambda f: -f.max_sequence_number)
    if len({(f.first_row_id, f.row_count) for f in data}) != 1:
        names = ", ".join(f"{f.file_name} ({f.row_count} from {f.first_row_id})" for f in data or files)
        raise CorruptedError(f"files must hold the same rows or none in common, but these share some: {names}")
    return (*data, *sorted(filter(is_blob, files), key=_first))
