"""Expiry from Spark: after writes, by the table's options, and by a call."""

import inspect

import pytest

import paimon_spark
from paimon_core.errors import InvalidInputError
from paimon_core.table import Table

pytestmark = pytest.mark.spark
FEW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}


def test_snapshots_expire_after_writes_and_by_call(spark, warehouse):
    path = f"{warehouse}/db.db/few"
    for i in range(4):
        write = spark.range(3 * i, 3 * i + 3, numPartitions=1).write.format("paimon").mode("append")
        write.options(**({"write-only": "true", **FEW} if i == 0 else {"write-only": "false"})).save(path)
    table = Table.open(path)
    assert [s.id for s in table.snapshots()] == [3, 4]
    opened = paimon_spark.PaimonTable.forPath(spark, path)
    assert opened.expireSnapshots(retainMax=1, dryRun=True).snapshots == (3,)
    expired = opened.expireSnapshots(retainMax=1)
    assert expired.snapshots == (3,)
    assert expired.files > 0
    assert [s.id for s in table.snapshots()] == [4]
    assert sorted(row.id for row in opened.toDF().collect()) == list(range(12))
    with pytest.raises(InvalidInputError, match="only its newest snapshot can be expired"):
        paimon_spark.PaimonTable.forPath(spark, path, **{"snapshot-id": "4"}).expireSnapshots()


def test_rollback_and_restore_by_id_and_time(spark, warehouse):
    path = f"{warehouse}/db.db/back"
    for i in range(3):
        spark.range(i, i + 1, numPartitions=1).write.format("paimon").mode("append").save(path)
    opened = paimon_spark.PaimonTable.forPath(spark, path)
    first = Table.open(path).snapshot(snapshot_id=1)
    assert opened.restore(1).id == 4
    assert [row.id for row in opened.toDF().collect()] == [0]
    assert opened.restore(3).id == 5
    assert opened.rollbackTo(timestamp=first.time_millis).id == 1
    assert [row.id for row in opened.toDF().collect()] == [0]
    assert opened.truncate() is not None
    assert opened.toDF().collect() == []
    with pytest.raises(InvalidInputError, match="only its newest snapshot can be restored"):
        paimon_spark.PaimonTable.forPath(spark, path, **{"snapshot-id": "1"}).restore(1)


def test_names_of_paimon_table_are_camel_case():
    for name, method in inspect.getmembers(paimon_spark.PaimonTable, inspect.isfunction):
        if name[0] != "_":
            assert not [word for word in (name, *inspect.signature(method).parameters) if "_" in word], name
