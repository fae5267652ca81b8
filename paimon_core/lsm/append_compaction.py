"""Which files of an append bucket are put together (behaviour 3.6). Pure functions on metadata."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.file import TARGET_FILE_ROW_NUM, TARGET_FILE_SIZE
from paimon_core.options.lsm import (
    COMPACTION_DELETE_RATIO_THRESHOLD,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_MIN_FILE_NUM,
    COMPACTION_SMALL_FILE_RATIO,
)
from paimon_core.options.option import Options
from paimon_core.options.scan import SOURCE_SPLIT_OPEN_FILE_COST

__all__ = ["AppendCompactionPolicy", "Group"]

Group = tuple[DataFileMeta, ...]
"""Files that become one, or a few of the target size, in this order."""
_NONE: Mapping[str, int] = MappingProxyType({})
_WORTH_A_FULL_PICK = 3  # files in an ordered bucket below which a full compaction leaves it alone


@dataclass(frozen=True, slots=True)
class AppendCompactionPolicy:
    """The sizes (bytes), counts and parts by which files are picked.

    ``deleted`` in the methods below: how many rows of a file are deleted, by its name, where any are.
    """

    target_size: int
    small_size: int
    open_cost: int
    min_files: int = 5
    rewrite_all: bool = False
    delete_ratio: float = 0.2
    target_rows: int = TARGET_FILE_ROW_NUM.default

    @staticmethod
    def of(options: Options, default_target_size: int) -> "AppendCompactionPolicy":
        """As the table's options have it."""
        target = options.value(TARGET_FILE_SIZE) or default_target_size
        return AppendCompactionPolicy(
            target,
            int(target * options.value(COMPACTION_SMALL_FILE_RATIO)),
            options.value(SOURCE_SPLIT_OPEN_FILE_COST),
            options.value(COMPACTION_MIN_FILE_NUM),
            options.value(COMPACTION_FORCE_REWRITE_ALL_FILES),
            options.value(COMPACTION_DELETE_RATIO_THRESHOLD),
            options.value(TARGET_FILE_ROW_NUM),
        )

    def is_small(self, file: DataFileMeta) -> bool:
        """Return True where a file is to be put together with others: it has less than a full one."""
        return file.file_size < self.small_size and file.row_count < self.target_rows

    def unordered(
        self, files: Sequence[DataFileMeta], *, full: bool, deleted: Mapping[str, int] = _NONE
    ) -> list[Group]:
        """Small files of a bucket without order, the smallest first, in groups of at least twice the target size;
        files of which more rows are deleted than ``compaction.delete-ratio-threshold``, or with ``full`` any, as well.

        What is left over makes a group if it has ``min_files`` files, or, with ``full``, two, or one with rows deleted.
        ``full`` under ``compaction.force-rewrite-all-files`` takes every file.
        """
        rewrite_all = full and self.rewrite_all
        ratio = 0 if full else self.delete_ratio
        sparse = {f.file_name for f in files if deleted.get(f.file_name, 0) > ratio * f.row_count}
        groups: list[Group] = []
        current: list[DataFileMeta] = []
        weight = 0
        picked = (f for f in files if rewrite_all or self.is_small(f) or f.file_name in sparse)
        for file in sorted(picked, key=lambda f: f.file_size):
            current.append(file)
            weight += file.file_size + self.open_cost
            if len(current) > 1 and weight >= 2 * self.target_size:
                groups.append(tuple(current))
                current, weight = [], 0
        alone = rewrite_all or any(f.file_name in sparse for f in current)
        least = 1 if alone else 2 if full else max(2, self.min_files)
        return [*groups, tuple(current)] if len(current) >= least else groups

    def ordered(self, files: Sequence[DataFileMeta], *, full: bool, deleted: Mapping[str, int] = _NONE) -> list[Group]:
        """Groups of neighbours in order of sequence numbers, so that no row changes its place among the others."""
        in_order = sorted(files, key=lambda f: f.min_sequence_number)
        return self._all_but_leading(in_order, deleted) if full else self._neighbours(in_order)

    def _all_but_leading(self, files: list[DataFileMeta], deleted: Mapping[str, int]) -> list[Group]:
        """Everything behind the leading files that are large and whole, if most of it is small or rows are deleted."""
        if self.rewrite_all:
            return [tuple(files)] if files else []
        start = next((i for i, f in enumerate(files) if self.is_small(f) or f.file_name in deleted), len(files))
        rest = files[start:]
        if any(f.file_name in deleted for f in rest):
            return [tuple(rest)]
        small = sum(map(self.is_small, rest))
        return [tuple(rest)] if len(rest) >= _WORTH_A_FULL_PICK and 2 * small > len(rest) else []

    def _neighbours(self, files: list[DataFileMeta]) -> list[Group]:
        """``min_files`` neighbours below twice the target size, again and again.

        A group goes on while it stays within the target size: picking its small result anew would come to the same.
        """
        groups: list[list[DataFileMeta]] = []
        current: list[DataFileMeta] = []
        total, growing = 0, False
        for file in files:
            if file.row_count >= self.target_rows:  # it would come out as it is
                current, total, growing = [], 0, False
                continue
            if growing and total + file.file_size <= self.target_size:
                groups[-1].append(file)
                total += file.file_size
                continue
            if growing:
                total, growing = 0, False
            current.append(file)
            total += file.file_size
            if len(current) >= max(2, self.min_files):
                groups.append(current)
                current, growing = [], True
            elif total >= 2 * self.target_size:
                total -= current.pop(0).file_size
        return [tuple(group) for group in groups]
