"""Expiry by Java and by us, of copies of one table: the same snapshots are left, and the same files."""

import json
import shutil
import time
from pathlib import Path

import pytest

from paimon_core.operations.history.expire import expire_after_commit
from tests.conformance.compare import same
from tests.conformance.kinds import Kind, dotted, keyed
from tests.conformance.shared_table import SharedTable, created_by_java

pytestmark = pytest.mark.java
HOUR = 3_600_000
KEPT = {"snapshot.num-retained.min": "100", "num-sorted-run.compaction-trigger": "3"}
KINDS = (
    dotted("append", KEPT, Kind("append", partition_keys=("p",))),
    dotted("keyed", KEPT, Kind("keyed", {"bucket": "1"}, ("p", "k"), ("p",), ("+I", "+U", "-D"))),
    dotted("lookup", {**KEPT, "changelog-producer": "lookup"}, keyed("lookup", bucket="1")),
    dotted("marked", {**KEPT, "deletion-vectors.enabled": "true"}, keyed("marked", bucket="1")),
)
LONGER = {"changelog.num-retained.max": "200", "snapshot.num-retained.max": "150"}


def history(judge, name, rng, kind, commits: int = 8) -> SharedTable:
    """Commits of both engines, with compactions between them, and a tag."""
    table = created_by_java(judge, name, kind)
    for i in range(commits):
        if i % 2:
            table.we_write(kind.rows(rng, 12))
        else:
            table.java("write", rows=kind.rows(rng, 12))
        if i in (2, 5):
            table.java("compact", kind="full")
        if i == 3:
            table.java("create_tag", name="v1")
    return table


def copied(table: SharedTable) -> SharedTable:
    """The table once more, file by file."""
    twin = SharedTable(table.judge, f"{table.name}_twin")
    shutil.copytree(table.path, twin.path)
    return twin


def left(table: SharedTable) -> list[str]:
    """Every file there is, and what the hint of the oldest snapshot says."""
    root = Path(table.path)
    hint = root / "snapshot" / "EARLIEST"
    files = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.suffix != ".crc"]
    return [f for f in sorted(files) if not f.endswith("EARLIEST")] + [hint.read_text().strip()]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.name, marks=[pytest.mark.slow] * (kind.name == "append")) for kind in KINDS]
)
@pytest.mark.cases(1)
def test_same_files_remain_after_expiry(judge, name, rng, kind):
    table = history(judge, name, rng, kind)
    tagged, ids = table.agree(tag="v1"), [s["id"] for s in table.java("snapshots")]
    for most in (len(ids) - 2, 4, 1):
        twin = copied(table)
        expired = twin.java("expire_snapshots", retain_max=most, retain_min=1, time_retained_ms=100 * HOUR)["expired"]
        ours = table.ours().maintenance.expire_snapshots(retain_max=most, retain_min=1, older_than=0)
        assert len(ours.snapshots) == expired > 0
        same(left(table), left(twin), f"{table.name}: what we left of {most} snapshots, and what Java did")
        same(table.agree(tag="v1"), tagged, "a tag outlives its snapshot")
        table.agree_everywhere()
        twin.java("drop_table")
    table.we_write(kind.rows(rng, 12))
    table.java("write", rows=kind.rows(rng, 12))
    table.java("compact", kind="full")
    table.agree_everywhere()


def test_by_time_and_with_a_consumer(judge, name, rng):
    """Snapshots an hour apart: both engines keep the same ones, by time and for a consumer."""
    kind = KINDS[0]
    table = history(judge, name, rng, kind)
    now, ids = int(time.time() * 1000), [s["id"] for s in table.java("snapshots")]
    for number in ids:
        path = Path(table.path) / "snapshot" / f"snapshot-{number}"
        path.write_text(json.dumps({**json.loads(path.read_text()), "timeMillis": now - (ids[-1] - number) * HOUR}))
    for hours, least, limit in ((5.5, 2, 100), (5.5, 2, 1), (0.5, 3, 100), (0, 1, 2), (0, 1, 100)):
        twin = copied(table)
        rules = {"retain_min": least, "time_retained_ms": int(hours * HOUR), "max_deletes": limit}
        twin.java("expire_snapshots", retain_max=100, **rules)
        if limit == 100:
            table.ours().maintenance.expire_snapshots(int(time.time() * 1000) - int(hours * HOUR), 100, least)
        else:
            options = {"snapshot.num-retained.min": str(least), "snapshot.expire.limit": str(limit)}
            expire_after_commit(table.ours(**options, **{"snapshot.time-retained": f"{int(hours * 60)} min"}).store)
        same(left(table), left(twin), f"{table.name}: {rules}")
        if limit == 1:
            for one in (table, twin):
                one.java("reset_consumer", consumer="c", next_snapshot=ids[-1] - 1)
        twin.java("drop_table")
    assert [s.id for s in table.ours().snapshots()] == ids[-2:]  # as the consumer needs them


def changes(table: SharedTable) -> list[str]:
    """Return all changes that we read."""
    return [str(row) for row in table.ours().changes(0).to_pylist()]


@pytest.mark.parametrize(
    "kind", [pytest.param(KINDS[1], id="keyed"), pytest.param(KINDS[2], id="lookup", marks=pytest.mark.slow)]
)
def test_changes_outlive_their_snapshots(judge, name, rng, kind):
    table = history(judge, name, rng, dotted(kind.name, LONGER, kind))
    newest = table.ours().snapshot().id
    told = changes(table)
    twin = copied(table)
    twin.java("expire_snapshots", retain_max=2, retain_min=1, time_retained_ms=100 * HOUR, changelog_retain_max=200)
    table.ours().maintenance.expire_snapshots(retain_max=2, retain_min=1, older_than=0)
    same(left(table), left(twin), f"{table.name}: what we left, and what Java did")
    for number in range(1, newest - 1):
        both = [json.loads((Path(one.path) / "changelog" / f"changelog-{number}").read_text()) for one in (table, twin)]
        assert both[0].items() >= both[1].items()
    for one in (table, twin):
        same(changes(one), told, f"{one.name}: changes of snapshots that are gone")
        one.agree_everywhere()
    few = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2", "changelog.num-retained.min": "1",
           "changelog.num-retained.max": "5"}  # fmt: skip
    rows = kind.rows(rng, 12)
    twin.java("write", rows=rows, options=few)
    ours = table.ours(**few)
    ours.write(table.arrow([row for _, row in rows]), [kind for kind, _ in rows])
    counts = [
        [sorted(p.name for p in (Path(one.path) / "changelog").glob("changelog-*")),
         len([p for p in Path(one.path).rglob("bucket-*/*") if not p.name.startswith(".")])]
        for one in (table, twin)
    ]  # fmt: skip
    same(counts[:1], counts[1:], f"{table.name}: changelogs and data after a commit")
    table.agree_everywhere()


def test_commits_expire_same_snapshots(judge, name, rng):
    """The same rows committed by either engine, by the table's own options."""
    options = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "4", "snapshot.expire.limit": "1"}
    kind = dotted("append", options, Kind("append"))
    table, twin = created_by_java(judge, name, kind), created_by_java(judge, f"{name}_twin", kind)
    for _ in range(7):
        rows = kind.rows(rng, 5)
        table.we_write(rows)
        twin.java("write", rows=rows)
        ids = [[s["id"] for s in one.java("snapshots")] for one in (table, twin)]
        assert ids[0] == ids[1]
        counts = [len(list(Path(one.path).rglob("manifest/manifest-*"))) for one in (table, twin)]
        assert counts[0] == counts[1]
    assert len(ids[0]) == 4
    table.agree_everywhere()
