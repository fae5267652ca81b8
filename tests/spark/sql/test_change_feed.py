"""Spark's change feed: ``CHANGES FROM VERSION``, and `changes` of readers of batches and streams."""

import random
from collections import Counter

import pyspark
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions.base import IllegalArgumentException

from tests.spark.conftest import MODE
from tests.support.draws import rounds
from tests.support.markdown import ROOT, fences

pytestmark = [
    pytest.mark.spark,
    pytest.mark.versions,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
    pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark 4.1 has no change feed"),
]
KEYED = "k INT NOT NULL, p INT, v STRING"
KINDS = {
    "keyed": "'primary-key' = 'k', 'bucket' = '2'",
    "append": "'bucket' = '-1'",
    "vectors": "'deletion-vectors.enabled' = 'true'",
    "lookup": "'primary-key' = 'k', 'bucket' = '1', 'changelog-producer' = 'lookup', "
    "'deletion-vectors.enabled' = 'true'",
}
KEYED_KINDS = ("keyed", "lookup")
REMOVED = ("delete", "update_preimage")


@pytest.fixture
def game(sql):
    """A table with a primary key and four versions: two inserts, an update, a delete, and the key 3 again."""
    sql(f"CREATE TABLE t ({KEYED}) TBLPROPERTIES ({KINDS['keyed']})")
    sql("INSERT INTO t VALUES (1, 0, 'a'), (2, 0, 'b')")
    sql("UPDATE t SET v = 'c' WHERE k = 1")
    sql("DELETE FROM t WHERE k = 2")
    sql("INSERT INTO t VALUES (3, 1, 'x')")
    return sql


def replayed(rows, changes):
    """Return the rows after changes (the columns of the table, type, version, time)."""
    result = Counter(rows)
    for *row, kind, _, _ in sorted(changes, key=lambda change: (change[-2], change[-3] not in REMOVED)):
        result[tuple(row)] += -1 if kind in REMOVED else 1
        assert result[tuple(row)] >= 0, (row, kind)
    return +result


@pytest.mark.more
def test_changes_of_versions(game):
    changes = [
        (1, 1, "insert"),
        (1, 2, "insert"),
        (2, 1, "delete"),
        (2, 1, "insert"),
        (3, 2, "delete"),
        (4, 3, "insert"),
    ]
    select = "SELECT _commit_version, k, _change_type FROM t CHANGES FROM VERSION"
    assert sorted(game(f"{select} 1")) == changes
    assert sorted(game(f"{select} 2 TO VERSION 3")) == changes[2:5]
    assert sorted(game(f"{select} 2 EXCLUSIVE TO VERSION 4 EXCLUSIVE")) == changes[4:5]
    assert game(f"{select} 1 WHERE k = 3 AND _change_type = 'insert'") == changes[5:]
    assert game("SELECT count(*) FROM t CHANGES FROM VERSION 1") == [(6,)]
    game("CALL sys.create_tag('t', 'two', 2)")
    assert sorted(game(f"{select} 'two' TO VERSION 3")) == changes[2:5]
    times = dict(game("SELECT _commit_version, CAST(_commit_timestamp AS STRING) FROM t CHANGES FROM VERSION 1"))
    between = f"TIMESTAMP '{times[2]}' TO TIMESTAMP '{times[3]}'"
    assert sorted(game(f"{select.replace('VERSION', '')} {between}")) == changes[2:5]


@pytest.mark.more
def test_updates_and_net_changes(game):
    options = "WITH (deduplicationMode = '{}', computeUpdates = '{}')"
    found = game(f"SELECT k, v, _change_type FROM t CHANGES FROM VERSION 2 {options.format('dropCarryovers', 'true')}")
    assert sorted(found) == [
        (1, "a", "update_preimage"),
        (1, "c", "update_postimage"),
        (2, "b", "delete"),
        (3, "x", "insert"),
    ]
    net = f"SELECT k, v, _change_type FROM t CHANGES FROM VERSION 1 {options.format('netChanges', 'false')}"
    assert sorted(game(net)) == [(1, "c", "insert"), (3, "x", "insert")]
    game("UPDATE t SET v = 'd' WHERE k = 1")
    net = f"SELECT k, v, _change_type FROM t CHANGES FROM VERSION 2 {options.format('netChanges', 'true')}"
    update = [(1, "a", "update_preimage"), (1, "d", "update_postimage")]
    assert sorted(game(net)) == [*update, (2, "b", "delete"), (3, "x", "insert")]


def test_refusals(game):
    game("CREATE TABLE a (k INT, v STRING)")
    game("INSERT INTO a VALUES (1, 'a')")
    wrong = {
        "t CHANGES FROM VERSION 9": "version 9 of .* does not exist: the newest is 4",
        "t CHANGES FROM VERSION 'no'": "'no' is neither a snapshot nor a tag",
        "`t$files` CHANGES FROM VERSION 1": r"t\$files has no changes: name the table itself",
        "a CHANGES FROM VERSION 1 WITH (deduplicationMode = 'netChanges')": "net changes of .* need a primary key",
        "a CHANGES FROM VERSION 1 WITH (computeUpdates = 'true')": "do not show which deletes and inserts are updates",
    }
    for text, message in wrong.items():
        with pytest.raises(IllegalArgumentException, match=message):
            game(f"SELECT * FROM {text}")
    with pytest.raises(Exception, match=r"option 'limit' is not possible for a read of changes"):
        game("SELECT * FROM t CHANGES FROM VERSION 1 WITH ('limit' = '3')")
    with pytest.raises(Exception, match=r"NOT_FOUND"):
        game("SELECT * FROM missing CHANGES FROM VERSION 1")


