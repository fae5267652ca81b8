"""Splits to tasks of an engine that pays for every task it starts. Pure functions on metadata."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from paimon_core.fileio.paths import scheme_of
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.option import Options
from paimon_core.options.scan import SOURCE_SPLIT_OPEN_FILE_COST
from paimon_core.scan.split import DataSplit, part_size
from paimon_core.scan.split_plan import LEAST_PART, Packing, cut_file, pack

T = TypeVar("T")

_OPEN_COST = 256 << 10  # what a task decodes in the time that a small file of this machine takes
_FETCH_COST = 1 << 20  # a file of another store is waited for
_LEAST_SHARE = 8  # no task is made smaller than this part of the target size for the sake of having more tasks


def packing_of_tasks(options: Options, root: str) -> Packing:
    """Return the sizes that the options of a table, at ``root``, give for packing tasks.

    Where ``source.split.open-file-cost`` is not given, a file counts as 256 KiB at least, of a store that is not a
    local file system 1 MiB: opening one costs a task of a Python engine far less than starting the next task does.
    """
    packing = Packing.of(options)
    if options.has(SOURCE_SPLIT_OPEN_FILE_COST):
        return packing
    return Packing(packing.target_size, _OPEN_COST if scheme_of(root) == "file" else _FETCH_COST)


def plan_tasks(splits: Sequence[DataSplit], packing: Packing, least: int = 1) -> list[tuple[DataSplit, ...]]:
    """Pack splits, in their order, into tasks that read the same rows in the same order.

    A task takes ``packing.target_size`` bytes, of which a file counts ``packing.open_cost`` at least. Where that makes
    fewer than ``least`` tasks, tasks are made smaller, down to an eighth of the target size. A raw split is divided
    between tasks file by file, a file larger than a task by its row groups; a split that must be merged stays whole.
    """
    bound = _task_size((_weight(split.files, split.part, packing) for split in splits), packing, least)
    pieces = (piece for split in splits for piece in _pieces(split, max(bound, LEAST_PART)))
    packed = pack(list(pieces), lambda piece: _weight(*piece[1:], packing), Packing(bound, packing.open_cost))
    return [tuple(_joined(task)) for task in packed]


def pack_tasks(items: Sequence[T], weigh: Callable[[T], int], packing: Packing, least: int = 1) -> list[tuple[T, ...]]:
    """Pack what cannot be divided into tasks as :func:`plan_tasks` does; ``weigh`` gives bytes, see :func:`weight`."""
    bound = _task_size(map(weigh, items), packing, least)
    return [tuple(task) for task in pack(items, weigh, Packing(bound, packing.open_cost))]


def weight(files: Iterable[DataFileMeta], packing: Packing) -> int:
    """Return the bytes that files count as, each at least the cost of opening it."""
    return sum(max(file.file_size, packing.open_cost) for file in files)


def _task_size(weights: Iterable[int], packing: Packing, least: int) -> int:
    """Return the bytes of a task that make ``least`` tasks or more, within the bounds of :func:`plan_tasks`."""
    share = -(-sum(weights) // max(1, least))
    smallest = max(packing.open_cost, packing.target_size // _LEAST_SHARE)
    return min(packing.target_size, max(smallest, share))


_Piece = tuple[DataSplit, tuple[DataFileMeta, ...], range | None]


def _weight(files: Sequence[DataFileMeta], part: range | None, packing: Packing) -> int:
    """Return the bytes that files count as, or ``part`` of the only one."""
    return weight(files, packing) if part is None else max(part_size(files[0], part), packing.open_cost)


def _pieces(split: DataSplit, size: int) -> list[_Piece]:
    """Return the smallest pieces that a task can read by themselves: (split, files of it, part of the only file)."""
    if not split.raw_convertible:
        return [(split, split.files, None)]
    return [(split, (file,), part) for file in split.files for part in cut_file(file, size, split.part)]


def _joined(pieces: Sequence[_Piece]) -> Iterable[DataSplit]:
    """Yield the pieces of a task with neighbours of one split as one split again; parts of files stay by themselves."""
    at = 0
    while at < len(pieces):
        split, files, part = pieces[at]
        at += 1
        while part is None and at < len(pieces) and pieces[at][0] is split and pieces[at][2] is None:
            files = (*files, *pieces[at][1])
            at += 1
        yield split if len(files) == len(split.files) and part == split.part else _narrowed(split, files, part)


def _narrowed(split: DataSplit, files: tuple[DataFileMeta, ...], part: range | None) -> DataSplit:
    """Return a raw split of some of the files of a split, or ``part`` of one, with their deletion vectors."""
    names = {file.file_name for file in files}
    return replace(split, files=files, vectors=tuple(v for v in split.vectors if v.data_file in names), part=part)
