"""Table.repair: of every seeded fault, it is repaired, or it stays with advice; no row is lost."""

import re
from pathlib import Path

import pyarrow.compute as pc
import pytest

from paimon_core import CorruptedError, OutOfRangeError, Table
from paimon_core.inspect.verify import correction
from paimon_core.inspect.verify.repair import ADVICE, MENDS
from paimon_core.inspect.verify.verify_report import KINDS
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn, RenameColumn
from tests.core.inspect.verify.test_verify import (
    FAULTS,
    bucket_files_swapped,
    data_file,
    edited,
    first_with,
    garble,
    history,
    index_file,
    rows,
    set_in_snapshot,
    table_of,
)

STAY = {
    "branch without schema", "bucket behind the last", "consumer garbled", "data file cut", "data file deleted",
    "data file garbled", "fewer rows than promised", "files that overlap", "index file deleted",
    "index manifest deleted", "manifest deleted", "manifest garbled", "manifest list cut", "manifest list deleted",
    "negative rows", "row ids twice", "rows of another bucket", "schema deleted", "schema garbled",
    "several numbers of buckets", "snapshot deleted", "snapshot garbled", "tag garbled", "vector garbled",
    "vector with other rows", "vector with too many rows",
}  # fmt: skip


def bytes_below(root):
    return {path: path.read_bytes() for path in Path(root).rglob("*") if path.is_file()}


def keys_of(table):
    try:
        return set(pc.unique(table.to_arrow(columns=["k"]).column("k")).to_pylist())
    except CorruptedError:
        return set()


def only_newest(table):
    """Let all snapshots but the newest one expire."""
    for tag in table.tags.list():
        if tag.name != "v1":
            table.tags.delete(tag.name)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=2**50)


def seeded(tmp_path, name):
    kind, of_table, deep, damage = FAULTS[name]
    table = history(tmp_path, of_table)
    if of_table in ("append marked", "tracked"):
        table.write(rows(300))
        table.delete("k > 320")
    (damage or bucket_files_swapped)(table)
    return Table.open(table.path), kind, deep


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_repaired_or_has_advice(tmp_path, name):
    table, kind, deep = seeded(tmp_path, name)
    before, actual, shown = bytes_below(table.path), table.verify(deep), keys_of(table)
    dry = table.repair(deep=deep, dry_run=True)
    assert bytes_below(table.path) == before
    report = table.repair(deep=deep)
    assert report.repaired == dry.repaired
    assert {*report.repaired, *(one.fault for one in report.left)} == set(actual.faults)
    assert all(one.advice for one in report.left)
    table = Table.open(table.path)
    assert keys_of(table) >= shown
    if name in STAY:
        assert kind in {one.fault.kind for one in report.left}
        return
    assert kind in {fault.kind for fault in report.repaired}
    assert kind in MENDS
    only_newest(table)
    after = table.verify(deep=deep)
    assert after.sound, str(after)
    again = table.repair(deep=deep)
    assert (again.repaired, again.left) == ((), ())


@pytest.mark.parametrize("name", ["data file deleted", "schema garbled", "manifest garbled", "tag garbled"])
def test_fault_without_repair_does_not_change_table(tmp_path, name):
    table, kind, deep = seeded(tmp_path, name)
    before = bytes_below(table.path)
    report = table.repair(deep=deep)
    assert (report.repaired, report.sound) == ((), False)
    assert bytes_below(table.path) == before
    assert f"left: {kind}: " in str(report)


def test_table_whose_snapshots_are_all_missing_is_not_repaired(tmp_path):
    """An expiry that was killed while a rollback ran leaves the hint LATEST, and no snapshot."""
    table = history(tmp_path, "append")
    for path in Path(table.path, "snapshot").glob("snapshot-*"):
        path.unlink()
    before = bytes_below(table.path)
    assert {fault.kind for fault in table.verify().faults} >= {"missing-snapshot"}
    with pytest.raises(OutOfRangeError, match="hint LATEST names snapshot"):
        table.repair()
    assert bytes_below(table.path) == before


def test_every_fault_is_repaired_or_has_advice():
    assert FAULTS.keys() >= STAY
    assert MENDS.keys() | ADVICE.keys() == KINDS


