"""The registry of merge engines."""

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.merge import MERGE_ENGINES, merge_engine
from paimon_core.merge.kway import MergeOrder, sort_rows
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
def test_every_engine_gives_one_row_a_key_with_all_columns(name):
    rows = ROWS.set_column(2, "_VALUE_KIND", pa.array([0, 0, 2], pa.int8()))
    result = engine(merge_engine=name).fold(sort_rows(rows, MergeOrder(("k",))))
    assert result.schema == rows.schema
    assert result.column("k").to_pylist() == [1, 2]


def test_the_default_is_deduplicate_and_ignore_delete_reaches_it():
    window = sort_rows(ROWS, MergeOrder(("k",)))
    assert engine().fold(window).column("_SEQUENCE_NUMBER").to_pylist() == [2, 1]
    assert engine(ignore_delete="true").fold(window).column("_SEQUENCE_NUMBER").to_pylist() == [0, 1]


def test_an_engine_that_is_not_there_is_refused_by_name():
    with pytest.raises(InvalidInputError, match=r"'upsert'.*partial-update"):
        engine(merge_engine="upsert")
