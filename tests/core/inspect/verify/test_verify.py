"""Table.verify: tables of every kind are sound; every fault of a catalogue is named."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.inspect.verify.verify_report import KINDS as NAMES
from paimon_core.manifest.entry import DELETE
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn, UpdateType

KEYED = {"bucket": "2", "file.format": "parquet"}
KINDS = {
    "deduplicate": (True, KEYED),
    "orc": (True, {**KEYED, "file.format": "orc"}),
    "avro": (True, {**KEYED, "file.format": "avro"}),
    "dynamic": (True, {"bucket": "-1"}),
    "marked": (True, {**KEYED, "deletion-vectors.enabled": "true"}),
    "first-row": (True, {**KEYED, "merge-engine": "first-row", "changelog-producer": "lookup"}),
    "partial-update": (True, {**KEYED, "merge-engine": "partial-update", "changelog-producer": "full-compaction"}),
    "aggregation": (True, {**KEYED, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}),
    "input": (True, {**KEYED, "changelog-producer": "input"}),
    "postponed": (True, {"bucket": "-2"}),
    "truncated": (True, {**KEYED, "metadata.stats-mode": "truncate(3)"}),
    "append": (False, {}),
    "append buckets": (False, {"bucket": "3", "bucket-key": "k"}),
    "append marked": (False, {"deletion-vectors.enabled": "true"}),
    "tracked": (False, {"row-tracking.enabled": "true"}),
    "evolved": (False, {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}),
}
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("p", pa.string(), nullable=False),
        ("n", pa.float64()),
        ("d", pa.decimal128(9, 2)),
        ("t", pa.timestamp("ms")),
        ("s", pa.string()),
        ("l", pa.list_(pa.int32())),
    ]
)


def rows(first, count=40):
    ids = range(first, first + count)
    return pa.table(
        {
            "k": list(ids),
            "p": ["ab"[i % 2] for i in ids],
            "n": [None if i % 5 == 0 else float("nan") if i % 7 == 0 else i / 3 for i in ids],
            "d": [Decimal(i) / 4 for i in ids],
            "t": pa.array([i * 1000 for i in ids], pa.timestamp("ms")),
            "s": [f"text {i}" * (i % 3) for i in ids],
            "l": [[i, None] for i in ids],
        },
        schema=SCHEMA,
    )


def table_of(tmp_path, kind, name="t", **options):
    keyed, own = KINDS[kind]
    catalog = FileSystemCatalog(str(tmp_path / "w"))
    catalog.create_database("db", ignore_if_exists=True)
    schema = Schema(SCHEMA, primary_keys=["k", "p"] if keyed else [], partition_keys=["p"], options={**own, **options})
    return catalog.create_table(f"db.{name}", schema)


def history(tmp_path, kind, **options):
    """A table with changes, a compaction, a tag, a branch and expired snapshots."""
    table = table_of(tmp_path, kind, **options)
    for first in (0, 20, 60):
        table.write(rows(first))
    table.tags.create("v1", 2)
    if kind not in ("postponed", "first-row", "partial-update", "aggregation", "evolved"):
        table.delete("k < 5")
    table.compact(full=True)
    table.write(rows(10, 5))
    table.branches.create("b", tag="v1")
    Table.open(table.path, options={"branch": "b"}).write(rows(200, 3))
    table.maintenance.expire_snapshots(retain_max=3, retain_min=1, older_than=2**50)
    return Table.open(table.path)


@pytest.mark.cases(6)
@pytest.mark.parametrize("kind", KINDS)
def test_sound_table_has_no_fault(tmp_path, kind):
    table = history(tmp_path, kind)
    report = table.verify(deep=True)
    assert report.sound, str(report)
    assert report.branches == 2
    assert report.snapshots >= len(table.snapshots()) + 2
    assert report.files >= 4
    assert report.rows > 60
    assert str(report).startswith("0 faults in 2 branches, ")
    assert table.verify().rows == 0


def test_later_and_changed_columns_are_not_faults(tmp_path):
    table = history(tmp_path, "deduplicate")
    table.alter([AddColumn("more", "INT"), RenameColumn("s", "text"), DropColumn("l"), UpdateType("t", "TIMESTAMP(6)")])
    table = Table.open(table.path)
    table.write(table.to_arrow(limit=5))
    report = table.verify(deep=True)
    assert report.sound, str(report)


# ---- faults


def edited(table, change, **of_snapshot):
    """Give the newest snapshot other entries: ``change`` is called with its live entries."""
    store, snapshot = table.store, table.snapshot()
    entries = change(list(live_entries(store, snapshot).live))
    metas = store.manifests.write(entries)
    republished(table, metas, **of_snapshot)


def republished(table, metas, **of_snapshot):
    store, snapshot = table.store, table.snapshot()
    name, size = store.manifests.write_list(metas)
    empty, nothing = store.manifests.write_list([])
    changed = replace(
        snapshot,
        base_manifest_list=name,
        base_manifest_list_size=size,
        delta_manifest_list=empty,
        delta_manifest_list_size=nothing,
        **{"delta_record_count": 0, **of_snapshot},
    )
    Path(store.snapshots.path(snapshot.id)).write_bytes(changed.to_json())


def first_with(entries, **of_file):
    """Change the first file's metadata."""
    return [replace(entries[0], file=replace(entries[0].file, **of_file)), *entries[1:]]


