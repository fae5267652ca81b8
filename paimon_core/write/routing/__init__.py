"""Which bucket a row belongs to: one router per bucket mode.

``ROUTERS`` maps a mode to what makes a router for a table; ``shared`` says that other writers of the same job may get
rows of the same keys' buckets.
"""

from collections.abc import Callable

from paimon_core.store.file_store import FileStore
from paimon_core.write.routing.dynamic import dynamic
from paimon_core.write.routing.fixed import fixed
from paimon_core.write.routing.postpone import postpone
from paimon_core.write.routing.router import Batch, BucketMode, Indexes, Router, bucket_mode
from paimon_core.write.routing.unaware import unaware

ROUTERS: dict[BucketMode, Callable[[FileStore, bool], Router]] = {
    BucketMode.HASH_FIXED: fixed,
    BucketMode.HASH_DYNAMIC: dynamic,
    BucketMode.POSTPONE: postpone,
    BucketMode.BUCKET_UNAWARE: unaware,
}

__all__ = ["ROUTERS", "Batch", "BucketMode", "Indexes", "Router", "bucket_mode"]
