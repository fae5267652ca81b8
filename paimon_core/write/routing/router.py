"""The routing seam: what a router is, and which mode a table is in."""

from collections.abc import Callable
from enum import Enum

import numpy as np
import pyarrow as pa

from paimon_core.options.bucket import BUCKET
from paimon_core.schema.table_schema import TableSchema

Router = Callable[[pa.RecordBatch], np.ndarray]
"""The bucket (int32) of every row of a batch. Laws: same key, same bucket; cutting the batch changes nothing."""


class BucketMode(Enum):
    """How a table deals rows out to buckets (behaviour 6)."""

    HASH_FIXED = "fixed buckets"
    HASH_DYNAMIC = "dynamic buckets"
    KEY_DYNAMIC = "cross-partition dynamic buckets"
    POSTPONE = "postponed buckets"
    BUCKET_UNAWARE = "no buckets"


def bucket_mode(schema: TableSchema) -> BucketMode:
    """The mode that keys and the option ``bucket`` put the table in."""
    buckets = schema.options.value(BUCKET)
    if buckets > 0:
        return BucketMode.HASH_FIXED
    if not schema.primary_keys:
        return BucketMode.BUCKET_UNAWARE
    if buckets == -2:
        return BucketMode.POSTPONE
    return BucketMode.HASH_DYNAMIC if set(schema.partition_keys) <= set(schema.primary_keys) else BucketMode.KEY_DYNAMIC