def newest(table):
    return Path(table.store.snapshots.path(table.snapshot().id))


def garble(path, offset=None):
    data = bytearray(Path(path).read_bytes())
    at = len(data) // 2 if offset is None else offset
    data[at : at + 8] = b"\xff" * 8
    Path(path).write_bytes(bytes(data))


def set_in_snapshot(table, **values):
    path = newest(table)
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def data_file(table, suffix="parquet"):
    entry = live_entries(table.store, table.snapshot()).live[0]
    return Path(table.store.file_path(entry.bucket_ref, entry.file))


def index_manifest(table, change):
    store, snapshot = table.store, table.snapshot()
    name = store.manifests.write_index(change(store.manifests.read_index(snapshot.index_manifest)))
    set_in_snapshot(table, indexManifest=name)


def with_range(entries, **values):
    ranges = entries[0].deletion_ranges
    return [replace(entries[0], deletion_ranges=(replace(ranges[0], **values), *ranges[1:])), *entries[1:]]


def index_file(table):
    store = table.store
    return Path(store.index_path(store.manifests.read_index(table.snapshot().index_manifest)[0]))


def manifest(table):
    store = table.store
    return Path(store.manifests.path(store.manifests.read_list(table.snapshot().base_manifest_list)[0].file_name))


def manifest_list(table):
    return Path(table.store.manifests.path(table.snapshot().base_manifest_list))


def metas_with(table, **values):
    metas = table.store.manifests.read_list(table.snapshot().base_manifest_list)
    edited_metas = [replace(metas[0], **values), *metas[1:]]
    store, snapshot = table.store, table.snapshot()
    name, size = store.manifests.write_list(edited_metas)
    set_in_snapshot(table, baseManifestList=name, baseManifestListSize=size)
    assert snapshot.id


def put_orphan(table):
    """Add a snapshot that was built on another history, as a commit leaves it that dies during a rollback."""
    newest = table.snapshot()
    orphan = replace(newest, id=newest.id + 1, delta_manifest_list="x", parent_delta_manifest_list="y", time_millis=1)
    table.store.io.write(table.store.snapshots.path(orphan.id), orphan.to_json())


