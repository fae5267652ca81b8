"""Two sessions and a stream change one table at once: the result equals some serial order.

The check is stronger: the snapshots are that order. Each snapshot must be the one before it after exactly one statement
that was reported as done, or after a batch of the stream, or the same rows after a compaction.
"""

import random
import threading
import time

import pytest

import paimon_spark
from paimon_core.table import Table
from tests.spark.conftest import MODE
from tests.stream.chain import numbers_sent

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]
COUNTERS, DOOMED, INSERTED, STREAMED = 6, 100, 10_000, 1_000_000
"""Keys below the first are updated, those from the second on deleted; from the third and fourth on they are added."""
KINDS = {
    "append": "'write-only' = 'true'",
    "marked": "'deletion-vectors.enabled' = 'true'",
    "keyed": "'primary-key' = 'k', 'bucket' = '2'",
}
MODULUS = 1009


class Writer(threading.Thread):
    """A session that runs statements until a time, and until two are done; ``done`` holds these by their names.

    A statement that fails by a conflict leaves nothing, so the order of the snapshots has no place for its effect.
    """

    def __init__(self, session, number, end):
        super().__init__()
        self.session, self.number, self.end = session, number, end
        self.done, self.error = {}, None

    def run(self):
        """Run statements of all kinds."""
        rng = random.Random(self.number)
        self.session.sql("USE dml.db")
        turn = 0
        try:
            while time.monotonic() < self.end or (turn < 40 and len(self.done) < 2):
                name, kind = f"{self.number}-{turn}", ("updating", "merging", "deleting", "updating")[turn % 4]
                statement, effect = getattr(self, f"_{kind}")(name, turn, rng)
                try:
                    self.session.sql(statement).collect()
                except Exception as error:
                    if "conflict" not in str(error).lower():
                        raise
                else:
                    self.done[name] = effect
                turn += 1
        except Exception as error:
            self.error = error

    def _updating(self, name, turn, rng):
        factor, rest = rng.randrange(2, 9), rng.randrange(2)
        condition = f"k < {COUNTERS} AND k % 2 = {rest}"
        statement = f"UPDATE t SET n = (n * {factor} + 1) % {MODULUS}, last = '{name}' WHERE {condition}"

        def effect(rows):
            return {
                k: ((n * factor + 1) % MODULUS, name) if k < COUNTERS and k % 2 == rest else (n, last)
                for k, (n, last) in rows.items()
            }

        return statement, effect

    def _merging(self, name, turn, rng):
        key, old = INSERTED + self.number * 1000 + turn, rng.randrange(COUNTERS)
        source = f"SELECT explode(array({key}, {old})) AS k"
        statement = (
            f"MERGE INTO t USING ({source}) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = t.n + 1, last = '{name}' "
            f"WHEN NOT MATCHED THEN INSERT (k, n, last) VALUES (s.k, 0, '{name}')"
        )
        return statement, lambda rows: rows | {old: (rows[old][0] + 1, name), key: (0, name)}

    def _deleting(self, name, turn, rng):
        key = DOOMED + self.number * 1000 + turn
        return f"DELETE FROM t WHERE k = {key}", lambda rows: {k: v for k, v in rows.items() if k != key}


def rows_at(table, snapshot_id):
    """Return the rows of a snapshot by their keys. A key that is there twice is an error."""
    stored = table.to_arrow(snapshot_id=snapshot_id).to_pylist()
    rows = {row["k"]: (row["n"], row["last"]) for row in stored}
    assert len(rows) == len(stored), f"snapshot {snapshot_id} has a key twice"
    return rows


def check_order(table, effects):
    """Assert that each snapshot follows from the one before it; return the statements in their order."""
    snapshots = [snapshot.id for snapshot in table.snapshots()]
    before, order = rows_at(table, snapshots[0]), []
    for snapshot_id in snapshots[1:]:
        rows = rows_at(table, snapshot_id)
        streamed = {k: v for k, v in rows.items() if k >= STREAMED and k not in before}
        if rows not in (before, before | streamed):
            fits = [name for name, effect in effects.items() if name not in order and effect(before) == rows]
            assert len(fits) == 1, f"snapshot {snapshot_id} is no effect of one statement: {fits}"
            order += fits
        before = rows
    return order


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        pytest.param("append", 0, marks=pytest.mark.more),
        pytest.param("keyed", 0, marks=pytest.mark.more),
        *(pytest.param(kind, 60, marks=pytest.mark.slow) for kind in KINDS),
    ],
)
def test_two_sessions_and_stream_change_one_table(spark, warehouse, tmp_path, kind, seconds):
    paimon_spark.catalog(spark, "dml", warehouse=warehouse)
    spark.sql("CREATE DATABASE dml.db")
    retained = "'snapshot.num-retained.min' = '5000', 'snapshot.num-retained.max' = '5000'"
    spark.sql(f"CREATE TABLE dml.db.t (k BIGINT, n BIGINT, last STRING) TBLPROPERTIES ({KINDS[kind]}, {retained})")
    seeds = f"SELECT id, 0, '' FROM range({COUNTERS}) UNION ALL SELECT id, 0, '' FROM range({DOOMED}, {DOOMED + 2000})"
    spark.sql(f"INSERT INTO dml.db.t {seeds}").collect()
    end = time.monotonic() + seconds
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "20").option("numPartitions", "1")
    rows = numbers.load().selectExpr(f"value + {STREAMED} AS k", "0L AS n", "'stream' AS last")
    checkpoint = str(tmp_path / "checkpoint")
    stream = rows.writeStream.format("paimon").trigger(processingTime="5 seconds")
    stream = stream.option("checkpointLocation", checkpoint).start(f"{warehouse}/db.db/t")
    writers = [Writer(spark.newSession(), number, end) for number in range(2)]
    try:
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(seconds + 240)
        assert stream.exception() is None
    finally:
        stream.stop()
    assert [writer.error for writer in writers] == [None, None]
    assert all(writer.done and not writer.is_alive() for writer in writers)
    table = Table.open(f"{warehouse}/db.db/t")
    order = check_order(table, {name: effect for writer in writers for name, effect in writer.done.items()})
    assert sorted(order) == sorted(name for writer in writers for name in writer.done)
    streamed = sorted(k for k in rows_at(table, None) if k >= STREAMED)
    assert streamed == list(range(STREAMED, STREAMED + len(streamed)))
    assert len(streamed) in (numbers_sent(checkpoint), numbers_sent(checkpoint) - 20)
    spark.sql("DROP DATABASE dml.db CASCADE")
