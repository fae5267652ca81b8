"""Entries with the methods of columns of entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from paimon_core.manifest.entry import ManifestEntry


@dataclass(frozen=True, slots=True)
class EntryList:
    """Entries whose files have one layout, with the same methods as `EntryColumns`."""

    entries: list[ManifestEntry]

    def __len__(self) -> int:
        return len(self.entries)

    def values(self, attribute: str) -> list[Any]:
        """Return an attribute of the file of each entry."""
        return list(map(attrgetter(f"file.{attribute}"), self.entries))

    def partitions(self) -> list[bytes]:
        """Return the partition of each entry."""
        return [entry.partition for entry in self.entries]

    def buckets(self) -> list[int]:
        """Return the bucket of each entry."""
        return [entry.bucket for entry in self.entries]

    def total_buckets(self) -> list[int]:
        """Return the number of buckets that each entry stores."""
        return [entry.total_buckets for entry in self.entries]

    def bounds(self, *, largest: bool) -> list[bytes]:
        """Return the smallest or the largest values of each file as a serialised row."""
        return list(map(attrgetter("max_values" if largest else "min_values"), self.values("value_stats")))

    def null_counts(self, width: int) -> list[Any]:
        """Return the null counts of each of the ``width`` columns of statistics, one item for each file."""
        return count_columns([stats.null_counts for stats in self.values("value_stats")], width)


def count_columns(counts: Sequence[Sequence[int | None]], width: int) -> list[Sequence[int | None]]:
    """Return the null counts of ``width`` columns from the counts of each file; `None`: unknown or missing."""
    if set(map(len, counts)) - {width}:
        counts = [(*of_file[:width], *[None] * (width - len(of_file))) for of_file in counts]
    return list(zip(*counts, strict=True)) if counts else [()] * width
