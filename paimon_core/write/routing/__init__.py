"""Routers, one per bucket mode, which give each row its bucket.

``ROUTERS`` maps a mode to a function that creates a router for a table and the key shard of its writer.
"""

from collections.abc import Callable

from paimon_core.store.file_store import FileStore
from paimon_core.write.routing.cross_partition import cross_partition
from paimon_core.write.routing.dynamic import dynamic
from paimon_core.write.routing.fixed import fixed
from paimon_core.write.routing.postpone import postpone
from paimon_core.write.routing.router import ALL_KEYS, Batch, BucketMode, Indexes, KeyShard, Router, bucket_mode
from paimon_core.write.routing.unaware import unaware

ROUTERS: dict[BucketMode, Callable[[FileStore, KeyShard | None], Router]] = {
    BucketMode.HASH_FIXED: fixed,
    BucketMode.HASH_DYNAMIC: dynamic,
    BucketMode.KEY_DYNAMIC: cross_partition,
    BucketMode.POSTPONE: postpone,
    BucketMode.BUCKET_UNAWARE: unaware,
}

__all__ = ["ALL_KEYS", "ROUTERS", "Batch", "BucketMode", "Indexes", "KeyShard", "Router", "bucket_mode"]
