"""The log of Spark's Python workers: records of metrics reach it if the session collects the logs of workers.

With `spark.sql.pyspark.worker.logging.enabled` Spark 4.1 and later store the records of a worker, readable by
``spark.tvf.python_worker_logs()``. In a worker nobody sets levels, so records below WARNING would be left out.
"""

import logging
import os

from paimon_core.engine import LOGGER

_COLLECTED = "PYSPARK_SPARK_SESSION_UUID"  # set in workers whose logs Spark stores


def log_metrics() -> None:
    """Let records of metrics into the log of this worker, if Spark stores it and nobody has set another level."""
    logger = logging.getLogger(LOGGER)
    if _COLLECTED in os.environ and logger.level == logging.NOTSET:
        logger.setLevel(logging.DEBUG)