@pytest.mark.more
def test_branches_and_paths(game):
    game("CALL sys.create_branch('t', 'b')")
    game("INSERT INTO `t$branch_b` VALUES (7, 1, 'z')")
    assert game("SELECT k, _commit_version FROM `t$branch_b` CHANGES FROM VERSION 0") == [(7, 1)]
    path = game("DESCRIBE TABLE EXTENDED t")
    location = next(row[1] for row in path if row[0] == "Location")
    assert len(game(f"SELECT * FROM pm.`{location}` CHANGES FROM VERSION 1")) == 6


def streamed(sql, reader, checkpoint, name="t"):
    """Run a stream of changes until no new commit exists; return the changes."""
    seen = []
    query = (
        reader.changes(name)
        .writeStream.foreachBatch(lambda frame, number: seen.extend(tuple(row) for row in frame.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return seen


@pytest.mark.more
def test_a_stream_continues_after_restarts(game, tmp_path):
    spark = game.spark
    every = game("SELECT * FROM t CHANGES FROM VERSION 1")
    first = streamed(game, spark.readStream, tmp_path / "c")
    assert sorted(first) == sorted(every)
    assert streamed(game, spark.readStream, tmp_path / "c") == []
    game("CALL sys.compact('t')")
    game("UPDATE t SET v = 'e'")
    later = streamed(game, spark.readStream, tmp_path / "c")
    assert sorted((row[0], row[2], row[3]) for row in later) == [
        (1, "c", "delete"), (1, "e", "insert"), (3, "e", "insert"), (3, "x", "delete"),
    ]  # fmt: skip
    assert replayed([], first + later) == Counter(game("SELECT * FROM t"))
    tail = streamed(game, spark.readStream.option("startingVersion", "4"), tmp_path / "d")
    assert sorted(tail) == sorted([row for row in every if row[-2] == 4] + later)


@pytest.mark.more
def test_streams_that_are_refused(game, tmp_path):
    for option, value in (("deduplicationMode", "netChanges"), ("endingVersion", "3")):
        reader = game.spark.readStream.option("startingVersion", "1").option(option, value)
        with pytest.raises(StreamingQueryException, match=r"a stream (cannot merge|of) the changes"):
            streamed(game, reader, tmp_path / option)


def test_statements_of_page(game):
    """The statements of changes.md."""
    game("CALL sys.create_tag('t', 'first', 1)")
    page = ROOT / "docs" / "reference" / "sql" / "changes.md"
    (block,) = [fence.code for fence in fences(page) if fence.info == "sql"]
    statements = [part for part in block.split(";") if part.strip()]
    found = [len(game(statement)) for statement in statements]
    assert found == [3, 2, 6, 4, 6, 2]


def test_readers_of_batches(game):
    spark = game.spark
    reader = (
        spark.read.option("startingVersion", "2").option("endingVersion", "3").option("startingBoundInclusive", "false")
    )
    assert [(row.k, row._change_type) for row in reader.changes("t").collect()] == [(2, "delete")]
    assert spark.read.changes("t").count() == 6


def statement(rng, kind):
    """Return a random statement that changes the table."""
    keys = rng.sample(range(8), 3)
    values = ", ".join(f"({key}, {key % 2}, '{rng.choice('abc')}')" for key in keys)
    merge = (
        f"MERGE INTO t USING (SELECT * FROM VALUES {values} AS s(k, p, v)) s ON t.k = s.k "
        "WHEN MATCHED AND s.v = 'a' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    partitioned = f"INSERT OVERWRITE t PARTITION (p = 1) VALUES ({keys[0]}, 'o')"
    return rng.choice(
        [
            f"INSERT INTO t VALUES {values}",
            f"UPDATE t SET v = '{rng.choice('xyz')}' WHERE k < {keys[0]}",
            f"DELETE FROM t WHERE k = {keys[0]} OR v = '{rng.choice('abc')}'",
            f"INSERT INTO t REPLACE USING (v) VALUES {values}",
            f"INSERT OVERWRITE t VALUES {values}",
            merge if kind in KEYED_KINDS else partitioned,
            "CALL sys.compact('t')",
        ]
    )


@pytest.mark.more
@pytest.mark.drawn
@pytest.mark.parametrize(
    "kind", ["keyed", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "keyed")]
)
def test_changes_lead_from_version_to_version(sql, kind, tmp_path):
    rng = random.Random(kind)
    partitions = "" if kind in KEYED_KINDS else "PARTITIONED BY (p)"
    sql(f"CREATE TABLE t (k INT NOT NULL, p INT, v STRING) {partitions} TBLPROPERTIES ({KINDS[kind]})")
    sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 0, 'b'), (3, 1, 'c')")
    seen = streamed(sql, sql.spark.readStream, tmp_path / "c")
    for number in range(rounds(20, 6)):
        sql(statement(rng, kind))
        if number % 3 == 2:
            seen += streamed(sql, sql.spark.readStream, tmp_path / "c")
    seen += streamed(sql, sql.spark.readStream, tmp_path / "c")
    ((last,),) = sql("SELECT max(snapshot_id) FROM `t$snapshots`")
    states = {i: Counter(sql(f"SELECT k, p, v FROM t VERSION AS OF {i}")) for i in range(1, last + 1)}
    assert replayed([], [(*row[:3], *row[-3:]) for row in seen]) == states[last]
    for _ in range(rounds(10, 3)):
        first, end = sorted(rng.sample(range(1, last + 1), 2))
        found = sql(f"SELECT * FROM t CHANGES FROM VERSION {first} EXCLUSIVE TO VERSION {end}")
        assert replayed(states[first], found) == states[end]
