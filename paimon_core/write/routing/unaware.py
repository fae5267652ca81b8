"""The router of append tables without buckets: every row belongs to bucket 0."""

import numpy as np

from paimon_core.options.bucket import BUCKET
from paimon_core.store.file_store import FileStore
from paimon_core.write.routing.router import KeyShard, Router, RowRouter


def unaware(store: FileStore, shard: KeyShard | None) -> Router:
    """Return a router that routes all rows to bucket 0."""
    return RowRouter(lambda rows: np.zeros(rows.num_rows, np.int32), store.options.value(BUCKET))
