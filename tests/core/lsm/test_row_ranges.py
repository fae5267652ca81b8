import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError
from paimon_core.lsm.row_ranges import blobs_in_order, group_by_row_range, is_blob, overlap
from tests.support.manifests import data_file


def file(name, first, rows, sequence=1):
    return data_file(name, 0, rows - 1, sequence=(sequence, sequence), first_row_id=first)


def names(groups):
    return [[f.file_name for f in group] for group in groups]


def test_row_range_orders_newest_first_and_blobs_last():
    files = [file("b.blob", 2, 1), file("old", 0, 3), file("a.blob", 0, 2), file("new", 0, 3, 7), file("next", 3, 2)]
    assert names(group_by_row_range(files)) == [["new", "old", "a.blob", "b.blob"], ["next"]]
    assert [is_blob(f) for f in files] == [True, False, True, False, False]


BLOBS = [("a", 0, 2, 1), ("b", 2, 3, 1), ("c", 5, 1, 1)]


@pytest.mark.parametrize(
    ("newer", "read"),
    [
        ([], "abc"),
        ([("n", 0, 6, 2)], "n"),
        ([("n", 2, 3, 2)], "anc"),
        ([("n", 2, 3, 2), ("m", 2, 3, 3)], "amc"),
        ([("n", 0, 4, 2), ("m", 4, 2, 2)], "nm"),
        ([("n", 2, 4, 2), ("m", 2, 3, 3)], "amc"),
    ],
)
def test_newer_blob_file_hides_older_files_within_it(newer, read):
    result = blobs_in_order((file("data", 0, 6),), [file(*blobs) for blobs in (*BLOBS, *newer)])
    assert "".join(f.file_name for f in result) == read


@pytest.mark.parametrize(
    "files",
    [
        BLOBS[:2],
        BLOBS[1:],
        [BLOBS[0], BLOBS[2]],
        [("n", 0, 4, 2), *BLOBS],
        [("n", 1, 1, 2), *BLOBS],
        [("n", 0, 2, 1), *BLOBS],
        [("n", 5, 2, 2), *BLOBS],
        [],
    ],
)
def test_incomplete_blob_files_are_refused(files):
    with pytest.raises(CorruptedError, match="rows of data"):
        blobs_in_order((file("data", 0, 6),), [file(*blobs) for blobs in files])


def test_files_with_common_row_overlap():
    one = file("one", 2, 3)
    assert [overlap(one, file("x", *rows)) for rows in ((0, 2), (0, 3), (3, 1), (4, 9), (5, 9))] == [
        *[False, True, True],
        *[True, False],
    ]
    assert not overlap(one, file("x", None, 3))


def test_files_without_row_ids_are_separate_groups():
    assert names(group_by_row_range([file("x", None, 3), file("y", None, 3), file("z", 0, 3)])) == [["x"], ["y"], ["z"]]


@pytest.mark.parametrize("other", [(1, 3), (0, 2), (2, 5)])
def test_partly_shared_row_ranges_are_refused(other):
    with pytest.raises(CorruptedError, match=r"one .*two"):
        group_by_row_range([file("one", 0, 3, 2), file("two", *other)])


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), max_size=6), st.randoms())
def test_groups_equal_row_ranges(shape, random):
    files, first = [], 0
    for rows, slices in shape:
        files += [file(f"{first}-{i}", first, rows, i) for i in range(slices)]
        first += rows
    mixed = random.sample(files, len(files))
    result = group_by_row_range(mixed)
    assert [len(g) for g in result] == [slices for _, slices in shape]
    assert [g[0].first_row_id for g in result] == sorted({f.first_row_id for f in files})
    assert all(g[0].max_sequence_number == len(g) - 1 for g in result)
