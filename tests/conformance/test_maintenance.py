"""Maintenance by both engines: partitions expire alike, and neither finds orphans after the other has looked."""

import random
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.table import Table
from tests.conformance.kinds import Kind, dotted
from tests.conformance.shared_table import SharedTable, created_by_java

pytestmark = pytest.mark.java
DAY = 86_400_000


def stamped(judge, name: str, **options: str) -> SharedTable:
    """A table of partitions by day, some of them without a time, written by both engines."""
    fields = [["dt", "STRING"], ["n", "INT"], ["v", "BIGINT"]]
    judge.call("create_table", table=name, fields=fields, partition_keys=["dt", "n"], options=options)
    table = SharedTable(judge, name)
    days = ("2024-01-01", "2024-1-2", "2024-02-31", "2999-01-01", "soon", None, "2024-01-01 25:00:00", "2023-13-01")
    for i, day in enumerate(days):
        table.java("write", rows=[["+I", {"dt": day, "n": i % 2, "v": i}]])
    return table


def partitions(table: SharedTable) -> list[tuple[object, object]]:
    rows = Table.open(table.path).to_arrow(columns=["dt", "n"]).to_pylist()
    java = table.java("read")["rows"]
    actual = sorted(((row["dt"], row["n"]) for row in rows), key=str)
    assert sorted(((row[1], row[2]) for row in java), key=str) == actual
    return actual


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"partition.expiration-max-num": "2"},
        {"partition.timestamp-pattern": "$dt $n:00:00"},
        {"partition.timestamp-formatter": "yyyy-M-d"},
        {"partition.timestamp-formatter": "yyyy-MM-dd HH:mm:ss", "partition.timestamp-pattern": "$dt 0$n:00:00"},
        {"partition.expiration-strategy": "update-time", "partition.expiration-time": "1 ms"},
    ],
    ids=lambda options: ",".join(f"{k.split('.')[1]}={v}" for k, v in options.items()) or "default",
)
def test_same_partitions_expire(judge, tmp_path, options, request):
    """Java expires them after a commit, of a copy; we by a call."""
    name = f"db.expire_{abs(hash(request.node.name)) % 10**8}"
    ours = stamped(judge, name)
    theirs = SharedTable(judge, f"{name}_twin")
    shutil.copytree(ours.path, theirs.path)
    given = {"partition.expiration-time": "30 d", **options}
    time.sleep(0.01)
    Table.open(ours.path).with_options(given).maintenance.expire_partitions()
    changes = [
        {"op": "set_option", "key": k, "value": v}
        for k, v in {**given, "partition.expiration-check-interval": "0 s"}.items()
    ]
    theirs.java("alter_table", changes=changes)
    theirs.java("write", rows=[["+I", {"dt": "2999-01-01", "n": 7, "v": 7}]])
    late = ("2999-01-01", 7)
    assert len(partitions(ours)) < 8
    assert [one for one in partitions(theirs) if one != late] == partitions(ours)


def test_neither_finds_orphans_after_other(judge):
    kind = dotted(
        "maintenance", {"deletion-vectors.enabled": "true"}, Kind("keyed", {"bucket": "2"}, ("p", "k"), ("p",))
    )
    table = created_by_java(judge, "db.orphans", kind)
    rng = random.Random(5)
    for i in range(4):
        (table.we_write if i % 2 else lambda rows: table.java("write", rows=rows))(kind.rows(rng, 12))
    table.java("create_tag", name="v1", snapshot=1)
    table.java("compact", kind="full")
    Table.open(table.path).branches.create("b", tag="v1")
    rows, tagged = table.java("read")["rows"], Table.open(table.path).to_arrow(tag="v1").num_rows
    Table.open(table.path).maintenance.expire_snapshots(retain_max=1, retain_min=1)
    for ours_first in (True, False):
        for stray in ("manifest/manifest-x-0", "index/index-x-0", "snapshot/.snapshot-7.x.tmp"):
            (Path(table.path) / stray).parent.mkdir(exist_ok=True)
            (Path(table.path) / stray).write_text("x")
        time.sleep(0.02)
        now = int(time.time() * 1000) - 5
        if ours_first:
            assert Table.open(table.path).maintenance.remove_orphan_files(older_than=now).count == 3
        actual = table.java("remove_orphan_files", older_than_ms=now)["deleted"]
        assert actual == (0 if ours_first else 3)
        assert Table.open(table.path).maintenance.remove_orphan_files(older_than=now).count == 0
        assert table.java("read")["rows"] == rows
        assert Table.open(table.path).to_arrow(tag="v1").num_rows == tagged


