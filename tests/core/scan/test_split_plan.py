"""The splits of files: the cases of `split_plan.txt`, laws of packing, and splits as bytes."""

import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import Packing, _pack_files, pack, plan_splits
from tests.support.manifests import KEY, data_file, data_files
from tests.support.text_cases import text_cases
from tests.support.text_tables import text_file, text_files


def splits(text: str) -> str:
    """Return the output for a case of `split_plan.txt`."""
    first, line = text.splitlines()
    kind, *words = first.split()
    sizes = dict(word.split("=") for word in words if "=" in word)
    files = [text_file(name, given, (0, 0)) for _, name, given in text_files(line.removeprefix("split"))]
    result = plan_splits(
        7,
        [ManifestEntry(ADD, EMPTY_ROW, 0, 1, f) for f in files],
        Packing(int(sizes["target"]), int(sizes["cost"])),
        KEY if kind == "keyed" else None,
        disjoint="deletion-vectors" in words,
        sliced="data-evolution" in words,
    )
    lines = (("raw" if s.raw_convertible else "merged", *(f.file_name for f in s.files)) for s in result)
    return "\n".join(map(" ".join, lines))


@text_cases(__file__, "split_plan.txt")
def test_split_plan_text_cases(case, check_case):
    check_case(case, splits)


@given(st.lists(st.integers(0, 120), max_size=30), st.integers(1, 100), st.integers(0, 50))
def test_pack_keeps_order_and_target_size(sizes, target, cost):
    bins = pack(list(enumerate(sizes)), lambda item: item[1], Packing(target, cost))
    assert [item for some in bins for item in some] == list(enumerate(sizes))
    weights = [[max(size, cost) for _, size in some] for some in bins]
    assert all(len(some) == 1 or sum(some) <= target for some in weights)
    assert all(sum(one) + other[0] > target for one, other in itertools.pairwise(weights))
    files = [data_file(str(i), file_size=size) for i, size in enumerate(sizes * 8)]
    assert _pack_files(files, Packing(target, cost)) == pack(files, lambda f: f.file_size, Packing(target, cost))


@given(st.lists(data_files, max_size=3), st.binary(max_size=9), st.booleans())
def test_split_round_trips_as_bytes(files, partition, raw):
    split = DataSplit(1, partition, 2, 3, tuple(files), raw)
    assert DataSplit.from_bytes(split.to_bytes()) == split
    assert pickle.loads(pickle.dumps(split)) == split


def test_bytes_that_are_not_split_are_refused():
    with pytest.raises(InvalidInputError, match="DataSplit"):
        DataSplit.from_bytes(b"garbage")
