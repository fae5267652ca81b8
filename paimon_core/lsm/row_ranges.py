"""Row ranges: files with columns of the same rows, in tables with ``data-evolution.enabled`` (format 11.2)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from paimon_core.errors import CorruptedError
from paimon_core.manifest.data_file import DataFileMeta

Vector = TypeVar("Vector")
RowRangeFiles = tuple[DataFileMeta, ...]
"""The files of one range of row ids: data files first, the newest before older ones; then blob files by row id."""


def is_blob(file: DataFileMeta) -> bool:
    """Return True for a blob file, which holds the values of one BLOB column for all or part of a row range."""
    return file.file_name.endswith(".blob")


def group_by_row_range(files: Iterable[DataFileMeta]) -> list[RowRangeFiles]:
    """Group files by their row ranges, in order of row ids. A file without row ids is a separate group.

    Raises CorruptedError if files share some of their rows but not all.
    """
    files = list(files)
    groups: list[RowRangeFiles] = [(f,) for f in files if f.first_row_id is None]
    current: list[DataFileMeta] = []
    end = 0
    for file in sorted((f for f in files if f.first_row_id is not None), key=_first):
        if current and _first(file) >= end:
            groups.append(_in_order(current))
            current, end = [], 0
        current.append(file)
        end = max(end, _end(file))
    return [*groups, _in_order(current)] if current else groups


def anchor(group: RowRangeFiles) -> DataFileMeta:
    """Return the data file that the deletion vector of a row range belongs to: the oldest, in ties the first by name.

    New files of columns are younger, so the vector stays valid when columns are replaced.
    """
    return min((f for f in group if not is_blob(f)), key=lambda f: (f.max_sequence_number, f.file_name))


def vector_of_range(files: RowRangeFiles, vectors: Mapping[str, Vector]) -> Vector | None:
    """Return the deletion vector of a row range, whose positions count from its first row; `None`: no row is deleted.

    Raises CorruptedError if another file than the oldest data file has a deletion vector.

    Args:
        files: the files of the row range.
        vectors: deletion vectors, or their locations, by file name.
    """
    oldest = anchor(files).file_name
    other = next((f.file_name for f in files if f.file_name in vectors and f.file_name != oldest), None)
    if other is not None:
        raise CorruptedError(
            f"file {other} has a deletion vector, but deletion vectors belong to the oldest data file of their rows, "
            f"{oldest}: it is unknown which rows are deleted"
        )
    return vectors.get(oldest)


def blobs_in_order(group: RowRangeFiles, files: Sequence[DataFileMeta]) -> RowRangeFiles:
    """Return the blob files of one column that hold the values of all rows of the group, consecutive by row id.

    A newer file hides older files that begin within its rows. Raises CorruptedError if the other files leave rows
    uncovered, or if a newer file begins within an older file.
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
    raise CorruptedError(f"the blob files do not cover the rows of {group[0].file_name} one after the other: {names}")


def overlap(left: DataFileMeta, right: DataFileMeta) -> bool:
    """Return True if the files have a row in common, whether they hold the same or different columns of it."""
    have_row_ids = left.first_row_id is not None and right.first_row_id is not None
    return have_row_ids and _first(left) < _end(right) and _first(right) < _end(left)


def _first(file: DataFileMeta) -> int:
    return file.first_row_id or 0


def _end(file: DataFileMeta) -> int:
    return _first(file) + file.row_count


def _in_order(files: Sequence[DataFileMeta]) -> RowRangeFiles:
    data = sorted((f for f in files if not is_blob(f)), key=lambda f: -f.max_sequence_number)
    if len({(f.first_row_id, f.row_count) for f in data}) != 1:
        names = ", ".join(f"{f.file_name} ({f.row_count} from {f.first_row_id})" for f in data or files)
        raise CorruptedError(f"files must hold the same rows or no common row, but these files share some: {names}")
    return (*data, *sorted(filter(is_blob, files), key=_first))
