import itertools
from dataclasses import replace

import pytest

from paimon_core.deletion.vector import DeletionVector
from paimon_core.deletion.vector_files import VectorWriter, read_vectors
from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.index_entry import DeletionRange
from paimon_core.row.binary_row import EMPTY_ROW

VECTORS = {f"data-{i}.parquet": DeletionVector.of(range(i, i * i)) for i in range(2, 6)}


def writer(path, **options):
    names = map(str, itertools.count())
    return VectorWriter(FileIO.of(str(path)), lambda: next(names), **options)


@pytest.mark.parametrize("bitmap64", [False, True])
def test_vectors_of_bucket_share_one_file(tmp_path, bitmap64):
    io = FileIO.of(str(tmp_path))
    (entry,) = writer(tmp_path, bitmap64=bitmap64).write(str(tmp_path), BucketRef(EMPTY_ROW, 3), VECTORS)
    assert (entry.bucket, entry.row_count, entry.file_name) == (3, 4, "index-0-0")
    assert entry.file_size == len(io.read(join(str(tmp_path), entry.file_name)))
    assert [r.cardinality for r in entry.deletion_ranges] == [v.cardinality for v in VECTORS.values()]
    path = join(str(tmp_path), entry.file_name)
    assert read_vectors(io, path, entry.deletion_ranges) == VECTORS
    for stored in entry.deletion_ranges:
        assert read_vectors(io, path, [stored]) == {stored.data_file: VECTORS[stored.data_file]}
    assert read_vectors(io, path, []) == {}


def test_vector_file_equals_java_example(tmp_path):
    for bitmap64, length in ((False, 24), (True, 44)):
        (entry,) = writer(tmp_path, bitmap64=bitmap64).write(
            str(tmp_path), BucketRef(EMPTY_ROW, 0), {"f": DeletionVector.of([3, 7])}
        )
        assert entry.deletion_ranges == (DeletionRange("f", 1, length, 2),)


def test_vector_file_rolls_at_target_size(tmp_path):
    entries = writer(tmp_path, target_size=50).write(str(tmp_path), BucketRef(EMPTY_ROW, 0), VECTORS)
    assert [e.row_count for e in entries] == [2, 2]
    result = {}
    for entry in entries:
        result |= read_vectors(FileIO.of(str(tmp_path)), join(str(tmp_path), entry.file_name), entry.deletion_ranges)
    assert result == VECTORS


def test_empty_vectors_write_no_file(tmp_path):
    assert writer(tmp_path).write(str(tmp_path), BucketRef(EMPTY_ROW, 0), {"f": DeletionVector.of([])}) == ()
    assert list(tmp_path.iterdir()) == []


def test_failed_write_leaves_no_file(tmp_path):
    vectors = VECTORS | {"far": DeletionVector.of([1 << 31])}
    with pytest.raises(InvalidInputError):
        writer(tmp_path, target_size=1).write(str(tmp_path), BucketRef(EMPTY_ROW, 0), vectors)
    assert list(tmp_path.iterdir()) == []


def test_vector_that_differs_from_entry_is_refused(tmp_path):
    io, path = FileIO.of(str(tmp_path)), str(tmp_path / "index-0-0")
    (entry,) = writer(tmp_path).write(str(tmp_path), BucketRef(EMPTY_ROW, 0), VECTORS)
    first = entry.deletion_ranges[0]
    for wrong in (
        replace(first, offset=first.offset + 1),
        replace(first, offset=entry.file_size),
        replace(first, length=first.length + 1),
        replace(first, length=1 << 40),
        replace(first, offset=1 << 40),
        replace(first, offset=-8),
        replace(first, cardinality=1),
    ):
        with pytest.raises(CorruptedError, match=r"index-0-0, of data-2\.parquet"):
            read_vectors(io, path, [wrong])
    assert read_vectors(io, path, [replace(first, cardinality=None)]) == {first.data_file: VECTORS[first.data_file]}
    io.delete(path)
    with pytest.raises(CorruptedError, match="index-0-0"):
        read_vectors(io, path, [first])
