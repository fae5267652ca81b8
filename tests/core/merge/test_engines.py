"""The registry of merge engines."""

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.merge import MERGE_ENGINES, KeyMove, engine_type, merge_engine
from paimon_core.merge.kway import MergeOrder, sort_rows
from paimon_core.options.merge import MERGE_ENGINE
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

ROWS = pa.table(
    {
        "k": pa.array([1, 2, 1], pa.int64()),
        "_SEQUENCE_NUMBER": pa.array([0, 1, 2], pa.int64()),
        "_VALUE_KIND": pa.array([0, 0, 3], pa.int8()),
    }
)


FIELDS = (DataField(0, "k", parse_type("BIGINT NOT NULL")),)


def engine(**options):
    return merge_engine(Options({key.replace("_", "-"): text for key, text in options.items()}), FIELDS, ("k",))


@pytest.mark.parametrize("name", MERGE_ENGINES)
def test_every_engine_yields_one_row_per_key(name):
    rows = ROWS.set_column(2, "_VALUE_KIND", pa.array([0, 0, 2], pa.int8()))
    result = engine(merge_engine=name).fold(sort_rows(rows, MergeOrder(("k",))))
    assert result.schema == rows.schema
    assert result.column("k").to_pylist() == [1, 2]


def test_default_engine_is_deduplicate():
    window = sort_rows(ROWS, MergeOrder(("k",)))
    assert engine().fold(window).column("_SEQUENCE_NUMBER").to_pylist() == [2, 1]
    assert engine(ignore_delete="true").fold(window).column("_SEQUENCE_NUMBER").to_pylist() == [0, 1]


def test_unknown_engine_is_refused():
    with pytest.raises(InvalidInputError, match=r"'upsert'.*partial-update"):
        engine(merge_engine="upsert")


def test_merge_engine_option_lists_registered_engines():
    with pytest.raises(InvalidInputError, match=f"must be one of {', '.join(MERGE_ENGINES)}$"):
        Options({"merge-engine": "?"}).value(MERGE_ENGINE)
    for name in MERGE_ENGINES:
        assert engine_type(Options({"merge-engine": name.upper().replace("-", "_")})).name == name


ALL_PRODUCERS, REMOVE = {"none", "input", "full-compaction", "lookup"}, "remove-record-on-delete"
FACTS = {  # name: results are input rows, reads skip level 0, key moves, producers, sequence.field, deletion vectors
    "deduplicate": (True, False, KeyMove.DELETE_OLD, ALL_PRODUCERS, True, True),
    "partial-update": (False, False, KeyMove.MERGE_INTO_OLD, ALL_PRODUCERS, True, True),
    "aggregation": (False, False, KeyMove.MERGE_INTO_OLD, ALL_PRODUCERS, True, True),
    "first-row": (True, True, KeyMove.DROP_ROW, {"none", "lookup"}, False, False),
}


@pytest.mark.parametrize("name", MERGE_ENGINES)
def test_facts_of_every_engine(name):
    kind, table = MERGE_ENGINES[name], engine(merge_engine=name)
    taken = ALL_PRODUCERS - {*kind.refused_producers}
    requested = kind.key_move, taken, kind.refuses_sequence_field is None, kind.deletion_vectors
    assert (kind.keeps_rows, kind.skips_level_0, *requested) == FACTS[name]
    assert (table.keeps_rows, table.skips_level_0) == FACTS[name][:2]


@pytest.mark.parametrize(
    ("options", "deletes"),
    [
        ({}, True),
        ({"merge-engine": "first-row"}, False),
        ({"merge-engine": "partial-update"}, False),
        ({"merge-engine": "partial-update", f"partial-update.{REMOVE}": "true"}, True),
        ({"merge-engine": "partial-update", "partial-update.remove-record-on-sequence-group": "n"}, True),
        ({"merge-engine": "aggregation"}, False),
        ({"merge-engine": "aggregation", f"partial-update.{REMOVE}": "true"}, False),
        ({"merge-engine": "aggregation", f"aggregation.{REMOVE}": "true"}, True),
    ],
)
def test_delete_row_deletes_according_to_options(options, deletes):
    assert engine_type(Options(options)).deletes_rows(Options(options)) is deletes
