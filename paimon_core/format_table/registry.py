"""The partitions of a format table that its catalog lists: directories without an entry there hold no rows.

A catalog identifies a partition by its spec: the text of each value by column, as in the names of directories, but not
escaped. The text of NULL is the name of the partition of NULL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Spec: TypeAlias = Mapping[str, str]
"""The texts of the values of a partition, by column."""


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """The rows, bytes and files of a partition. ``last_file_millis``: the time of its newest file."""

    spec: Spec = field(hash=False)
    rows: int
    size: int
    files: int
    last_file_millis: int


class PartitionRegistry(Protocol):
    """The entries of the partitions of one table in its catalog. It pickles. Raises the errors of its catalog."""

    def specs(self) -> list[Spec]:
        """Return the specs of all partitions."""
        ...

    def register(self, specs: Sequence[Spec], counts: Sequence[PartitionCounts] = (), *, total: bool = False) -> None:
        """Add partitions; a partition that exists keeps its entry.

        Args:
            specs: the partitions.
            counts: rows, bytes and files of some of them.
            total: True if the counts are of whole partitions, False to add them to the counts of the catalog.
        """
        ...

    def unregister(self, specs: Sequence[Spec]) -> None:
        """Remove the entries of partitions, if they exist. No file changes."""
        ...
