"""The bucket of an entry, a split, a task or a commit message, as one value."""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

E = TypeVar("E", bound="InBucket")


class BucketRef(NamedTuple):
    """A bucket of a table: its partition (a serialised BinaryRow) and its number."""

    partition: bytes
    bucket: int


class BucketLocation(NamedTuple):
    """A bucket, and the number of buckets of its partition (-1: dynamic or unaware, -2: postponed)."""

    partition: bytes
    bucket: int
    total_buckets: int

    @property
    def ref(self) -> BucketRef:
        """The bucket without the number of buckets."""
        return BucketRef(self.partition, self.bucket)


class InBucket:
    """The base class of values that belong to one bucket."""

    __slots__ = ()
    partition: bytes
    bucket: int

    @property
    def bucket_ref(self) -> BucketRef:
        """The bucket that the value belongs to."""
        return BucketRef(self.partition, self.bucket)


class InCountedBucket(InBucket):
    """The base class of values that belong to one bucket and have the number of buckets of its partition."""

    __slots__ = ()
    total_buckets: int

    @property
    def location(self) -> BucketLocation:
        """The bucket that the value belongs to, with the number of buckets of its partition."""
        return BucketLocation(self.partition, self.bucket, self.total_buckets)


def group_by_bucket(values: Iterable[E]) -> dict[BucketRef, list[E]]:
    """Return the values of each bucket, in their order. Buckets are in the order of their first values."""
    groups: dict[tuple[bytes, int], list[E]] = {}
    for value in values:  # plain tuples are created much faster, and equal named tuples
        groups.setdefault((value.partition, value.bucket), []).append(value)
    return {BucketRef(*bucket): group for bucket, group in groups.items()}
