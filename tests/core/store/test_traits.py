"""The traits of a table, from its keys and options."""

import pyarrow as pa
import pytest

from paimon_core.merge.order import MergeOrder
from paimon_core.schema.schema import Schema
from paimon_core.schema.validate import create
from paimon_core.store.traits import TableTraits

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.int32())])
FACTS = ("keyed", "deletion_vectors", "disjoint_levels", "hides_level_0", "needs_lookup", "reads_high_level")
MARKED = {"deletion-vectors.enabled": "true"}


def traits(keys=("k",), **options):
    buckets = {"bucket": "1"} if keys else {}
    return TableTraits(create(Schema(COLUMNS, keys, (), {**buckets, **options}), 0))


@pytest.mark.parametrize(
    ("keys", "options", "facts"),
    [
        ((), {}, set()),
        ((), MARKED, {"deletion_vectors", "needs_lookup", "reads_high_level"}),
        (("k",), {}, {"keyed"}),
        (("k",), {"changelog-producer": "lookup"}, {"keyed", "needs_lookup", "reads_high_level"}),
        (("k",), {"merge-engine": "first-row"}, {"keyed", "hides_level_0", "needs_lookup"}),
        (("k",), MARKED, set(FACTS)),
        (("k",), {**MARKED, "deletion-vectors.merge-on-read": "true"}, set(FACTS) - {"hides_level_0"}),
    ],
)
def test_facts_of_table(keys, options, facts):
    actual = traits(keys, **options)
    assert {name for name in FACTS if getattr(actual, name)} == facts


@pytest.mark.parametrize(
    ("keys", "engine", "keeps"),
    [(("k",), "deduplicate", True), (("k",), "partial-update", False), (("k",), "first-row", True), ((), None, True)],
)
def test_engines_that_compute_values_keep_no_row(keys, engine, keeps):
    assert traits(keys, **({"merge-engine": engine} if engine else {})).keeps_rows is keeps


def test_rows_of_key_are_ordered_by_sequence_field():
    assert traits().merge_order() == MergeOrder(("k",))
    options = {"sequence.field": "s", "sequence.field.sort-order": "descending"}
    assert traits(**options).merge_order() == MergeOrder(("k",), ("s",), True)
