import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.lsm.intervals import key_ranks, sections
from paimon_core.row.binary_row import serialize
from tests.support.draws import draws
from tests.support.manifests import KEY, data_file

ranges = st.tuples(st.integers(-30, 30), st.integers(0, 12)).map(lambda r: (r[0], r[0] + r[1]))


def files(*bounds):
    return [data_file(f"f{i}", low, high, level=i % 3) for i, (low, high) in enumerate(bounds)]


def shape(found):
    return [[[f.file_name for f in run.files] for run in section] for section in found]


def test_sections_of_worked_examples():
    result = sections(files((1, 2), (3, 4), (5, 180), (5, 190), (200, 600), (210, 700)), KEY)
    assert [len(section) for section in result] == [1, 1, 2, 2]
    assert shape(sections(files((0, 10), (10, 20)), KEY)) == [[["f0"], ["f1"]]]
    assert sections([], KEY) == []


def test_disjoint_files_share_run():
    result = sections(files((0, 100), (0, 10), (11, 20), (21, 30)), KEY)
    assert shape(result) == [[["f1", "f2", "f3"], ["f0"]]]
    assert [run.level for run in result[0]] == [2, 0]


def reference(given_files):
    """Apply the written rule, by a linear search for the run that ends first."""
    order = sorted(given_files, key=lambda f: (f.low, f.high))
    result, reach = [], None
    for f in order:
        if reach is None or f.low > reach:
            result.append([])
        reach = f.high if reach is None else max(reach, f.high)
        runs = result[-1]
        first = min(runs, key=lambda run: run[-1].high) if runs else None
        if first is not None and f.low > first[-1].high:
            first.append(f)
        else:
            runs.append([f])
    return result


class Range:
    def __init__(self, name, low, high):
        self.name, self.low, self.high = name, low, high


@draws(150)
@given(st.lists(ranges, max_size=25))
def test_sections_equal_plain_rule(bounds):
    result = sections(files(*bounds), KEY)
    expected = reference([Range(f"f{i}", *b) for i, b in enumerate(bounds)])
    assert [len(s) for s in result] == [len(s) for s in expected]
    names = [sorted(f.file_name for run in s for f in run.files) for s in result]
    assert names == [sorted(r.name for run in s for r in run) for s in expected]
    by_name = {f"f{i}": b for i, b in enumerate(bounds)}
    for section in result:
        for run in section:
            spans = [by_name[f.file_name] for f in run.files]
            assert all(a[1] < b[0] for a, b in itertools.pairwise(spans))
        deepest = max(sum(low <= k <= high for low, high in _spans(section, by_name)) for k in range(-30, 43))
        assert len(section) == deepest  # no fewer runs would do


def _spans(section, by_name):
    return [by_name[f.file_name] for run in section for f in run.files]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.int8(), pa.date32(), pa.timestamp("us"), pa.bool_()])
def test_ranks_order_keys_of_every_type(kind):
    values = {
        pa.string(): ["", "a", "ab", "b", "ä", "\U0001f600"],
        pa.binary(): [b"", b"\x00", b"a", b"\xff"],
        pa.bool_(): [False, True],
    }.get(kind, [-3, -1, 0, 2, 100])
    schema = pa.schema([pa.field("a", kind, nullable=False), pa.field("b", pa.int32(), nullable=False)])
    rows = [serialize((v, n), schema) for v in values for n in (-1, 5)]
    one = data_file()
    ordered = [type(one)(**{s: getattr(one, s) for s in one.__slots__} | {"min_key": r, "max_key": r}) for r in rows]
    low, high = key_ranks(ordered[::-1], schema)
    assert low.tolist() == high.tolist()
    assert (low[:-1] > low[1:]).all()
