"""The explanation of a scan, for EXPLAIN and `PaimonTable.explain`."""

from dataclasses import replace

from pyspark.sql.types import StructType

from paimon_core import Explanation
from paimon_core.engine import DEFAULT_LISTED, explain
from paimon_core.errors import UnsupportedError
from paimon_spark.options import is_about_changes
from paimon_spark.sql.reads.planned_scan import PlannedScan
from paimon_spark.sql.reads.pushdown import without_implied


def explanation(planned: PlannedScan, whole: StructType, engine: str) -> Explanation:
    """Return the explanation of a scan, including the effect of its options on the choice of files.

    Args:
        planned: the scan.
        whole: all columns that a query may ask for.
        engine: the strategy in words.

    Raises UnsupportedError for a read of changes.
    """
    request = planned.request
    if is_about_changes(request.options):
        raise UnsupportedError(
            f"cannot explain a read of the changes of {planned.scan.store.root}: leave the options 'incremental-*' out"
        )
    return explanation_of_plan(planned.of_options() if request.other_options else planned, whole, engine)


def explanation_of_plan(
    planned: PlannedScan, whole: StructType, engine: str, listed: int = DEFAULT_LISTED
) -> Explanation:
    """Return the explanation of a scan from its plan.

    Args:
        planned: the scan.
        whole: all columns that a query may ask for.
        engine: the strategy in words.
        listed: the most splits, and the most sections, to list.
    """
    columns = None if planned.request.columns == whole else planned.request.columns.names
    scan = replace(planned.scan, predicate=without_implied(planned.scan.predicate))
    return replace(explain(scan, planned.plan, columns, listed=listed), engine=engine)
