from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.manifest.prune import prune_manifests
from paimon_core.manifest.stats import EMPTY_STATS
from paimon_core.predicate.expr import col
from paimon_core.types.datatype import AtomicType, DataField
from tests.support.draws import draws
from tests.support.manifests import entry, manifests

FIELDS = (DataField(0, "p", AtomicType("INT")),)
p = col("p")


@pytest.fixture(scope="module")
def metas():
    m = manifests()
    groups = [[(1, 0, 0), (3, 2, 0)], [(7, 1, 5)], [(None, 9, 0)], [(None, 3, 1), (4, 3, 1)]]
    return [
        meta
        for g, group in enumerate(groups)
        for meta in m.write([entry(f"{g}-{i}", p=v, bucket=b, level=n) for i, (v, b, n) in enumerate(group)])
    ]


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        (None, [0, 1, 2, 3]),
        (p == 2, [0]),
        (p > 3, [1, 3]),
        (p.is_null(), [2, 3]),
        (p.is_not_null(), [0, 1, 3]),
        (p.isin([0, 4, 8]), [3]),
        ((p == 7) | p.is_null(), [1, 2, 3]),
        (p == 99, []),
    ],
)
def test_manifests_are_pruned_by_partition(metas, predicate, kept):
    assert prune_manifests(metas, predicate, FIELDS) == [metas[i] for i in kept]


@pytest.mark.parametrize(
    ("buckets", "levels", "kept"),
    [({1}, None, [0, 1]), ({8, 10}, None, []), (set(), None, []), (None, {5}, [1]), ({0, 3}, {1, 2}, [3])],
)
def test_manifests_are_pruned_by_bucket_and_level(metas, buckets, levels, kept):
    assert prune_manifests(metas, None, FIELDS, buckets=buckets, levels=levels) == [metas[i] for i in kept]


def test_unknown_statistics_prune_nothing(metas):
    silent = replace(metas[0], min_bucket=None, max_bucket=None, min_level=None, max_level=None)
    silent = replace(silent, partition_stats=EMPTY_STATS)
    assert prune_manifests([silent], p == 99, FIELDS, buckets={77}, levels={77}) == [silent]


@draws(60)
@given(
    st.lists(st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=3), max_size=6),
    st.sets(st.integers(0, 9), min_size=1, max_size=3),
    st.booleans(),
)
def test_no_manifest_with_a_match_is_lost(groups, wanted, nulls):
    m = manifests()
    predicate = p.isin(wanted) | p.is_null() if nulls else p.isin(wanted)
    metas = [meta for g in groups for meta in m.write([entry(f"f{i}", p=v) for i, v in enumerate(g)])]
    matching = wanted | {None} if nulls else wanted
    needed = [meta for meta, g in zip(metas, groups, strict=True) if matching & set(g)]
    assert [meta for meta in prune_manifests(metas, predicate, FIELDS) if meta in needed] == needed
