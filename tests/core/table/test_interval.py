"""Changes between two snapshots, tags and times, by every source, in every way to ask for them."""

from random import Random

import pytest

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError, UnsupportedError
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.draws import rounds
from tests.support.tables import ORDERS, append_table, keyed_table, orders

BETWEEN, TIMES = "incremental-between", "incremental-between-timestamp"
MODE = "incremental-between-scan-mode"


def told(found):
    return [(row["rowkind"], row["id"], row["v"]) for row in found.to_pylist()]


def history(table):
    """Snapshot 1 and tag t1: rows 1 to 3. Snapshots 2, 3 and tag t2: 1 changed, 2 written again, 9 new, 3 deleted.

    Snapshot 4 and tag t3: a full compaction.
    """
    table.write(orders((1, "a", 0), (2, "b", 0), (3, "c", 0)))
    table.tags.create("t1")
    table.write(orders((1, "x", 0), (2, "b", 0), (9, "n", 0)))
    table.write(orders((3, "c", 0)), ["-D"])
    table.tags.create("t2")
    table.compact(full=True)
    table.tags.create("t3")
    return table


DIFFERENCE = [("-U", 1, "a"), ("+U", 1, "x"), ("-D", 3, "c"), ("+I", 9, "n")]
WRITTEN = [("+I", 1, "x"), ("+I", 2, "b"), ("+I", 9, "n"), ("-D", 3, "c")]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"changelog_producer": "input"},
        {"changelog_producer": "lookup"},
        {"bucket": "-1"},
        {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"},
    ],
)
def test_two_moments_are_compared_whatever_happened_between_them(tmp_path, options):
    table = history(keyed_table(tmp_path / "t", **{"bucket": "2", "write_only": "true", **options}))
    last = table.snapshot().id
    for ends in (("t1", "t2"), ("t1", "t3"), ("t1", None), ("t1", "latest")):
        assert sorted(told(table.changes(*ends))) == sorted(DIFFERENCE), ends
    assert sorted(told(table.changes(1, last, "diff"))) == sorted(DIFFERENCE)
    assert told(table.changes("t2", "t3")) == told(table.changes(2, 2, "diff")) == []
    rows = sorted((r["id"], r["v"]) for r in table.to_arrow().to_pylist())
    assert sorted(told(table.changes(0, last, "diff"))) == [("+I", *row) for row in rows]
    given = table.with_options({BETWEEN: "t1,t2"})
    assert sorted(told(given.changes())) == sorted(DIFFERENCE)
    assert sorted(r["id"] for r in given.to_arrow(columns=["v", "id"]).to_pylist()) == [1, 9]
    assert given.to_arrow(filter="v = 'n'", columns=["id"]).to_pylist() == [{"id": 9}]
    assert sum(batch.num_rows for batch in given.to_batches(limit=1)) == 1
    audit, binlog = (given.system_table(name).to_arrow().to_pylist() for name in ("audit_log", "binlog"))
    assert sorted((r["rowkind"], r["id"]) for r in audit) == [("+I", 9), ("+U", 1), ("-D", 3)]
    assert ("+U", [1, 1], ["a", "x"]) in [(r["rowkind"], r["id"], r["v"]) for r in binlog]


def test_sources_of_changes(tmp_path):
    table = history(keyed_table(tmp_path / "t", bucket="1", changelog_producer="lookup"))
    last = table.snapshot().id
    assert sorted(told(table.changes(table.tags.get("t1").snapshot.id, last, "delta"))) == sorted(WRITTEN)
    looked_up = [*DIFFERENCE, ("-U", 2, "b"), ("+U", 2, "b")]
    for mode in ("auto", "changelog", None):
        assert sorted(told(table.changes(table.tags.get("t1").snapshot.id, last, mode))) == sorted(looked_up), mode
    by_snapshot = table.with_options({BETWEEN: "t1,t3", "incremental-between-tag-to-snapshot": "true"})
    assert sorted(told(by_snapshot.changes())) == sorted(looked_up)
    assert sorted(told(by_snapshot.with_options({MODE: "delta"}).changes())) == sorted(WRITTEN)
    audit = by_snapshot.with_options({MODE: "delta"}).system_table("audit_log")
    assert sorted(told(audit.to_arrow())) == sorted(WRITTEN)
    with pytest.raises(UnsupportedError, match="deleted at snapshot"):
        by_snapshot.to_arrow()
    plain = history(keyed_table(tmp_path / "plain", bucket="1"))
    with pytest.raises(InvalidInputError, match="needs a changelog"):
        plain.changes(0, 2, "changelog")


