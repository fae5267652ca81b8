"""Index files of a snapshot after a commit: kept, replaced and removed entries, and conflicts of two commits."""

from dataclasses import replace

import pytest

from paimon_core.commit.changes import Changes
from paimon_core.commit.index_changes import apply_indexes, vector_conflict
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, DeletionRange, IndexManifestEntry
from paimon_core.snapshot.snapshot import CommitKind
from tests.support.manifests import data_file


def index(name: str, *data_files: str, kind: str = DELETION_VECTORS, bucket: int = 0) -> IndexManifestEntry:
    ranges = tuple(DeletionRange(f, 1, 24, 2) for f in data_files) if kind == DELETION_VECTORS else None
    return IndexManifestEntry(ADD, b"", bucket, kind, name, 29, len(data_files), ranges)


def test_bucket_has_one_index_of_each_kind():
    base = [index("v0", "a"), index("h0", kind=HASH), index("v1", "b", bucket=1)]
    assert apply_indexes(base, added=[index("v2", "a", "c")]) == [*base[1:], index("v2", "a", "c")]
    assert apply_indexes(base, added=[index("h2", kind=HASH)]) == [base[0], base[2], index("h2", kind=HASH)]


def test_without_buckets_vectors_are_replaced_by_name_only():
    base = [index("v0", "a"), index("v1", "b")]
    added = [index("v2", "a", "c")]
    assert apply_indexes(base, added=added, single_index=False) == [*base, *added]
    assert apply_indexes(base, added=added, deleted=base[:1], single_index=False) == [base[1], *added]


def test_listed_vectors_of_replaced_file_are_removed():
    base = [index("v0", "a", "b", "c")]
    left = replace(base[0], deletion_ranges=base[0].deletion_ranges[1:], row_count=2)
    assert apply_indexes(base, deleted=[index("v0", "a")], single_index=False) == [left]
    assert apply_indexes(base, deleted=[index("v9", "a")], single_index=False) == base


def test_vectors_are_removed_with_their_files_and_unknown_kinds_stay():
    base = [index("v0", "a", "b"), index("v1", "c"), index("x", kind="range-bitmap-of-tomorrow")]
    half = replace(index("v0", "b"), file_size=base[0].file_size)
    assert apply_indexes(base, removed_files={"a", "c"}) == [half, base[2]]
    assert apply_indexes(base, cleared_buckets={(b"", 0)}) == []
    assert apply_indexes(base, removed_files={"z"}) == base


BASE = [index("v0", "a", "b"), index("v1", "c")]
LIVE = {"a", "b", "c", "d"}


def changes(*, new=(), old=(), removed_files=()):
    entries = tuple(ManifestEntry(DELETE, b"", 0, -1, data_file(name)) for name in removed_files)
    return Changes(CommitKind.OVERWRITE, entries, new_indexes=tuple(new), deleted_indexes=tuple(old))


@pytest.mark.parametrize(
    "held",
    [
        changes(new=[index("v2", "d")]),
        changes(new=[index("v2", "a", "b", "d")], old=BASE[:1]),
        changes(new=[index("v2", "a")], old=[index("v0", "a")]),
        changes(removed_files=["d"]),
        changes(removed_files=["a"], old=[index("v0", "a")]),
        changes(removed_files=["a", "c"], old=BASE),
    ],
)
def test_commit_with_all_vectors_replaces_them(held):
    assert vector_conflict(held, BASE, LIVE, single_index=False) is None


@pytest.mark.parametrize(
    ("late", "named"),
    [
        (changes(new=[index("v2", "a")]), "file a were deleted"),
        (changes(removed_files=["c"]), "file c were deleted"),
        (changes(removed_files=["c"], old=[index("v0", "a")]), "file c were deleted"),
        (changes(new=[index("v2", "a")], old=[index("v9", "a")]), "deleted rows of the file a"),
        (changes(new=[index("v2", "c")], old=[index("v0", "c")]), "deleted rows of the file c"),
        (changes(new=[index("v2", "e")]), "it deletes rows of the file e"),
        (changes(new=[index("v2", "d")], removed_files=["d"]), "it deletes rows of the file d"),
        (changes(new=[index("v2", "d"), index("v3", "d")]), "two deletion vectors"),
    ],
)
def test_commit_without_newest_vector_conflicts(late, named):
    conflict = vector_conflict(late, BASE, LIVE, single_index=False)
    assert conflict is not None
    assert named in conflict.reason


def test_vectors_of_missing_files_are_kept_and_do_not_grow():
    base = [index("v0", "a", "dead")]
    assert vector_conflict(changes(new=[index("v2", "dead", "d")], old=base), base, LIVE, single_index=True) is None
    grown = replace(index("v2", "d"), deletion_ranges=(DeletionRange("dead", 1, 24, 3),))
    conflict = vector_conflict(changes(new=[grown], old=base), base, LIVE, single_index=True)
    assert conflict is not None
    assert "it deletes rows of the file dead" in conflict.reason


def test_single_vector_file_not_read_completely_conflicts():
    base = [index("v0", "a")]
    for old, fits in ((base, True), ([], False)):
        conflict = vector_conflict(changes(new=[index("v2", "d")], old=old), base, LIVE, single_index=True)
        assert (conflict is None) == fits
    elsewhere = [index("v0", "a", bucket=1)]
    assert vector_conflict(changes(new=[index("v2", "d")]), elsewhere, LIVE, single_index=True) is None
