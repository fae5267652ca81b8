"""Rows that are ordered by the snapshot that added them (``sequence.snapshot-ordering``), as Java writes them."""

from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema
from paimon_core.commit import prepared_snapshot
from paimon_core.errors import UnsupportedError
from paimon_core.manifest.entry import ADD
from paimon_core.read.merge_masks import merge_masks, merged_sections
from paimon_core.schema import support
from paimon_core.snapshot.snapshot import CommitKind
from tests.support.edited_metadata import edit_entries

ROWS = pa.schema([pa.field("k", pa.int32(), False), ("v", pa.int64())])
ORDERED = {"bucket": "1", "write-only": "true", "sequence.snapshot-ordering": "true"}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table that this engine writes as Java does: a commit writes its snapshot id into the metadata of its files."""
    unstamped = prepared_snapshot.with_row_ids

    def stamped(options, changes, snapshot_id, next_row_id):
        changes, next_row_id = unstamped(options, changes, snapshot_id, next_row_id)
        if changes.kind == CommitKind.COMPACT:
            return changes, next_row_id
        numbers = {"min_sequence_number": snapshot_id, "max_sequence_number": snapshot_id}
        entries = [replace(e, file=replace(e.file, **numbers)) if e.kind == ADD else e for e in changes.entries]
        return replace(changes, entries=tuple(entries)), next_row_id

    limits = tuple(limit for limit in support.LIMITS if "ordered by the snapshot" not in limit.reason)
    monkeypatch.setattr(support, "LIMITS", limits)
    monkeypatch.setattr(prepared_snapshot, "with_row_ids", stamped)
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("d")
    return catalog.create_table("d.t", Schema(ROWS, primary_keys=["k"], options=ORDERED))


def commit_in_turn(table, *jobs):
    """Commit the rows of several writers that began at the same snapshot."""
    prepared = []
    for number, (rows, kinds) in enumerate(jobs):
        with table.writer(f"u{number}") as writer:
            writer.write(pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows.items()], ROWS), row_kinds=kinds)
            prepared.append((f"u{number}", writer.prepare_commit()))
    for user, messages in prepared:
        table.committer(user).commit(messages)


def found(table):
    return {row["k"]: row["v"] for row in table.to_arrow().to_pylist()}


def test_later_snapshot_wins_with_smaller_numbers(table):
    many = dict.fromkeys(range(100), 1)
    late = {50: 2, 99: 2}  # their writer counted from 0: its stored numbers are smaller
    commit_in_turn(table, (many, None), (late, None))
    assert found(table) == many | late
    table.compact(full=True)
    assert found(table) == many | late
    gone = dict.fromkeys((50, 51))
    commit_in_turn(table, (dict.fromkeys(range(60), 3), None), (gone, ["-D", "-D"]))
    expected = {k: 3 if k < 60 else (2 if k == 99 else 1) for k in range(100) if k not in gone}
    assert found(table) == expected
    (split,) = table.scan().plan().splits
    (section,) = merged_sections(table.store, split)
    assert sum(mask.sum() for mask in merge_masks(table.store, section).values()) == len(expected)
    table.compact()
    commit_in_turn(table, ({50: 4}, None))
    assert found(table) == expected | {50: 4}


def test_unknown_source_of_file_is_refused(table):
    commit_in_turn(table, ({1: 1}, None), ({1: 2}, None))
    with pytest.raises(UnsupportedError, match="does not say whether a compaction wrote it"):
        found(edit_entries(table, _FILE_SOURCE=None))


def test_writes_are_refused(table, monkeypatch):
    monkeypatch.undo()
    with pytest.raises(UnsupportedError, match=r"sequence\.snapshot-ordering"):
        table.write(pa.Table.from_pylist([{"k": 1, "v": 1}], ROWS))