def test_times_select_newest_snapshots(tmp_path):
    table = history(keyed_table(tmp_path / "t", bucket="1", write_only="true"))
    times = [snapshot.time_millis for snapshot in table.snapshots()]

    def between(start, end, **more):
        return told(table.with_options({TIMES: f"{start},{end}", **more}).changes())

    newest = {time: number for number, time in enumerate(times, 1)}  # of several snapshots at one time the last one
    for start in (times[0] - 1, *times):
        for end in (*times, times[-1] + 5):
            if start <= end:
                ends = newest.get(start, 0), newest.get(end, len(times))
                assert between(start, end) == told(table.changes(*ends)), (start, end)
    assert between(0, 1) == between(times[-1] + 1, times[-1] + 9) == []
    assert between("1970-01-01", "9999-01-01 00:00:00") == told(table.changes(0))
    assert sorted(between(times[0] - 1, times[-1], **{MODE: "diff"})) == sorted(told(table.changes(0, 4, "diff")))
    with pytest.raises(InvalidInputError, match="is after the second time"):
        between(5, 1)


def test_automatic_tag_is_compared_with_previous_one(tmp_path):
    table = history(keyed_table(tmp_path / "t", bucket="1"))
    for number, name in ((1, "2026-01-01"), (3, "2026-01-02"), (3, "2026-01-02 10")):
        table.tags.create(name, number)
    for tag, expected in (("2026-01-02", DIFFERENCE), ("2026-01-01", []), ("2026-01-09", []), ("2026-01-02 10", [])):
        assert told(table.with_options({"incremental-to-auto-tag": tag}).changes()) == expected, tag
    with pytest.raises(InvalidInputError, match="not the name of an automatic tag"):
        table.with_options({"incremental-to-auto-tag": "t1"}).changes()


@pytest.mark.parametrize(
    ("ends", "error", "message"),
    [
        ((3, 1), OutOfRangeError, "first snapshot, 3, is after the last snapshot, 1.*snapshots 1 to 4"),
        ((-1, 2), OutOfRangeError, "it has changes from 0 to 4"),
        ((1, 9), OutOfRangeError, "no changes from 1 to 9"),
        ((1, 9, "diff"), OutOfRangeError, "snapshot 9 .* does not exist"),
        (("t2", "t1"), OutOfRangeError, "is after the last snapshot"),
        (("t1", "2"), InvalidInputError, "a tag and a snapshot"),
        (("t1", "nope"), NotFoundError, "'nope' is neither a snapshot nor a tag .* there are t1, t2, t3"),
        ((1, 2, "difference"), InvalidInputError, "one of auto, delta, changelog, diff"),
        ((None, 2), InvalidInputError, "from_snapshot is required"),
        ((), InvalidInputError, "from_snapshot, or the option .* is required"),
    ],
)
def test_bad_ends_of_range_are_refused(tmp_path, ends, error, message):
    table = history(keyed_table(tmp_path / "t", bucket="1", write_only="true"))
    with pytest.raises(error, match=message):
        table.changes(*ends)