FAULTS = {
    # kind of fault, kind of table, deep, how it is made
    "schema deleted": ("missing-schema", "append", False, lambda t: set_in_snapshot(t, schemaId=9)),
    "schema garbled": (
        "unreadable-schema",
        "append",
        False,
        lambda t: (t.alter([AddColumn("c", "INT")]), Path(t.path, "schema", "schema-0").write_text("{")),
    ),
    "snapshot garbled": (
        "unreadable-snapshot",
        "append",
        False,
        lambda t: Path(t.store.snapshots.path(t.snapshot().id - 1)).write_text("[]"),
    ),
    "snapshot deleted": (
        "missing-snapshot",
        "append",
        False,
        lambda t: (t.write(rows(400)), t.write(rows(500)), Path(t.store.snapshots.path(t.snapshot().id - 1)).unlink()),
    ),
    "snapshot of a dead commit": ("wrong-parent", "append", False, lambda t: put_orphan(t)),
    "hint garbled": ("wrong-hint", "append", False, lambda t: Path(t.path, "snapshot", "LATEST").write_text("x")),
    "hint too large": ("wrong-hint", "append", False, lambda t: Path(t.path, "snapshot", "LATEST").write_text("99")),
    "tag garbled": ("unreadable-tag", "append", False, lambda t: Path(t.store.tags.path("v1")).write_text("{}")),
    "consumer garbled": (
        "unreadable-consumer",
        "append",
        False,
        lambda t: (Path(t.path, "consumer").mkdir(), Path(t.path, "consumer", "consumer-c").write_text("{")),
    ),
    "branch without schema": (
        "missing-schema",
        "append",
        False,
        lambda t: [f.unlink() for f in Path(t.path, "branch", "branch-b", "schema").iterdir()],
    ),
    "manifest list deleted": ("missing-manifest-list", "append", False, lambda t: manifest_list(t).unlink()),
    "manifest list cut": (
        "unreadable-manifest-list",
        "append",
        False,
        lambda t: manifest_list(t).write_bytes(manifest_list(t).read_bytes()[:-20]),
    ),
    "manifest deleted": ("missing-manifest", "append", False, lambda t: manifest(t).unlink()),
    "manifest garbled": ("unreadable-manifest", "append", False, lambda t: garble(manifest(t))),
    "manifest counted wrongly": ("wrong-manifest-counts", "append", False, lambda t: metas_with(t, num_added_files=77)),
    "manifest of other buckets": (
        "wrong-manifest-ranges",
        "deduplicate",
        False,
        lambda t: metas_with(t, min_bucket=5, max_bucket=6),
    ),
    "manifest of other levels": (
        "wrong-manifest-ranges",
        "deduplicate",
        False,
        lambda t: metas_with(t, min_level=7, max_level=8),
    ),
    "bucket behind the last": (
        "wrong-file-metadata",
        "deduplicate",
        False,
        lambda t: edited(t, lambda e: [replace(e[0], bucket=2), *e[1:]]),
    ),
    "negative rows": (
        "wrong-file-metadata",
        "append",
        False,
        lambda t: edited(t, lambda e: first_with(e, row_count=-1)),
    ),
    "more deletes than rows": (
        "wrong-file-metadata",
        "deduplicate",
        False,
        lambda t: edited(t, lambda e: first_with(e, delete_row_count=999)),
    ),
    "sequence numbers turned round": (
        "wrong-file-metadata",
        "deduplicate",
        False,
        lambda t: edited(t, lambda e: first_with(e, min_sequence_number=9, max_sequence_number=2)),
    ),
    "total of rows": ("wrong-record-count", "append", False, lambda t: set_in_snapshot(t, totalRecordCount=1)),
    "rows of a change": ("wrong-record-count", "append", False, lambda t: set_in_snapshot(t, deltaRecordCount=1)),
    "file added twice": ("added-twice", "append", False, lambda t: edited(t, lambda e: [e[0], *e])),
    "file deleted that is not there": (
        "deleted-without-add",
        "append",
        False,
        lambda t: edited(
            t, lambda e: [*e, replace(e[0], kind=DELETE, file=replace(e[0].file, file_name="data-x.parquet"))]
        ),
    ),
    "data file deleted": ("missing-data-file", "append", False, lambda t: data_file(t).unlink()),
    "data file cut": (
        "wrong-size",
        "append",
        False,
        lambda t: data_file(t).write_bytes(data_file(t).read_bytes()[:-9]),
    ),
    "index manifest deleted": (
        "missing-index-manifest",
        "append marked",
        False,
        lambda t: set_in_snapshot(t, indexManifest="index-manifest-x"),
    ),
    "index file deleted": ("missing-index-file", "append marked", False, lambda t: index_file(t).unlink()),
    "index file cut": (
        "wrong-size",
        "append marked",
        False,
        lambda t: index_file(t).write_bytes(index_file(t).read_bytes() + b"x"),
    ),
    "hashes that do not fit": (
        "wrong-index",
        "dynamic",
        False,
        lambda t: index_manifest(t, lambda e: [replace(e[0], row_count=3), *e[1:]]),
    ),
    "vector of no file": (
        "stray-vector",
        "append marked",
        False,
        lambda t: index_manifest(t, lambda e: with_range(e, data_file="data-x")),
    ),
    "vector with too many rows": (
        "wrong-vector",
        "append marked",
        False,
        lambda t: index_manifest(t, lambda e: with_range(e, cardinality=9999)),
    ),
    "vector with other rows": (
        "unreadable-vector",
        "append marked",
        True,
        lambda t: index_manifest(t, lambda e: with_range(e, cardinality=1)),
    ),
    "vector garbled": ("unreadable-vector", "append marked", True, lambda t: garble(index_file(t), 12)),
    "statistics deleted": ("missing-statistics", "append", False, lambda t: set_in_snapshot(t, statistics="stats-x")),
    "files that overlap": (
        "overlapping-files",
        "deduplicate",
        False,
        lambda t: edited(
            t,
            lambda e: [*e, *(replace(x, file=replace(x.file, file_name="data-x.parquet")) for x in e if x.file.level)],
        ),
    ),
    "keys turned round": (
        "wrong-key-range",
        "deduplicate",
        False,
        lambda t: edited(
            t, lambda e: [replace(x, file=replace(x.file, min_key=x.file.max_key, max_key=x.file.min_key)) for x in e]
        ),
    ),
    "several numbers of buckets": (
        "several-bucket-numbers",
        "deduplicate",
        False,
        lambda t: edited(t, lambda e: [replace(e[0], total_buckets=5), *e[1:]]),
    ),
    "row ids twice": (
        "wrong-row-ids",
        "tracked",
        False,
        lambda t: edited(t, lambda e: [replace(x, file=replace(x.file, first_row_id=0)) for x in e]),
    ),
    "row ids behind the next": ("wrong-row-ids", "tracked", False, lambda t: set_in_snapshot(t, nextRowId=3)),
    "data file garbled": ("unreadable-data-file", "append", True, lambda t: garble(data_file(t), 4)),
    "fewer rows than promised": (
        "unreadable-data-file",
        "append",
        True,
        lambda t: edited(t, lambda e: first_with(e, row_count=1), total_record_count=None),
    ),
    "rows of another bucket": ("wrong-bucket", "deduplicate", True, None),
    "other sequence numbers": (
        "wrong-sequences",
        "deduplicate",
        True,
        lambda t: edited(t, lambda e: first_with(e, max_sequence_number=10_000)),
    ),
    "other deletes": (
        "wrong-delete-count",
        "deduplicate",
        True,
        lambda t: edited(t, lambda e: first_with(e, delete_row_count=1)),
    ),
    "other first key": (
        "wrong-key-range",
        "deduplicate",
        True,
        lambda t: edited(t, lambda e: first_with(e, min_key=e[0].file.max_key)),
    ),
    "other statistics": (
        "wrong-statistics",
        "append",
        True,
        lambda t: edited(t, lambda e: first_with(e, value_stats=e[1].file.value_stats)),
    ),
}


