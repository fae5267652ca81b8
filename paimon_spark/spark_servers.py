"""Spark Connect and the Thrift server in the JVM of a running session.

Like `paimon_spark.internals`, this module uses names of Spark that have no compatibility guarantee, and checks them
before it uses them.
"""

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from paimon_core.errors import InvalidInputError
from paimon_spark.internals import check_names, java_session
from paimon_spark.sql.bridge.jvm import Jvm

_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectService"
_MANAGERS = ("sessionManager", "executionManager", "streamingSessionManager")
"""The parts of Spark Connect that its `stop` uses."""
_THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_OPERATIONS = "org.apache.spark.sql.hive.thriftserver.server.SparkSQLOperationManager"
_HIVE_SESSION = "org.apache.hadoop.hive.ql.session.SessionState"
_THRIFT_NAMES: Mapping[str, tuple[str, ...]] = {
    _THRIFT: ("startWithContext", "getServices", "stop"),
    _OPERATIONS: ("handleToOperation",),
    _HIVE_SESSION: ("detachSession",),
    "org.apache.hive.service.cli.session.SessionManager": ("getOperationManager",),
}
_ACTIVE = ("INITIALIZED", "PENDING", "RUNNING")
"""The states of operations of the Thrift server that have not finished."""
_ACTIVE_IN_CONNECT = ("Pending", "Started", "Analyzed", "ReadyForExecution")
"""The states of executions of Spark Connect that have not finished; others wait for clients to fetch their rows."""

_SECONDS = 30.0
"""The time that a JVM has to end."""


class ConnectService:
    """Spark Connect in the JVM of a session. The settings of its address are in the configuration of the context."""

    def __init__(self, jvm: Jvm) -> None:
        """Start to listen. Raises UnsupportedError if this Spark lacks the service, InvalidInputError if it fails."""
        names = {
            _CONNECT: ("start", "stop", "listActiveExecutions"),
            f"{_CONNECT}$": _MANAGERS,
            "org.apache.spark.sql.connect.service.ExecuteInfo": ("status",),
        }
        check_names(jvm.spark, jvm.bridge.PaimonNames, names, "run Spark Connect", "serve only Thrift")
        self._jvm = jvm
        self._service = jvm.type(_CONNECT)
        _started("Spark Connect", self._service.start, jvm.spark.sparkContext._jsc.sc())
        for manager in _MANAGERS:  # Spark creates them on first use, but cannot once the context is stopped
            getattr(getattr(jvm.type(f"{_CONNECT}$"), "MODULE$"), manager)()

    def running(self) -> int:
        """Return the number of statements that run now."""
        listed = self._service.listActiveExecutions()
        if listed.isLeft():  # the time of the last statement
            return 0
        executions = listed.toOption().get()
        states = (executions.apply(i).status().getClass().getSimpleName() for i in range(executions.size()))
        return sum(state.removesuffix("$") in _ACTIVE_IN_CONNECT for state in states)

    def cancel(self) -> None:
        """Cancel the statements that run now; the jobs of the context have been cancelled."""

    def stop(self) -> None:
        """Stop listening, and end all sessions."""
        none = self._jvm.type("scala.Option").empty()
        self._service.stop(none, none)


class ThriftService:
    """Spark's Thrift server in the JVM of a session, for JDBC and ODBC."""

    def __init__(self, jvm: Jvm, host: str, port: int) -> None:
        """Start to listen. Raises UnsupportedError if this Spark lacks the service, InvalidInputError if it fails."""
        check_names(jvm.spark, jvm.bridge.PaimonNames, _THRIFT_NAMES, "run the Thrift server", "serve only Connect")
        settings = jvm.spark.sparkContext._jsc.sc().hadoopConfiguration()
        for key, value in {"transport.mode": "binary", "thrift.bind.host": host, "thrift.port": str(port)}.items():
            settings.set(f"hive.server2.{key}", value)
        # A server that this thread has started before has left its Hive session there, with the settings of then.
        jvm.type(_HIVE_SESSION).detachSession()
        context = java_session(jvm.spark).sqlContext()
        self._server = _started("The Thrift server", jvm.type(_THRIFT).startWithContext, context)

    def running(self) -> int:
        """Return the number of statements that run now."""
        return len(self._active())

    def cancel(self) -> None:
        """Cancel the statements that run now."""
        for operation in self._active():
            operation.cancel()

    def stop(self) -> None:
        """Stop listening, and end all sessions."""
        self._server.stop()

    def _active(self) -> list[Any]:
        """Return the operations that have not finished. Others may be open, because their clients still read rows."""
        operations = self._operations()
        return [one for one in operations if str(one.getStatus().getState()) in _ACTIVE]

    def _operations(self) -> list[Any]:
        for service in self._server.getServices():
            for part in getattr(service, "getServices", list)():
                if hasattr(part, "getOperationManager"):
                    return list(part.getOperationManager().handleToOperation().values())
        return []


def _started(name: str, start: Any, argument: Any) -> Any:
    try:
        return start(argument)
    except Py4JJavaError as error:
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise InvalidInputError(f"{name} does not start: {cause.getMessage() or cause.toString()}") from error


def end(spark: SparkSession) -> None:
    """Stop a session, and end its JVM, which may have ended already."""
    gateway: Any = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    with suppress(Py4JError, OSError, AttributeError, subprocess.TimeoutExpired):
        spark.stop()
        gateway.shutdown()
        if process is not None:
            process.stdin.close()
            process.wait(_SECONDS)


def has_stopped(spark: SparkSession) -> bool:
    """Return True if the context of a session is stopped, for example by ``spark.stop()``."""
    context = spark.sparkContext._jsc
    return context is None or bool(context.sc().isStopped())


def has_ended(spark: SparkSession) -> bool:
    """Return True if the JVM of a session has ended."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is not None:
        return process.poll() is not None
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError, AttributeError):
        return True
