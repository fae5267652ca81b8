"""Unions of bitmaps and sketches, against bytes made by the Java engine."""

import builtins
import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, InvalidInputError, MissingDependencyError
from paimon_core.merge.aggregate import bitmap64
from paimon_core.merge.aggregate.bitmap import rbm32, rbm64
from paimon_core.merge.aggregate.bitmap64 import Bitmap64
from paimon_core.merge.aggregate.sketch import hll_sketch, theta_sketch
from tests.core.merge.aggregate.test_collection_model import ADD, RETRACT, feed

pytest.importorskip("datasketches")

# (function, two values, their union): of {1..6, 100000, -1} and {7, 70000, 2^32, 2^32 + 1}; {1..6, 100000} and
# {7, 70000, 100000, 2^32 - 1}; {1, 2, 3} and {3, 4} twice; {5} and nothing; nothing and nothing
JAVA = [
    (
        rbm64,
        "010300000000000000000200000000ff00000200040000000000000100040000000000000000000000000000"
        "00000004000000000000000001010000000000000004000000ffffffffffff020000000000000001000000fe"
        "03000000010006000000010001000500010201000000a086010201000000ffff030000000000000000000000"
        "02000000",
        "0103000000000000000002000300000000000100000200010000000100040000000000000000000000000000"
        "00000004000000000000000001010000000000000004000000000000010000020000000000000001000000fe"
        "0300000001020100000007000102010000007011010202000000000001000300000000000000000000000200"
        "0000",
        "010400000000000000000200000000ff00000200020000000001000002000100000001000400000000000000"
        "0000000000000000000004000000000000000001010000000000000004000000000000010000030000000000"
        "000004000000ffffffffffff020000000000000001000000fe04000000010007000000010001000600010202"
        "0000007011a086010201000000ffff0102020000000000010004000000000000000000000003000000",
    ),
    (
        rbm32,
        "3b300100010000050001000000010001000500a086",
        "3a300000030000000000000001000100ffff000020000000220000002600000007007011a086ffff",
        "3b300200010000060001000100ffff00000100010006007011a086ffff",
    ),
    (
        hll_sketch,
        "0201070c030803002bf2fb06862ff90d75816607",
        "0201070c030802007581660781bc5d06",
        "0201070c030804007581660781bc5d062bf2fb06862ff90d",
    ),
    (
        theta_sketch,
        "02030300001acc93030000000000803f15f97dcbbd86a105c397fc1281709d1eba40b3c1da06695d",
        "02030300001acc93020000000000803f40de2ee1c9db3d08ba40b3c1da06695d",
        "02030300001acc93040000000000803f15f97dcbbd86a10540de2ee1c9db3d08c397fc1281709d1eba40b3c1da06695d",
    ),
    (
        theta_sketch,
        "01030300003acc93bd3273724691cc14",
        "01030300001e0000",
        "01030300003acc93bd3273724691cc14",
    ),
    (
        theta_sketch,
        "01030300001e0000",
        "01030300001e0000",
        "01030300001e0000",
    ),
]


def union(make, *values):
    """Return the union of one group of values."""
    (result,) = feed(make, "BYTES", [([(value, ADD) for value in values], False)])
    return result


@pytest.mark.parametrize(("make", "one", "other", "both"), JAVA, ids=[case[0].__name__ for case in JAVA])
def test_unions_equal_java_bytes(make, one, other, both):
    assert union(make, bytes.fromhex(one), None, bytes.fromhex(other)).hex() == both


@pytest.mark.parametrize("make", [rbm32, rbm64, hll_sketch, theta_sketch])
def test_union_ignores_null_and_keeps_single_value(make):
    assert union(make, None, None) is None
    assert union(make, None, b"anything", None) == b"anything"


@pytest.mark.parametrize("make", [rbm32, rbm64, hll_sketch, theta_sketch])
def test_union_of_other_sketch_type_is_refused(make):
    with pytest.raises(CorruptedError, match="column 'v'"):
        union(make, b"garbage", b"garbage")
    with pytest.raises(InvalidInputError, match="cannot retract a value"):
        feed(make, "BYTES", [([(b"", ADD), (b"", RETRACT)], False)])
    with pytest.raises(InvalidInputError, match=r"'v' has type STRING.* takes VARBINARY"):
        feed(make, "STRING", [([("", ADD)], False)])


@pytest.mark.parametrize("make", [hll_sketch, theta_sketch])
def test_missing_sketch_library_names_its_extra(make, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "datasketches":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"pyspark-paimon\[sketches\]"):
        feed(make, "BYTES", [([(b"", ADD)], False)])


# ---- bitmaps of 64 bits


def single(value):
    """Return the bytes of a bitmap of one integer."""
    key = struct.pack(">Q", value)[:6]
    leaf = struct.pack("<bhb", 4, 0, 0) + key + bytes(8)
    container = struct.pack("<bbiH", 1, 2, 1, value & 0xFFFF)
    return (
        b"\1" + struct.pack("<q", 1) + leaf + struct.pack("<ibi", 1, -2, 1) + container + struct.pack("<qii", 1, 0, 0)
    )


def bitmap(values):
    made = Bitmap64(None, [], 0)
    for value in values:
        made.update(Bitmap64.parse(single(value)))
    return made


def values_of(made):
    return [
        int.from_bytes(key, "big") << 16 | int(low)
        for key, place in bitmap64._leaves(made.root)
        for low in made.containers[place].values
    ]


wide = st.integers(0, 2**64 - 1)
near = st.builds(
    lambda high, at, low: high << at | low, st.integers(0, 300), st.sampled_from([16, 24, 40, 48]), st.integers(0, 20)
)


@given(st.lists(wide | near, max_size=80), st.lists(wide | near, max_size=80))
def test_bitmap64_union_has_both_sets(some, more):
    made = Bitmap64.parse(bitmap(some).serialize())
    assert made.serialize() == bitmap(some).serialize()
    made.update(Bitmap64.parse(bitmap(more).serialize()))
    again = Bitmap64.parse(made.serialize())
    assert values_of(again) == values_of(made) == sorted({*some, *more})


@pytest.mark.parametrize("fan_out", [1, 4, 5, 16, 17, 48, 49, 256])
def test_bitmap64_node_kinds_round_trip_in_any_insertion_order(fan_out):
    keys = np.random.default_rng(fan_out).permutation(fan_out).tolist()
    made = bitmap([key << 16 for key in keys])
    assert values_of(Bitmap64.parse(made.serialize())) == [key << 16 for key in range(fan_out)]


@pytest.mark.parametrize("step", [1, 2, 7])
def test_bitmap64_containers_use_smallest_form(step):
    table, lows = bitmap([0]), np.arange(0, 1 << 16, step, dtype=np.uint16)
    table.containers[0].values = lows
    data = table.serialize()
    assert values_of(Bitmap64.parse(data)) == lows.tolist()
    assert len(data) < 70 + (6 if step == 1 else 8192)


@given(st.binary(max_size=100))
def test_bitmap64_malformed_bytes_are_refused(tail):
    data = bitmap([1, 2**40]).serialize()
    for garbled in (data[: len(tail)], data[:20] + tail):
        with contextlib.suppress(ValueError):
            Bitmap64.parse(garbled)