def test_tag_outlives_its_snapshot(tmp_path):
    table = history(keyed_table(tmp_path / "t", bucket="1", write_only="true"))
    table.write(orders((4, "d", 0)))
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than="9999-01-01")
    assert told(table.changes("t1", "t2")) == DIFFERENCE
    assert told(table.changes("t1")) == [*DIFFERENCE[:3], ("+I", 4, "d"), DIFFERENCE[3]]
    with pytest.raises(OutOfRangeError, match=r"snapshot 1 .* does not exist"):
        table.changes(1, 5, "diff")
    with pytest.raises(OutOfRangeError, match="it has changes from 4 to 5"):
        table.changes(1, 5)


def test_append_table_returns_new_rows_unless_files_were_replaced(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 0)))
    table.tags.create("t1")
    for number in range(6):
        table.write(orders((number, "b", 0)))
    table.tags.create("t2")
    assert told(table.changes("t1", "t2")) == [("+I", number, "b") for number in range(6)]
    table.compact(full=True)
    table.tags.create("t3")
    with pytest.raises(UnsupportedError, match=r"compacted into other files .* 'delta'"):
        table.changes("t1", "t3")
    assert (
        table.with_options({BETWEEN: "t1,t3", "incremental-between-tag-to-snapshot": "true"}).to_arrow().num_rows == 6
    )


def test_partitions_and_new_numbers_of_buckets(tmp_path):
    schema = Schema(
        ORDERS, primary_keys=["n", "id"], partition_keys=["n"], options={"bucket": "2", "write-only": "true"}
    )
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(orders(*((k, "a", k % 3) for k in range(60))))
    table.tags.create("t1")
    table.write(orders((1, "b", 1), (60, "b", 0)))
    table = Table.open(table.path)
    table.maintenance.rescale(5)
    table = Table.open(table.path)
    assert sorted(told(table.changes("t1"))) == [("+I", 60, "b"), ("+U", 1, "b"), ("-U", 1, "a")]
    given = table.with_options({BETWEEN: "t1,latest"})
    assert given.to_arrow(filter="n = 0", columns=["id"]).to_pylist() == [{"id": 60}]


def test_key_that_moves_to_another_partition_is_update(tmp_path):
    schema = Schema(ORDERS, primary_keys=["id"], partition_keys=["n"], options={"bucket": "-1"})
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(orders((1, "a", 1), (2, "b", 1)))
    table.tags.create("t1")
    table.write(orders((1, "a", 2)))
    actual = [(r["rowkind"], r["id"], r["n"]) for r in table.changes("t1").to_pylist()]
    assert actual == [("-U", 1, 1), ("+U", 1, 2)]


@pytest.mark.parametrize("engine", ["deduplicate", "first-row", "partial-update", "aggregation"])
def test_difference_equals_difference_of_two_reads(tmp_path, engine):
    options = {"merge-engine": engine, "bucket": "1", "num-sorted-run.compaction-trigger": "3"}
    if engine == "aggregation":
        options["fields.n.aggregate-function"] = "sum"
    random = Random(engine)
    table = keyed_table(tmp_path / "t", **options)
    for _ in range(rounds(60, least=12)):
        keys = random.sample(range(40), random.randint(1, 12))
        rows = [(k, random.choice(["a", "b", None]), random.choice([0, 1, None])) for k in keys]
        deletes = engine == "deduplicate" and random.random() < 0.3
        table.write(orders(*rows), ["-D"] * len(rows) if deletes else None)
        if random.random() < 0.2:
            table.compact(full=True)
    ids = [snapshot.id for snapshot in table.snapshots()]
    for _ in range(rounds(60, least=12)):
        first, last = sorted(random.sample(ids, 2))
        before, after = (
            {row["id"]: tuple(row.values()) for row in table.to_arrow(snapshot_id=i).to_pylist()} for i in (first, last)
        )
        expected = [("-D" if k not in after else "-U", *before[k]) for k in before if before[k] != after.get(k)]
        expected += [("+I" if k not in before else "+U", *after[k]) for k in after if after[k] != before.get(k)]
        actual = [tuple(row.values()) for row in table.changes(first, last, "diff").to_pylist()]
        assert sorted(actual, key=repr) == sorted(expected, key=repr), (first, last)
