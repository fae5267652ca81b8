"""Places: the buckets, or the whole partitions, whose entries alone are asked of a manifest."""

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from paimon_core.format.avro_container import encode_long
from paimon_core.manifest.bucket import BucketRef

_MOST_MARKS: Final = 16  # looking for more takes about as long as decoding


@dataclass(frozen=True, slots=True)
class BucketFilter:
    """Some partitions (serialised rows), and of these only some buckets, or all where ``buckets`` is None."""

    partitions: frozenset[bytes]
    buckets: frozenset[BucketRef] | None = None

    @staticmethod
    def for_buckets(buckets: Collection[BucketRef]) -> "BucketFilter":
        """Return the places that are these buckets, each given by partition and number."""
        return BucketFilter(frozenset(partition for partition, _ in buckets), frozenset(buckets))

    def holds(self, partition: bytes, bucket: int) -> bool:
        """Return True if a bucket is one of these."""
        return partition in self.partitions if self.buckets is None else (partition, bucket) in self.buckets

    def marks(self, schema: Any) -> list[bytes] | None:
        """Return bytes of which every encoded entry of these places contains one; None where none are known.

        In a record of the Avro ``schema`` (without logical types) the number of the bucket must follow the partition.
        They are also None where they would be so many that decoding is cheaper than looking for them.
        """
        fields = schema.get("fields", []) if isinstance(schema, dict) else []
        kinds = [(field["name"], field["type"]) for field in fields]
        if (("_PARTITION", "bytes"), ("_BUCKET", "int")) not in itertools.pairwise(kinds):
            return None
        partitions = {partition: encode_long(len(partition)) + partition for partition in self.partitions}
        if self.buckets is not None and len(self.buckets) <= _MOST_MARKS:
            return [partitions[partition] + encode_long(bucket) for partition, bucket in self.buckets]
        return list(partitions.values()) if len(partitions) <= _MOST_MARKS else None
