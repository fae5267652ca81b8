"""Pack splits into tasks, for engines where starting a task is expensive. Pure functions on metadata."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from paimon_core.fileio.paths import scheme_of
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.option import Options
from paimon_core.options.scan import SOURCE_SPLIT_OPEN_FILE_COST
from paimon_core.scan.split import DataSplit, part_size
from paimon_core.scan.split_plan import LEAST_PART, Packing, cut_file, pack

T = TypeVar("T")

_OPEN_COST = 256 << 10  # bytes that a task decodes in the time that opening a local file takes
_FETCH_COST = 1 << 20  # the same for a file in an object store
_LEAST_SHARE = 8  # the smallest task is `target_size / _LEAST_SHARE`


def packing_of_tasks(options: Options, root: str) -> Packing:
    """Return the sizes for packing tasks that the options of a table at ``root`` define.

    Without ``source.split.open-file-cost`` a file counts as at least 256 KiB on a local file system and 1 MiB
    elsewhere: for a Python engine, opening a file costs far less than starting another task.
    """
    packing = Packing.of(options)
    if options.has(SOURCE_SPLIT_OPEN_FILE_COST):
        return packing
    return Packing(packing.target_size, _OPEN_COST if scheme_of(root) == "file" else _FETCH_COST)


def plan_tasks(splits: Sequence[DataSplit], packing: Packing, least: int = 1) -> list[tuple[DataSplit, ...]]:
    """Pack splits in order into tasks that read the same rows in the same order.

    A task has up to ``packing.target_size`` bytes; a file counts as at least ``packing.open_cost``. If this gives fewer
    than ``least`` tasks, tasks become smaller, down to an eighth of the target size. A raw split is divided by files,
    and a file larger than a task by row groups. A split that must be merged stays whole.
    """
    bound = _task_size((_weight(split.files, split.part, packing) for split in splits), packing, least)
    parts = [part for split in splits for part in _parts(split, max(bound, LEAST_PART))]
    packed = pack(parts, lambda part: _weight(*part[1:], packing), Packing(bound, packing.open_cost))
    return [tuple(_joined(task)) for task in packed]


def pack_tasks(items: Sequence[T], weigh: Callable[[T], int], packing: Packing, least: int = 1) -> list[tuple[T, ...]]:
    """Pack indivisible items into tasks like :func:`plan_tasks`; ``weigh`` returns bytes like :func:`weight`."""
    bound = _task_size(map(weigh, items), packing, least)
    return [tuple(task) for task in pack(items, weigh, Packing(bound, packing.open_cost))]


def weight(files: Iterable[DataFileMeta], packing: Packing) -> int:
    """Return the bytes that files count as, each with at least the cost of opening it."""
    return sum(max(file.file_size, packing.open_cost) for file in files)


def _task_size(weights: Iterable[int], packing: Packing, least: int) -> int:
    """Return the task size in bytes that gives at least ``least`` tasks, within the limits of :func:`plan_tasks`."""
    share = -(-sum(weights) // max(1, least))
    smallest = max(packing.open_cost, packing.target_size // _LEAST_SHARE)
    return min(packing.target_size, max(smallest, share))


_Part = tuple[DataSplit, tuple[DataFileMeta, ...], range | None]
"""A split, some of its files, and row positions if there is a single file (`None`: all rows)."""


def _weight(files: Sequence[DataFileMeta], part: range | None, packing: Packing) -> int:
    """Return the bytes that files count as, or that ``part`` of a single file counts as."""
    return weight(files, packing) if part is None else max(part_size(files[0], part), packing.open_cost)


def _parts(split: DataSplit, size: int) -> list[_Part]:
    """Divide a split into the smallest parts that a task can read; parts of a file have at most ``size`` bytes."""
    if not split.raw_convertible:
        return [(split, split.files, None)]
    return [(split, (file,), part) for file in split.files for part in cut_file(file, size, split.part)]


def _joined(parts: Iterable[_Part]) -> Iterator[DataSplit]:
    """Yield the splits of a task. Adjacent whole files of one split become one split; parts of a file stay separate."""
    for (_, part), group in itertools.groupby(parts, lambda p: (id(p[0]), p[2])):
        members = list(group)
        split, files = members[0][0], tuple(file for member in members for file in member[1])
        names = {file.file_name for file in files}
        vectors = tuple(v for v in split.vectors if v.data_file in names)
        whole = len(files) == len(split.files) and part == split.part
        yield split if whole else replace(split, files=files, vectors=vectors, part=part)
