"""The collection of changed rows on the driver, if a statement changes only few rows."""

import logging

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from paimon_core.errors import UnsupportedError
from paimon_spark.frame_write import is_too_large
from paimon_spark.internals import collected, is_classic, java_rows, java_session
from paimon_spark.interruption import check_interrupted
from paimon_spark.sql.bridge.conversions import frame_of
from paimon_spark.sql.bridge.jvm import Jvm

_log = logging.getLogger(__name__)
MOST_CHANGES = 1 << 16
"""The most changed rows that the driver writes without a shuffle and without Python workers."""
_LITTLE_WORK = 256 << 20  # the most bytes of files that are read for nothing if too many rows change


def few_changes(frame: DataFrame) -> pa.Table | None:
    """Return the rows of a DataFrame; `None`: too many rows, too much work to count them, or a Connect session.

    Raises the errors of the Spark query.
    """
    spark = frame.sparkSession
    if not is_classic(spark):
        return None
    try:
        jvm = Jvm(spark)
        limited = jvm.connector_class("FewRows").of(
            java_session(spark), java_rows(frame), MOST_CHANGES + 1, _LITTLE_WORK
        )
    except (UnsupportedError, Py4JError) as error:  # for example, if the JVM accepts no classes
        _log.info("tasks write the changed rows: %s", error)
        return None
    if limited is None:
        return None
    check_interrupted()
    try:
        rows = collected(frame_of(jvm, limited))
    except Exception as error:  # the class is Spark's
        if is_too_large(error):
            return None
        raise
    return rows if rows.num_rows <= MOST_CHANGES else None
