"""The files of one bucket by level (behaviour 3.1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError
from paimon_core.lsm.intervals import key_ranks
from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.manifest.data_file import DataFileMeta


@dataclass(frozen=True, slots=True)
class Levels:
    """The files of one bucket; ``files[n]`` are the files of level n.

    Level 0 is ordered newest first by sequence numbers, the order that the compaction policy needs. Other levels are
    in key order without overlap. ``files`` ends with the last level that has files; ``max_level`` is the highest level
    allowed. ``committed`` has the files of level 0 in the order of their commits.
    """

    files: tuple[tuple[DataFileMeta, ...], ...]
    max_level: int
    committed: tuple[DataFileMeta, ...] = ()

    @staticmethod
    def of(files: Iterable[DataFileMeta], key_schema: pa.Schema, num_levels: int) -> "Levels":
        """Order the files of a bucket, with at least ``num_levels`` levels, at least two, and more if files need them.

        REQUIRES: files of level 0 are in the order of their commits, as manifests list them.
        Raises CorruptedError if files of a level above 0 overlap.
        """
        files = tuple(files)
        highest = max((f.level for f in files), default=0)
        levels: list[list[DataFileMeta]] = [[] for _ in range(highest + 1)]
        for file in files:
            levels[file.level].append(file)
        newest_first = sorted(levels[0], key=_newest_first)
        return Levels(
            (tuple(newest_first), *(_in_key_order(level, key_schema) for level in levels[1:])),
            max(num_levels, 2, highest + 1) - 1,
            tuple(levels[0]),
        )

    @property
    def all_files(self) -> tuple[DataFileMeta, ...]:
        """Every file, level 0 first."""
        return tuple(file for level in self.files for file in level)

    @property
    def max_sequence_number(self) -> int:
        """The sequence number of the newest row; -1: the bucket is empty."""
        return max((file.max_sequence_number for file in self.all_files), default=-1)

    @property
    def runs(self) -> tuple[SortedRun, ...]:
        """The sorted runs, newest first: each file of level 0 is a run, then each level that has files."""
        return (
            *(SortedRun(0, (file,)) for file in self.files[0]),
            *(SortedRun(n, level) for n, level in enumerate(self.files) if n and level),
        )

    @property
    def last_full(self) -> int | None:
        """The creation time of the newest file of the highest level, in local milliseconds. `None`: no such file."""
        if len(self.files) <= self.max_level:
            return None
        return max((f.creation_time for f in self.files[self.max_level] if f.creation_time is not None), default=None)

    def by_age(self, files: Iterable[DataFileMeta]) -> tuple[DataFileMeta, ...]:
        """Return these files of the bucket, the oldest first (decision 13): high levels first, level 0 by commits."""
        position = {file.file_name: n for n, file in enumerate(self.committed)}
        return tuple(sorted(files, key=lambda file: (-file.level, position.get(file.file_name, 0))))

    def drops_deletes(self, output_level: int) -> bool:
        """Return True if compacting the newest runs into this level may drop deletes: no higher level has files."""
        return 0 < output_level >= len(self.files) - 1

    def apply(self, removed: Iterable[DataFileMeta], added: Iterable[DataFileMeta], key_schema: pa.Schema) -> "Levels":
        """Return the levels after a compaction replaced the files ``removed`` with ``added``."""
        dropped = {(file.level, file.file_name) for file in removed}
        current = [*(file for level in self.files[1:] for file in level), *self.committed]
        remaining = [file for file in current if (file.level, file.file_name) not in dropped]
        return Levels.of([*remaining, *added], key_schema, self.max_level + 1)


def _newest_first(file: DataFileMeta) -> tuple[int, int, int, str]:
    return -file.max_sequence_number, file.min_sequence_number, file.creation_time or 0, file.file_name


def _in_key_order(files: Sequence[DataFileMeta], key_schema: pa.Schema) -> tuple[DataFileMeta, ...]:
    if len(files) < 2:
        return tuple(files)
    low, high = key_ranks(files, key_schema)
    order = np.argsort(low, kind="stable")
    clash = np.flatnonzero(high[order][:-1] >= low[order][1:])
    ordered = tuple(files[i] for i in order.tolist())
    if clash.size:
        first, second = ordered[clash[0]], ordered[clash[0] + 1]
        raise CorruptedError(
            f"the files {first.file_name} and {second.file_name} of level {first.level} overlap in their keys, "
            f"which is not allowed above level 0: two compactions of the bucket were both committed"
        )
    return ordered