def test_page_has_repair_of_each_kind():
    page = (Path(__file__).parents[4] / "docs" / "guides" / "verify-and-repair.md").read_text()
    for kind in KINDS:
        assert f"| `{kind}` | {MENDS.get(kind, '')} | {ADVICE.get(kind, '')} |" in page, kind
    assert len(re.findall(r"^\| `[a-z-]+` \|.*\|.*\|$", page, re.MULTILINE)) == len(KINDS)


def test_sound_table_is_left_alone(tmp_path):
    table = history(tmp_path, "deduplicate")
    before = bytes_below(table.path)
    report = table.repair(deep=True)
    assert (report.repaired, report.left, report.sound) == ((), (), True)
    assert str(report) == "0 faults repaired, 0 left"
    assert bytes_below(table.path) == before


def test_corrected_snapshot_is_compact_without_changes(tmp_path):
    table, *_ = seeded(tmp_path, "total of rows")
    newest = table.snapshot().id
    table.repair()
    made = table.snapshot()
    assert (made.id, made.commit_kind, made.delta_record_count) == (newest + 1, "COMPACT", 0)
    assert made.total_record_count == table.to_arrow().num_rows
    left = table.repair().left
    assert [one.advice for one in left] == [
        "the newest snapshot does not have it: it disappears when the older snapshots expire"
    ]


def test_repair_in_branch(tmp_path):
    table = history(tmp_path, "append")
    branch = Table.open(table.path, options={"branch": "b"})
    set_in_snapshot(branch, totalRecordCount=1)
    report = Table.open(table.path).repair()
    assert [fault.kind for fault in report.repaired] == ["wrong-record-count"]
    assert Table.open(table.path, options={"branch": "b"}).snapshot().total_record_count == 83
    assert Table.open(table.path).snapshot().id == table.snapshot().id


# ---- what a person does


def test_missing_files_go_if_asked(tmp_path):
    table = history(tmp_path, "append")
    data_file(table).unlink()
    lost = table.verify().faults
    assert [fault.kind for fault in lost] == ["missing-data-file"]
    assert table.repair(missing_files=True, dry_run=True).repaired == lost
    assert table.repair(missing_files=True).repaired == lost
    assert 0 < table.to_arrow().num_rows < 120
    only_newest(table)
    kinds = table.verify(deep=True).kinds
    assert kinds in ([], ["missing-data-file"])  # the tag or the branch may still name it


@pytest.mark.parametrize("kind", ["deduplicate", "dynamic", "append marked"])
def test_deleted_unreadable_file_is_removed_from_table(tmp_path, kind):
    table = table_of(tmp_path, kind)
    table.write(rows(0))
    table.write(rows(100))
    data_file(table).write_bytes(b"?")
    assert "delete it" in table.repair().left[0].advice
    data_file(table).unlink()
    report = table.repair(missing_files=True)
    assert report.sound, str(report)
    only_newest(table)
    assert table.verify(deep=True).sound
    assert 40 <= table.to_arrow().num_rows < 80
    table.write(rows(0))
    assert table.verify(deep=True).sound


def test_unreadable_tag_is_deleted(tmp_path):
    table, *_ = seeded(tmp_path, "tag garbled")
    Path(table.store.tags.path("v1")).unlink()
    assert table.verify().sound
    table.maintenance.remove_orphan_files(older_than=table.store.now())
    assert table.verify(deep=True).sound


def test_unreadable_consumer_is_reset_or_deleted(tmp_path):
    table, *_ = seeded(tmp_path, "consumer garbled")
    table.consumers.reset("c", table.snapshot().id)
    assert table.verify().sound
    garble(Path(table.path, "consumer", "consumer-c"), 0)
    table.consumers.reset("c")
    assert table.verify().sound


@pytest.mark.parametrize("name", ["snapshot deleted", "snapshot garbled"])
def test_snapshots_before_a_gap_expire(tmp_path, name):
    table, *_ = seeded(tmp_path, name)
    Path(table.store.snapshots.path(table.snapshot().id - 1)).unlink(missing_ok=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=2**50)
    assert table.verify().sound


# ---- file indexes


INDEXED = {"file-index.bloom-filter.columns": "k", "file-index.bitmap.columns": "s"}


def indexed(tmp_path, kind, **options):
    table = table_of(tmp_path, kind, **INDEXED, **options)
    table.write(rows(0))
    table.write(rows(100))
    return Table.open(table.path)


def beside(table):
    """The index files next to data files."""
    return sorted(Path(table.path).rglob("*.index"))


