"""Expiry from Spark: after writes, by the table's options, and by a call."""

import pytest

import paimon_spark
from paimon_core.errors import InvalidInputError
from paimon_core.table import Table

pytestmark = pytest.mark.spark
FEW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}


def test_snapshots_expire_after_writes_and_by_a_call(spark, warehouse):
    path = f"{warehouse}/db.db/few"
    for i in range(4):
        write = spark.range(3 * i, 3 * i + 3, numPartitions=1).write.format("paimon").mode("append")
        write.options(**({"write-only": "true", **FEW} if i == 0 else {"write-only": "false"})).save(path)
    table = Table.open(path)
    assert [s.id for s in table.snapshots()] == [3, 4]
    opened = paimon_spark.PaimonTable.forPath(spark, path)
    assert opened.expireSnapshots(retain_max=1, dry_run=True).snapshots == (3,)
    expired = opened.expireSnapshots(retain_max=1)
    assert expired.snapshots == (3,)
    assert expired.files > 0
    assert [s.id for s in table.snapshots()] == [4]
    assert sorted(row.id for row in opened.toDF().collect()) == list(range(12))
    with pytest.raises(InvalidInputError, match="only the present can be expired"):
        paimon_spark.PaimonTable.forPath(spark, path, **{"snapshot-id": "4"}).expireSnapshots()
