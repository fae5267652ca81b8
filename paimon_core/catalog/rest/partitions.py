"""The entries of the partitions of a format table on the server of a REST catalog."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.rest.api import RestApi
from paimon_core.catalog.rest.client import RestNotFoundError
from paimon_core.errors import UnsupportedError
from paimon_core.format_table.registry import PartitionCounts, Spec

_REQUEST_SIZE: Final = 1000
"""The most partitions in a request: servers limit them."""


@dataclass(frozen=True)
class RestPartitions:
    """The partitions of one format table on the server, a `PartitionRegistry`. It pickles.

    Args:
        api: the requests to the server.
        name: the name of the table.
    """

    api: RestApi
    name: Identifier

    def specs(self) -> list[Spec]:
        """Return the specs of all partitions."""
        return self.api.partition_specs(self.name)

    def register(self, specs: Sequence[Spec], counts: Sequence[PartitionCounts] = (), *, total: bool = False) -> None:
        """Add partitions, in requests of at most 1000. Arguments: see `PartitionRegistry.register`."""
        try:
            for part, known in _with_counts(specs, counts):
                self.api.create_partitions(self.name, part, known, total=total)
        except RestNotFoundError as error:
            if error.kind == "TABLE":
                raise
            raise UnsupportedError(
                f"the server of the catalog stores no partitions of format table {str(self.name)!r}, as servers "
                "before Java 2: remove the table's option 'metastore.partitioned-table'"
            ) from error

    def unregister(self, specs: Sequence[Spec]) -> None:
        """Remove the entries of partitions, in requests of at most 1000. The server deletes no files."""
        for part in _parts(specs):
            self.api.drop_partitions(self.name, part)


def _with_counts(
    specs: Sequence[Spec], counts: Sequence[PartitionCounts]
) -> Iterator[tuple[Sequence[Spec], list[PartitionCounts]]]:
    """Yield the specs of each request, and the counts of its partitions."""
    by_spec = {tuple(each.spec.items()): each for each in counts}
    for part in _parts(specs):
        keys = [tuple(spec.items()) for spec in part]
        yield part, [by_spec[key] for key in keys if key in by_spec]


def _parts(specs: Sequence[Spec]) -> list[Sequence[Spec]]:
    return [specs[low : low + _REQUEST_SIZE] for low in range(0, len(specs), _REQUEST_SIZE)]
