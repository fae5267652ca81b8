"""Facts about deletion vectors that need no read of the vectors."""

from dataclasses import replace

from paimon_core.datafile.deletion_vectors import deleted_rows, restrict_to_files, rows_left
from paimon_core.deletion.vector_files import StoredVector
from paimon_core.manifest.bucket import group_by_bucket
from paimon_core.manifest.entry import ADD
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, DeletionRange, IndexManifestEntry
from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.scan.split import DataSplit
from tests.support.manifests import data_file

FILES = [data_file("a"), data_file("b"), data_file("c")]  # of ten rows each


def index(name, counts, bucket=0):
    ranges = tuple(DeletionRange(f, 1, 24, count) for f, count in counts.items())
    return IndexManifestEntry(ADD, EMPTY_ROW, bucket, DELETION_VECTORS, name, 29, len(ranges), ranges)


ONE, OTHER = index("one", {"a": 3, "b": 4}), index("other", {"c": 5}, bucket=1)
OLD = index("old", {"a": None, "c": 5})
HASHES = IndexManifestEntry(ADD, EMPTY_ROW, 0, HASH, "h", 4, 1)


def test_restrict_to_files_drops_other_ranges():
    narrow = replace(ONE, deletion_ranges=ONE.deletion_ranges[1:], row_count=1)
    assert restrict_to_files([ONE, HASHES, OTHER], {"b", "c"}) == (narrow, OTHER)
    assert restrict_to_files([ONE, HASHES], {"c"}) == ()
    assert group_by_bucket([ONE, OTHER, OLD]) == {(EMPTY_ROW, 0): [ONE, OLD], (EMPTY_ROW, 1): [OTHER]}


def test_rows_left_is_unknown_without_cardinalities():
    assert deleted_rows([ONE, HASHES, OTHER], FILES[:2]) == {"a": 3, "b": 4}
    assert deleted_rows([OLD], FILES) == {"a": 10, "c": 5}
    assert rows_left(FILES, [ONE, OTHER]) == 18
    assert rows_left(FILES, []) == 30
    assert rows_left(FILES, [OLD]) is None


def test_split_row_count_needs_all_cardinalities():
    split = DataSplit(1, EMPTY_ROW, 0, -1, tuple(FILES), True)
    stored = [StoredVector("index/one", r) for r in ONE.deletion_ranges]
    assert split.certain_row_count == 30
    assert replace(split, vectors=tuple(stored)).certain_row_count == 23
    assert replace(split, vectors=(StoredVector("index/old", OLD.deletion_ranges[0]),)).certain_row_count is None
    assert replace(split, raw_convertible=False).certain_row_count is None
