"""Batch reads of ``spark.read.format("paimon")`` in a classic session, with the strategies of a catalog table.

Spark resolves a format by the class ``<format>.DefaultSource`` before it looks among Python data sources. The compiled
class ``paimon.DefaultSource`` therefore takes over the format, in all sessions of the driver. It asks `FormatReads` at
each read, and leaves to the Python data source what that does not offer: streams, writes, changes, system tables and
the options in `unsuitable_options`.
"""

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from paimon_core.errors import PaimonError, UnsupportedError, hide_secrets
from paimon_spark.internals import is_classic, session_state
from paimon_spark.option_names import canonical
from paimon_spark.sql.bridge.endpoints import FormatEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.path_table import PathReads, unsuitable_options
from paimon_spark.sql.session_options import NATIVE_READS

_log = logging.getLogger(__name__)
_FORMAT = "paimon"
_CLASS = "paimon.DefaultSource"
_MIN_TASKS = "read.min-tasks"
_MAX_SESSIONS = 8
"""The most sessions whose JVM is kept."""
_lock = threading.Lock()
_contexts: WeakSet[SparkContext] = WeakSet()
"""The applications whose format is installed, or cannot be."""


@dataclass
class FormatReads(FormatEndpoint):
    """The batch reads of the format, for ``FormatTable.java``."""

    jvm: Jvm
    _sessions: OrderedDict[str, Jvm] = field(default_factory=OrderedDict)
    """The JVM of each session that has read, by session id, the latest last: its classes are looked up once."""

    def schema(self, options: str, session: str) -> str | None:
        """Return the columns of a batch read as JSON; `None`: the Python data source reads."""
        reads = self._reads(json.loads(options), json.loads(session))
        return None if reads is None else reads.whole().json()

    def reads(self, options: str, schema: str, session: str) -> Any:
        """Return the handler of a batch read; `None`: the Python data source reads.

        Args:
            options: the options of the read, as JSON.
            schema: the columns that Spark expects, as JSON: the user's columns, or the table's when it was loaded.
            session: the session of the read, as JSON: see ``Sessions.java``.
        """
        reads = self._reads(json.loads(options), json.loads(session))
        if reads is None or reads.whole() != StructType.fromJson(json.loads(schema)):
            return None
        return reads.handler()

    def _reads(self, options: dict[str, str], session: Mapping[str, Any]) -> PathReads | None:
        if SparkContext._active_spark_context is not self.jvm.spark.sparkContext:
            return None  # the session of the handler has been stopped
        try:
            if unsuitable_options(options, session["settings"].get(NATIVE_READS)) is not None:
                return None
            if _MIN_TASKS not in canonical(options):
                options = {**options, _MIN_TASKS: str(session["parallelism"])}
            return PathReads.of(self._jvm_of(session["id"]), options)
        except (PaimonError, Py4JError, OSError) as error:  # the Python data source will raise its own errors
            _log.info("the Python data source reads: %s", hide_secrets(str(error)))
            return None

    def _jvm_of(self, session_id: str) -> Jvm:
        """Return the JVM of the session of this thread. Spark plans queries of several threads at the same time."""
        with _lock:
            jvm = self._sessions.pop(session_id, None)
            if jvm is None:
                jvm = Jvm(self.jvm.active_session())
            self._sessions[session_id] = jvm
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
            return jvm


def install_format(spark: SparkSession) -> None:
    """Let ``spark.read.format("paimon")`` read as SQL does, in all classic sessions of this driver.

    A second call changes nothing. If this version of Spark does not accept the class, or another connector's class has
    the name of the format, the reason is logged and the format stays as it is.
    """
    if not is_classic(spark) or spark.sparkContext in _contexts:
        return
    _contexts.add(spark.sparkContext)
    jvm = Jvm(spark)
    try:
        jvm.call("FormatTable", "use", handler_of(jvm, FormatReads(jvm)))
        name = _class_of_format(jvm)
    except (UnsupportedError, Py4JError) as error:
        _log.warning("spark.read.format('paimon') reads through Python: %s", error)
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