@pytest.mark.cases(16)
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named(tmp_path, name):
    kind, of_table, deep, damage = FAULTS[name]
    table = history(tmp_path, of_table)
    if of_table in ("append marked", "tracked"):
        table.write(rows(300))
        table.delete("k > 320")
    if damage is None:
        bucket_files_swapped(table)
    else:
        damage(table)
    opened = Table.open(table.path)
    report = opened.verify(deep=deep)
    assert kind in report.kinds, str(report)
    assert kind not in opened.verify().kinds or not deep, str(report)
    assert f"{kind}: " in str(report)
    fault = next(one for one in report.faults if one.kind == kind)
    assert fault.path.startswith(table.path) or fault.path.startswith("p="), fault


def bucket_files_swapped(table):
    """Let two buckets of a partition have each other's file."""
    entries = live_entries(table.store, table.snapshot()).live
    pairs = {}
    for entry in entries:
        pairs.setdefault((entry.partition, entry.file.level), {})[entry.bucket] = entry
    a, b = next((p[0], p[1]) for p in pairs.values() if len(p) == 2)
    paths = [Path(table.store.file_path(e.bucket_ref, e.file)) for e in (a, b)]
    for path, target in zip(paths, reversed(paths), strict=True):
        (target.parent / path.name).write_bytes(path.read_bytes())
    edited(table, lambda e: [x for x in e if x not in (a, b)] + [replace(a, file=b.file), replace(b, file=a.file)])


def test_catalogue_has_at_least_thirty_faults():
    assert len(FAULTS) >= 30


def test_page_names_every_kind():
    page = (Path(__file__).parents[4] / "docs" / "guides" / "verify-and-repair.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    assert {kind for row in rows for kind in re.findall(r"`([a-z-]+)`", row)} == NAMES
    assert {kind for kind, *_ in FAULTS.values()} <= NAMES


def test_nothing_is_reported_twice_and_nothing_is_changed(tmp_path):
    table = history(tmp_path, "deduplicate")
    data_file(table).unlink()
    files = sorted(map(str, Path(table.path).rglob("*")))
    done = []
    report = table.verify(deep=True, progress=lambda read, of: done.append((read, of)))
    assert len(set(report.faults)) == len(report.faults)
    assert [fault.kind for fault in report.faults] == ["missing-data-file"]
    assert done[-1][0] == done[-1][1] > 0
    assert sorted(map(str, Path(table.path).rglob("*"))) == files
