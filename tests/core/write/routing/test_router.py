"""The bucket mode of a table, by its keys and the option `bucket`."""

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.schema.validate import create
from paimon_core.write.routing.router import Batch, BucketMode, RowRouter, bucket_mode

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("p", pa.string(), nullable=False)])


@pytest.mark.parametrize(
    ("keys", "partitions", "bucket", "mode"),
    [
        ((), (), "-1", BucketMode.BUCKET_UNAWARE),
        (("k",), (), "3", BucketMode.HASH_FIXED),
        (("k",), (), "-1", BucketMode.HASH_DYNAMIC),
        (("k", "p"), ("p",), "-1", BucketMode.HASH_DYNAMIC),
        (("k",), ("p",), "-1", BucketMode.KEY_DYNAMIC),
        (("k", "p"), ("p",), "-2", BucketMode.POSTPONE),
    ],
)
def test_bucket_mode_follows_from_keys_and_option(keys, partitions, bucket, mode):
    assert bucket_mode(create(Schema(COLUMNS, keys, partitions, {"bucket": bucket}), 0)) == mode


def test_stateless_router_asks_each_row_for_its_bucket():
    batch = Batch(pa.record_batch({"k": [4, 7]}), None, np.zeros(2, np.int64), [b""])
    router = RowRouter(lambda rows: np.asarray(rows.column("k")) % 3, 3)
    routed, buckets = router.route(batch, None)
    assert routed is batch
    assert buckets.tolist() == [1, 1]
    assert (router.total_buckets(b""), router.write_indexes()) == (3, {})
