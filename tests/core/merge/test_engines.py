"""The registry of merge engines."""

import pyarrow as pa
import pytest

from paimon_core.errors import UnsupportedError
from paimon_core.merge import MERGE_ENGINES, merge_fold
from paimon_core.merge.kway import MergeOrder, sort_rows
from paimon_core.options.option import Options

ROWS = pa.table(
    {
        "k": pa.array([1, 2, 1], pa.int64()),
        "_SEQUENCE_NUMBER": pa.array([0, 1, 2], pa.int64()),
        "_VALUE_KIND": pa.array([0, 0, 3], pa.int8()),
    }
)


@pytest.mark.parametrize("engine", MERGE_ENGINES)
def test_every_engine_gives_one_row_a_key_with_all_columns(engine):
    result = merge_fold(Options({"merge-engine": engine}))(sort_rows(ROWS, MergeOrder(("k",))))
    assert result.schema == ROWS.schema
    assert result.column("k").to_pylist() == [1, 2]


def test_the_default_is_deduplicate_and_ignore_delete_reaches_it():
    window = sort_rows(ROWS, MergeOrder(("k",)))
    assert merge_fold(Options({}))(window).column("_SEQUENCE_NUMBER").to_pylist() == [2, 1]
    assert merge_fold(Options({"ignore-delete": "true"}))(window).column("_SEQUENCE_NUMBER").to_pylist() == [0, 1]


def test_an_engine_that_is_not_there_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"'partial-update'.*deduplicate"):
        merge_fold(Options({"merge-engine": "partial-update"}))
