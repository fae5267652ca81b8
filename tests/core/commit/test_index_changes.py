"""Index files over a commit: what is carried, replaced, dropped, and what two commits may not both do."""

from dataclasses import replace

from paimon_core.commit.index_changes import apply_indexes, index_conflict
from paimon_core.manifest.entry import ADD
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, DeletionRange, IndexManifestEntry


def index(name: str, *data_files: str, kind: str = DELETION_VECTORS, bucket: int = 0) -> IndexManifestEntry:
    ranges = tuple(DeletionRange(f, 1, 24, 2) for f in data_files) if kind == DELETION_VECTORS else None
    return IndexManifestEntry(ADD, b"", bucket, kind, name, 29, len(data_files), ranges)


def test_a_bucket_has_one_index_of_each_kind():
    base = [index("v0", "a"), index("h0", kind=HASH), index("v1", "b", bucket=1)]
    assert apply_indexes(base, added=[index("v2", "a", "c")]) == [*base[1:], index("v2", "a", "c")]
    assert apply_indexes(base, added=[index("h2", kind=HASH)]) == [base[0], base[2], index("h2", kind=HASH)]


def test_without_buckets_vectors_are_replaced_by_name_only():
    base = [index("v0", "a"), index("v1", "b")]
    added = [index("v2", "a", "c")]
    assert apply_indexes(base, added=added, one_a_bucket=False) == [*base, *added]
    assert apply_indexes(base, added=added, deleted={"v0"}, one_a_bucket=False) == [base[1], *added]


def test_vectors_go_with_their_files_and_unknown_kinds_stay():
    base = [index("v0", "a", "b"), index("v1", "c"), index("x", kind="range-bitmap-of-tomorrow")]
    half = replace(index("v0", "b"), file_size=base[0].file_size)
    assert apply_indexes(base, gone={"a", "c"}) == [half, base[2]]
    assert apply_indexes(base, emptied={(b"", 0)}) == []
    assert apply_indexes(base, gone={"z"}) == base


def test_two_commits_must_not_both_delete_rows_of_a_file():
    base = [index("v0", "a"), index("v1", "b")]
    assert index_conflict(base, [index("v2", "a", "c")], {"v0"}) is None
    for added, deleted, named in ([index("v2", "a")], {"v9"}, "v9"), ([index("v2", "b")], {"v0"}, "file b"):
        conflict = index_conflict(base, added, deleted)
        assert conflict is not None
        assert named in conflict.reason