TAGGED = {
    "hourly": {"tag.creation-period": "hourly"},
    "two hours": {"tag.creation-period": "two-hours", "tag.period-formatter": "without_dashes"},
    "daily": {"tag.creation-delay": "1 h", "tag.period-formatter": "without_dashes"},
    "completed": {"tag.creation-period": "hourly", "tag.automatic-completion": "true", "tag.num-retained-max": "3"},
    "of minutes": {"tag.creation-period-duration": "30 min", "sink.watermark-time-zone": "Asia/Tokyo"},
    "by process time": {"tag.automatic-creation": "process-time", "tag.creation-period": "hourly"},
}


@pytest.mark.parametrize("case", TAGGED)
def test_same_snapshots_get_same_automatic_tags(judge, case):
    """Java writes snapshots with watermarks; then a write of Java creates the tags, and of a copy one of ours."""
    table = SharedTable(judge, f"db.tags_{case.replace(' ', '_')}")
    judge.call("create_table", table=table.name, fields=[["v", "BIGINT"]], options={"snapshot.num-retained.min": "99"})
    minutes = (None, 0, 20, 61, 62, 200, 260, 1500, 1490, 3000)
    for i, minute in enumerate(minutes):
        mark = {} if minute is None else {"watermark": 1_733_392_800_000 + minute * 60_000}
        table.java("write", rows=[["+I", {"v": i}]], identifier=i, **mark)
    twin = SharedTable(judge, f"{table.name}_twin")
    shutil.copytree(table.path, twin.path)
    options = {"tag.automatic-creation": "watermark", **TAGGED[case]}
    for one in (table, twin):
        one.java("alter_table", changes=[{"op": "set_option", "key": k, "value": v} for k, v in options.items()])
    table.java("write", rows=[["+I", {"v": 99}]])
    Table.open(twin.path).write(pa.table({"v": pa.array([99], pa.int64())}))
    java, ours = ({t.name: t.snapshot.id for t in Table.open(one.path).tags.list()} for one in (table, twin))
    assert java == ours
    assert ours


def test_java_reads_tables_after_our_maintenance(judge):
    """Manifests compacted, a branch of a snapshot, missing files removed, a purge: each action, then a read by Java."""
    kind = dotted("left", {}, Kind("keyed", {"bucket": "2"}, ("p", "k"), ("p",)))
    table = created_by_java(judge, "db.left", kind)
    rng = random.Random(7)
    for i in range(6):
        rows = kind.rows(rng, 12)
        (table.we_write(rows) if i % 2 else table.java("write", rows=rows))
    ours = Table.open(table.path)

    def same_rows() -> int:
        java = table.java("read")["rows"]
        assert len(java) == Table.open(table.path).to_arrow().num_rows
        return len(java)

    before = same_rows()
    result = ours.maintenance.compact_manifests()
    assert result is not None
    assert result.commit_kind == "COMPACT"
    assert same_rows() == before
    table.java("compact_manifests")
    assert ours.maintenance.compact_manifests() is None, "nothing is left to do after Java"
    ours.branches.create("s", snapshot_id=ours.snapshot().id)
    table.java("write", rows=kind.rows(rng, 12))
    table.java("compact", kind="full")
    table.java("expire_snapshots", retain_max=1, retain_min=1)
    assert Table.open(table.path, branch="s").to_arrow().num_rows == before, "Java's expiry sees the tag of the branch"
    split = ours.scan().plan().splits[0]
    lost = Path(ours.store.file_path(split.bucket_ref, split.files[0]))
    lost.unlink()
    assert ours.maintenance.remove_missing_files() == [lost.name]
    same_rows()
    ours.maintenance.purge()
    assert same_rows() == 0
    table.java("write", rows=kind.rows(rng, 12))
    assert same_rows() > 0


@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket-key": "k"}], ids=["unaware", "buckets"])
@pytest.mark.cases(1)
def test_java_writes_after_branches_are_merged(judge, rng, options):
    """Each branch is written by both engines; Java reads the merged rows, adds to them and compacts them."""
    kind = Kind("merged", options)
    table = created_by_java(judge, f"db.merged_{len(options)}", kind)
    table.java("write", rows=kind.rows(rng, 20))
    table.java("create_tag", name="v1")
    table.java("create_branch", name="b", tag="v1")
    branch = SharedTable(judge, table.name, branch="b")
    for one in (table, branch):
        one.java("write", rows=kind.rows(rng, 20))
        one.we_write(kind.rows(rng, 20))
    ours, theirs = len(table.agree()), len(branch.agree())
    files = table.ours().branches.merge("b")
    assert files > 0
    assert len(table.agree()) == ours + theirs - 20
    table.java("write", rows=kind.rows(rng, 20))
    table.java("compact", kind="full")
    assert len(table.agree()) == ours + theirs
    branch.agree()
