"""Which files make which splits: the worked examples of the format's rules, and what they leave open."""

import itertools
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.manifest.stats import EMPTY_STATS
from paimon_core.row.binary_row import EMPTY_ROW, serialize
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import Packing, pack, plan_splits
from tests.support.manifests import KEY, data_files

SIZES = {"1": 11, "2": 13, "3": 46, "4": 23, "5": 4, "6": 101}


def file(name: str, low=0, high=0, size=1, level=0, deletes: int | None = 0, sequence=0) -> DataFileMeta:
    return DataFileMeta(
        name, size, 10, serialize((low,), KEY), serialize((high,), KEY), EMPTY_STATS, EMPTY_STATS, sequence, sequence,
        0, level, delete_row_count=deletes,
    )  # fmt: skip


def plan(files, target, cost, keys: pa.Schema | None = KEY) -> str:
    """Splits as text: files in order, * where they are read raw."""
    entries = [ManifestEntry(ADD, EMPTY_ROW, 0, 1, f) for f in files]
    splits = plan_splits(7, entries, Packing(target, cost), keys)
    return " ".join("".join(f.file_name for f in s.files) + ("*" if s.raw_convertible else "") for s in splits)


def sections_of_the_example(**last):
    ranges = {"1": (0, 10), "2": (0, 12), "3": (15, 60), "4": (18, 40), "5": (82, 85), "6": (100, 200)}
    return [file(n, *ranges[n], SIZES[n], **(last if n == "6" else {})) for n in SIZES]


LEVEL_0 = [("1", 0, 10), ("2", 0, 12), ("3", 13, 20), ("4", 21, 200), ("5", 201, 210), ("6", 211, 220)]
LEVEL_0_SIZES = {"1": 20, "2": 30, "3": 40, "4": 100, "5": 30, "6": 30}


@pytest.mark.parametrize(
    ("files", "target", "cost", "expected"),
    [
        (sections_of_the_example(), 100, 2, "12435 6*"),
        (sections_of_the_example(), 100, 30, "1243 5* 6*"),
        (sections_of_the_example(deletes=1), 100, 2, "12435 6"),
        (sections_of_the_example(deletes=None), 100, 2, "12435 6"),
        ([file(n, low, high, LEVEL_0_SIZES[n]) for n, low, high in LEVEL_0], 100, 2, "123 4* 56"),
        ([file("1", 0, 10, level=1), file("2", 10, 20, level=1)], 100, 2, "12*"),
        ([file("1", 0, 10, level=1), file("2", 10, 20, level=1, deletes=1)], 100, 2, "12"),
        ([file("1", 0, 10, level=1), file("2", 11, 20, level=2)], 100, 2, "12"),
        ([file("1", 0, 10, level=1), file("2", 11, 20, level=2)], 1, 2, "1* 2*"),
        ([file("1", 0, 10)], 100, 2, "1*"),
        ([], 100, 2, ""),
    ],
)
def test_splits_of_a_keyed_bucket(files, target, cost, expected):
    found = plan(files, target, cost)
    # within a section the order of runs is free, for the merge looks at ages and not at places
    assert [sorted(s) for s in found.split()] == [sorted(s) for s in expected.split()]


@pytest.mark.parametrize(
    ("target", "cost", "expected"),
    [(40, 2, "12* 3* 45* 6*"), (70, 2, "123* 45* 6*"), (40, 20, "12* 3* 4* 5* 6*"), (1000, 2, "123456*")],
)
def test_splits_of_an_append_bucket(target, cost, expected):
    files = [file(n, size=size, sequence=int(n)) for n, size in SIZES.items()]
    assert plan(files, target, cost, None) == expected
    assert plan(files[::-1], target, cost, None) == expected


def test_append_files_of_equal_numbers_keep_the_order_of_the_manifest():
    assert plan([file(n) for n in "3142"], 1000, 2, None) == "3142*"


@given(st.lists(st.integers(0, 120), max_size=30), st.integers(1, 100), st.integers(0, 50))
def test_packing_keeps_order_and_fills_no_bin_over_the_target(sizes, target, cost):
    bins = pack(list(enumerate(sizes)), lambda item: item[1], Packing(target, cost))
    assert [item for some in bins for item in some] == list(enumerate(sizes))
    weights = [[max(size, cost) for _, size in some] for some in bins]
    assert all(len(some) == 1 or sum(some) <= target for some in weights)
    assert all(sum(one) + other[0] > target for one, other in itertools.pairwise(weights))


@given(st.lists(data_files, max_size=3), st.binary(max_size=9), st.booleans())
def test_splits_travel(files, partition, raw):
    split = DataSplit(1, partition, 2, 3, tuple(files), raw)
    assert DataSplit.from_bytes(split.to_bytes()) == split
    assert pickle.loads(pickle.dumps(split)) == split


def test_bytes_that_are_no_split_are_refused():
    with pytest.raises(InvalidInputError, match="DataSplit"):
        DataSplit.from_bytes(b"garbage")
