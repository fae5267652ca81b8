"""The router of fixed buckets: a hash of the bucket key chooses the bucket."""

import numpy as np
import pyarrow as pa

from paimon_core.options.bucket import BUCKET
from paimon_core.row.bucket import buckets
from paimon_core.store.file_store import FileStore
from paimon_core.write.routing.router import KeyShard, Router, RowRouter


def fixed(store: FileStore, shard: KeyShard | None) -> Router:
    """Return a router that applies the table's bucket function to the bucket key."""
    count, function = store.options.value(BUCKET), store.bucket_function
    keys = list(store.schema.bucket_keys)

    def route(rows: pa.RecordBatch) -> np.ndarray:
        if count == 1:
            return np.zeros(rows.num_rows, np.int32)
        return buckets(rows.select(keys), count, function)

    return RowRouter(route, count)
