"""Filters of manifest entries by bucket or by partition, which decoders apply before they build entries."""

import itertools
from collections.abc import Collection, Set
from dataclasses import dataclass
from typing import Any, Final, Protocol

from paimon_core.format.avro_container import encode_long
from paimon_core.manifest.bucket import BucketRef

_MAX_PATTERNS: Final = 16  # a search for more patterns takes about as long as decoding


class EntryFilter(Protocol):
    """A filter of manifest entries that depends on the partition and the bucket only."""

    def accepted(self, buckets: Collection[BucketRef]) -> Set[BucketRef]:
        """Return the buckets whose entries the filter accepts."""

    def byte_patterns(self, schema: Any) -> list[bytes] | None:
        """Return byte strings; each encoded entry that the filter accepts contains one of them. `None`: unknown.

        ``schema``: the Avro schema of the entries, without logical types.
        """


@dataclass(frozen=True, slots=True)
class BucketFilter:
    """A set of partitions (serialised rows), restricted to ``buckets``; `None`: all buckets of the partitions."""

    partitions: frozenset[bytes]
    buckets: frozenset[BucketRef] | None = None

    @staticmethod
    def for_buckets(buckets: Collection[BucketRef]) -> "BucketFilter":
        """Return the filter that accepts only these buckets."""
        return BucketFilter(frozenset(partition for partition, _ in buckets), frozenset(buckets))

    def holds(self, partition: bytes, bucket: int) -> bool:
        """Return True if the filter accepts the bucket."""
        return partition in self.partitions if self.buckets is None else (partition, bucket) in self.buckets

    def accepted(self, buckets: Collection[BucketRef]) -> set[BucketRef]:
        """Return the buckets whose entries the filter accepts."""
        return {bucket for bucket in buckets if self.holds(*bucket)}

    def byte_patterns(self, schema: Any) -> list[bytes] | None:
        """Return byte strings; each encoded entry that the filter accepts contains one of them.

        ``schema``: the Avro schema of the entries, without logical types. `None`: the number of the bucket does not
        follow the partition in the schema, or the search would need too many patterns, so that decoding is faster.
        """
        fields = schema.get("fields", []) if isinstance(schema, dict) else []
        types = [(field["name"], field["type"]) for field in fields]
        if (("_PARTITION", "bytes"), ("_BUCKET", "int")) not in itertools.pairwise(types):
            return None
        partitions = {partition: encode_long(len(partition)) + partition for partition in self.partitions}
        if self.buckets is not None and len(self.buckets) <= _MAX_PATTERNS:
            return [partitions[partition] + encode_long(bucket) for partition, bucket in self.buckets]
        return list(partitions.values()) if len(partitions) <= _MAX_PATTERNS else None
