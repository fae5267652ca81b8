"""Which bucket a row belongs to: one router per bucket mode.

``ROUTERS`` maps a mode to the function that gives the bucket of every row of a batch.
"""

from collections.abc import Callable

from paimon_core.store.file_store import FileStore
from paimon_core.write.routing.fixed import fixed
from paimon_core.write.routing.router import BucketMode, Router, bucket_mode
from paimon_core.write.routing.unaware import unaware

ROUTERS: dict[BucketMode, Callable[[FileStore], Router]] = {
    BucketMode.HASH_FIXED: fixed,
    BucketMode.BUCKET_UNAWARE: unaware,
}

__all__ = ["ROUTERS", "BucketMode", "Router", "bucket_mode"]