@pytest.mark.parametrize("kind", ["append", "deduplicate"])
@pytest.mark.parametrize("damage", ["missing", "unreadable"])
def test_index_file_is_made_again_under_its_name(tmp_path, kind, damage):
    table = indexed(tmp_path, kind, **{"file-index.in-manifest-threshold": "1 b"})
    names = beside(table)
    assert names
    assert table.verify(deep=True).sound
    before = names[0].read_bytes()
    if damage == "missing":
        names[0].unlink()
    else:
        names[0].write_bytes(b"?" * 30)
    kinds = table.verify(deep=True).kinds
    assert kinds == (["missing-data-file"] if damage == "missing" else ["unreadable-file-index"])
    newest = table.snapshot().id
    report = table.repair(deep=damage == "unreadable")
    assert ([fault.path for fault in report.repaired], report.sound) == ([str(names[0])], True)
    assert names[0].read_bytes() == before
    assert table.snapshot().id == newest
    assert table.verify(deep=True).sound
    assert table.to_arrow(filter="k = 7").num_rows == 1


def test_unrequested_index_becomes_empty(tmp_path):
    table = indexed(tmp_path, "append", **{"file-index.in-manifest-threshold": "1 b"})
    beside(table)[0].unlink()
    unset = dict.fromkeys(INDEXED)
    table = table.with_options(unset)
    assert table.repair().sound
    assert table.verify(deep=True).sound
    assert table.to_arrow(filter="k = 7").num_rows == 1


def test_index_that_loses_rows_is_named_and_made_again(tmp_path):
    table = indexed(tmp_path, "append", **{"file-index.in-manifest-threshold": "1 mb"})
    entries = live_entries(table.store, table.snapshot()).live
    other = next(e for e in entries if e.file.embedded_index != entries[0].file.embedded_index)
    edited(table, lambda e: first_with(e, embedded_index=other.file.embedded_index))
    report = table.verify(deep=True)
    actual = set(report.kinds) - {"wrong-record-count"}  # of the edited snapshot
    assert actual
    assert actual <= {"wrong-file-index", "unreadable-file-index"}
    assert not actual & set(table.verify().kinds)
    assert {fault.kind for fault in table.repair(deep=True).repaired} == actual
    only_newest(table)
    assert table.verify(deep=True).sound
    assert table.to_arrow(filter="k = 7").num_rows == 1


@pytest.mark.parametrize("way", ["missing", "cut", "manifest"])
def test_hash_indexes_are_made_again(tmp_path, way):
    table = table_of(tmp_path, "dynamic")
    table.write(rows(0))
    table.delete("k < 3")
    table = Table.open(table.path)
    if way == "missing":
        index_file(table).unlink()
    elif way == "cut":
        index_file(table).write_bytes(index_file(table).read_bytes()[:-4])
    else:
        set_in_snapshot(table, indexManifest="index-manifest-x")
    report = table.repair()
    assert report.repaired
    assert report.sound, str(report)
    table = Table.open(table.path)
    table.write(rows(0))
    only_newest(table)
    assert table.verify(deep=True).sound
    assert table.to_arrow().num_rows == 40


def test_repair_keeps_rows_of_concurrent_writer(tmp_path, monkeypatch):
    table, *_ = seeded(tmp_path, "total of rows")
    shown = table.to_arrow().num_rows
    found = correction.find_correction

    def late(store, snapshot, known):
        result = found(store, snapshot, known)
        if not raced:
            raced.append(True)
            Table.open(table.path).write(rows(900, 5))
        return result

    raced = []
    monkeypatch.setattr(correction, "find_correction", late)
    assert table.repair().repaired
    assert Table.open(table.path).to_arrow().num_rows == shown + 5
    only_newest(table)
    assert table.verify(deep=True).sound


def test_old_schemas_and_columns_of_now(tmp_path):
    table = history(tmp_path, "deduplicate")
    table = table.alter([AddColumn("more", "INT"), RenameColumn("s", "text")])
    table.write(table.to_arrow(limit=5))
    shown = table.to_arrow().sort_by("k")
    edited(table, lambda e: [*first_with(e, delete_row_count=1)[:1], *e[1:]])
    report = Table.open(table.path).repair(deep=True)
    assert {fault.kind for fault in report.repaired} == {"wrong-delete-count"}
    table = Table.open(table.path)
    assert str(table.to_arrow().sort_by("k").to_pylist()) == str(shown.to_pylist())
    only_newest(table)
    assert table.verify(deep=True).sound
