"""Choice of the files of an append bucket to compact (behaviour 3.6): pure functions on metadata."""

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

Group = tuple[DataFileMeta, ...]
"""Files to compact in this order, into one file or a few of the target size."""
_NONE: Mapping[str, int] = MappingProxyType({})
_MIN_FILES_OF_FULL_PICK = 3  # a full compaction skips an ordered bucket with fewer files


@dataclass(frozen=True, slots=True)
class AppendCompactionPolicy:
    """The sizes (bytes), counts and ratios that decide which files are compacted.

    ``deleted``, an argument of the methods: the number of deleted rows by file name; files without any are absent.
    """

    target_size: int
    small_size: int
    open_cost: int
    min_files: int = 5
    rewrite_all: bool = False
    delete_ratio: float = 0.2
    target_rows: int = TARGET_FILE_ROW_NUM.default

    @staticmethod
    def of(options: Options, default_target_size: int, target_rows: int) -> "AppendCompactionPolicy":
        """Return the policy that the table's options define. ``target_rows``: the number of rows of a full file."""
        target = options.value(TARGET_FILE_SIZE) or default_target_size
        return AppendCompactionPolicy(
            target,
            int(target * options.value(COMPACTION_SMALL_FILE_RATIO)),
            options.value(SOURCE_SPLIT_OPEN_FILE_COST),
            options.value(COMPACTION_MIN_FILE_NUM),
            options.value(COMPACTION_FORCE_REWRITE_ALL_FILES),
            options.value(COMPACTION_DELETE_RATIO_THRESHOLD),
            target_rows,
        )

    def is_small(self, file: DataFileMeta) -> bool:
        """Return True if the file has fewer bytes and rows than a full file and should be compacted with others."""
        return file.file_size < self.small_size and file.row_count < self.target_rows

    def unordered(
        self, files: Sequence[DataFileMeta], *, full: bool, deleted: Mapping[str, int] = _NONE
    ) -> list[Group]:
        """Group the files to compact in a bucket without row order, smallest file first.

        Files are picked if they are small, or if their ratio of deleted rows exceeds
        ``compaction.delete-ratio-threshold`` (``full``: if any row is deleted). ``full`` under
        ``compaction.force-rewrite-all-files`` picks every file. A group has at least twice the target size. The
        remaining files form a group if there are at least ``min_files``; with ``full`` two files suffice, or one file
        with deleted rows.
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
        single_suffices = rewrite_all or any(f.file_name in sparse for f in current)
        least = 1 if single_suffices else 2 if full else max(2, self.min_files)
        return [*groups, tuple(current)] if len(current) >= least else groups

    def ordered(self, files: Sequence[DataFileMeta], *, full: bool, deleted: Mapping[str, int] = _NONE) -> list[Group]:
        """Group adjacent files in order of sequence numbers, so that compaction keeps the order of all rows."""
        in_order = sorted(files, key=lambda f: f.min_sequence_number)
        return self._all_but_leading(in_order, deleted) if full else self._adjacent(in_order)

    def _all_but_leading(self, files: list[DataFileMeta], deleted: Mapping[str, int]) -> list[Group]:
        """Return all files after the leading large files without deleted rows, as one group.

        Return no group if none of these files has deleted rows and they are too few, or at most half of them are small.
        """
        if self.rewrite_all:
            return [tuple(files)] if files else []
        start = next((i for i, f in enumerate(files) if self.is_small(f) or f.file_name in deleted), len(files))
        rest = files[start:]
        if any(f.file_name in deleted for f in rest):
            return [tuple(rest)]
        small = sum(map(self.is_small, rest))
        return [tuple(rest)] if len(rest) >= _MIN_FILES_OF_FULL_PICK and 2 * small > len(rest) else []

    def _adjacent(self, files: list[DataFileMeta]) -> list[Group]:
        """Group ``min_files`` adjacent files with a total below twice the target size, repeatedly.

        A group is then extended up to the target size; otherwise, its small result would be compacted a second time.
        """
        groups: list[list[DataFileMeta]] = []
        current: list[DataFileMeta] = []
        total, growing = 0, False
        for file in files:
            if file.row_count >= self.target_rows:  # compaction would not change it
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
