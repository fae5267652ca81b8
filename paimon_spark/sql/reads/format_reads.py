"""Batch reads of ``spark.read.format("paimon")`` in a classic session, with the strategies of a catalog table.

The class of the format (`paimon_spark.sql.format`) asks `FormatReads` at each read. It leaves to the Python data source
what that does not offer: streams, changes, system tables and the options in `unsuitable_options`.
"""

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.types import StructType

from paimon_core.errors import PaimonError, hide_secrets
from paimon_spark.char_columns import unmarked
from paimon_spark.filter_text import needs_spark
from paimon_spark.internals import java_session
from paimon_spark.option_names import canonical
from paimon_spark.sql.bridge.endpoints import FormatEndpoint
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.path_table import PathReads, unsuitable_options
from paimon_spark.sql.session_options import NATIVE_READS

_log = logging.getLogger(__name__)
_MIN_TASKS = "read.min-tasks"
_MAX_SESSIONS = 8
"""The most sessions whose JVM is kept."""
_lock = threading.Lock()


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
        if reads is None or unmarked(reads.whole()) != unmarked(StructType.fromJson(json.loads(schema))):
            return None
        return reads.handler()

    def filter_of_plan(self, text: str, session: str) -> str | None:
        """Return the option `filter` of a batch read if Spark must evaluate it in the plan, else `None`.

        That is a condition which Spark's parser accepts but the engine's does not, such as one with functions.
        ``PaimonFilterRule.java`` puts it into the plan, and the read does not get the option.
        """
        if SparkContext._active_spark_context is not self.jvm.spark.sparkContext:
            return None  # the session of the handler has been stopped
        jvm = self._jvm_of(json.loads(session)["id"])
        if not needs_spark(jvm.spark, text):
            return None
        return text if jvm.call("PaimonFilterRule", "parses", java_session(jvm.spark), text) else None

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
