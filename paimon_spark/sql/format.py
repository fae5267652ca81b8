"""The class of ``format("paimon")`` in a classic session, which reads and writes batches as SQL does.

Spark resolves a format by the class ``<format>.DefaultSource`` before it looks among Python data sources. The compiled
class ``paimon.DefaultSource`` therefore takes over the format, in all sessions of the driver.
"""

import logging
from weakref import WeakSet

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from paimon_core.errors import UnsupportedError
from paimon_spark.internals import is_classic, java_session, session_state
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.format_reads import FormatReads
from paimon_spark.sql.writes.format_writes import FormatWrites

_log = logging.getLogger(__name__)
_FORMAT = "paimon"
_CLASS = "paimon.DefaultSource"
_contexts: WeakSet[SparkContext] = WeakSet()
"""The applications whose format is installed, or cannot be."""


def install_format(spark: SparkSession) -> None:
    """Let ``spark.read.format("paimon")`` read and write as SQL does, in all classic sessions of this driver.

    A second call changes nothing. If this version of Spark does not accept the class, or another connector's class has
    the name of the format, the reason is logged and the format stays as it is.
    """
    if not is_classic(spark) or spark.sparkContext in _contexts:
        return
    _contexts.add(spark.sparkContext)
    jvm = Jvm(spark)
    try:
        reads, writes = handler_of(jvm, FormatReads(jvm)), handler_of(jvm, FormatWrites(jvm))
        jvm.call("FormatTable", "use", reads, writes, java_session(spark).sparkContext())
        jvm.call("PaimonExtensions", "installFilters", java_session(spark))
        name = _class_of_format(jvm)
    except (UnsupportedError, Py4JError) as error:
        _log.warning("spark.read.format('paimon') reads and writes through Python: %s", error)
        return
    if name != _CLASS:
        _log.warning(
            "format('paimon') is %s of another connector in this session, which reads and writes instead of "
            "pyspark-paimon: remove its jar, or use PaimonTable.forPath",
            name,
        )


def _class_of_format(jvm: Jvm) -> str:
    """Return the name of the class that Spark uses for the format."""
    source = jvm.scala("org.apache.spark.sql.execution.datasources.DataSource")
    try:
        return str(source.lookupDataSource(_FORMAT, session_state(jvm.spark).conf()).getName())
    except Py4JJavaError as error:
        return str(error.java_exception.getMessage())
