"""The log of Spark's Python workers, which receives records of metrics if the session collects worker logs.

With `spark.sql.pyspark.worker.logging.enabled` Spark 4.1 and later store the log records of workers; read them with
``spark.tvf.python_worker_logs()``. Spark sets no level in a worker, so records below WARNING would be dropped.
"""

import logging
import os

from paimon_core.engine import LOGGER

_COLLECTED = "PYSPARK_SPARK_SESSION_UUID"  # set in workers whose logs Spark stores


def log_metrics() -> None:
    """Log records of metrics in this worker, if Spark stores its log and the logger has no level yet."""
    logger = logging.getLogger(LOGGER)
    if _COLLECTED in os.environ and logger.level == logging.NOTSET:
        logger.setLevel(logging.DEBUG)
