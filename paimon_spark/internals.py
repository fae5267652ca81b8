"""Access from Python to Spark's internals, which have no compatibility guarantee.

`NAMES` lists the internal names. `check_names` runs when a catalog is installed and reports a name that this version of
Spark lacks. The other modules, including `paimon_spark.sql.bridge.jvm`, use Spark's internals only through these
functions. The compiler checks the names that the Java classes in ``paimon_spark/sql/bridge/java`` use.
"""

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaObject
from py4j.protocol import EMPTY_RESPONSE, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors.exceptions import captured
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas import functions as arrow_functions
from pyspark.sql.types import StructType
from pyspark.sql.worker import plan_data_source_read
from pyspark.util import PythonEvalType

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_spark.report import as_in_worker

_SQL = "org.apache.spark.sql"
NAMES: Mapping[str, tuple[str, ...]] = {
    f"{_SQL}.classic.SparkSession": ("sessionState", "conf", "parseDataType"),
    f"{_SQL}.classic.Dataset$": ("ofRows",),
    f"{_SQL}.execution.SparkSqlParser": ("parsePlan",),
    f"{_SQL}.classic.Dataset": ("queryExecution", "sparkSession", "selectExpr", "toDF"),
    f"{_SQL}.internal.SessionState": ("conf", "executePlan", "catalogManager", "newHadoopConf"),
    f"{_SQL}.internal.SQLConf": ("getAllConfs",),
    f"{_SQL}.connector.catalog.CatalogManager": ("isCatalogRegistered", "currentCatalog", "currentNamespace"),
    f"{_SQL}.execution.QueryExecution": ("analyzed", "optimizedPlan"),
    f"{_SQL}.execution.CommandExecutionMode$": ("SKIP",),
    f"{_SQL}.catalyst.analysis.UnresolvedTable": (),
    f"{_SQL}.catalyst.analysis.ResolvedTable": ("catalog", "identifier", "table"),
    f"{_SQL}.catalyst.plans.logical.LogicalPlan": ("stats", "expressions", "nodeName", "children"),
    f"{_SQL}.catalyst.plans.logical.Statistics": ("sizeInBytes",),
    f"{_SQL}.catalyst.expressions.Expression": ("children", "deterministic", "prettyName"),
    f"{_SQL}.execution.datasources.v2.DataSourceV2Relation": ("table", "options"),
    f"{_SQL}.execution.LogicalRDD": ("rdd",),
    "org.apache.spark.rdd.RDD": ("dependencies", "partitions"),
    "org.apache.spark.util.SizeEstimator": ("estimate",),
    f"{_SQL}.types.StructType": ("fromDDL",),
    f"{_SQL}.types.DataType": ("fromDDL",),
    f"{_SQL}.connector.catalog.ColumnDefaultValue": (),
    f"{_SQL}.connector.expressions.LiteralValue": (),
    f"{_SQL}.connector.catalog.procedures.ProcedureParameter": ("in",),
}
"""Internal Spark classes that Python uses, each with the methods that it calls."""


def check_names(
    spark: SparkSession,
    names: Any,
    required: Mapping[str, Iterable[str]] | None = None,
    purpose: str = "hold a Paimon catalog",
    instead: str = "use spark.read.format('paimon') and PaimonTable.forPath",
) -> None:
    """Raise UnsupportedError with Spark's version and the first name that this version lacks.

    Args:
        spark: a classic session.
        names: the compiled class ``PaimonNames``.
        required: the names to check, in the form of `NAMES`; `None`: `NAMES`.
        purpose: what the names are for, such as ``hold a Paimon catalog``.
        instead: what the user can do without them.
    """
    for owner, methods in (NAMES if required is None else required).items():
        missing = names.missing(owner, ",".join(methods))
        if missing is not None:
            raise UnsupportedError(f"this Spark {spark.version} cannot {purpose}: it has no {missing}; {instead}")


def is_classic(spark: SparkSession) -> bool:
    """Return True if the session runs in a JVM of this process, False for Spark Connect.

    Raises InvalidInputError for an object that is no session.
    """
    if hasattr(spark, "_jsparkSession"):
        return True
    if not hasattr(spark, "sql"):
        kind = type(spark).__name__
        raise InvalidInputError(f"the first argument must be a SparkSession, but is {spark!r}, a {kind}")
    return False


@dataclass(frozen=True, slots=True)
class WorkerPython:
    """An interpreter that a local session runs workers with.

    Args:
        command: the name or path.
        variable: the environment variable that sets it.
        environment: the environment of its processes.
        directory: the working directory of its processes.
    """

    command: str
    variable: str
    environment: Mapping[str, str]
    directory: str


def worker_pythons(context: SparkContext) -> Sequence[WorkerPython]:
    """Return the interpreters that run workers of a local context: for data sources, and for functions.

    Returns `()` for other masters, and if Spark sends files to workers, which may contain packages.
    """
    conf = context.getConf()
    sent = ("spark.submit.pyFiles", "spark.archives", "spark.files", "spark.jars.packages")
    if (
        not re.fullmatch(r"local(\[.*\])?", context.master or "")
        or context._python_includes
        or any(map(conf.get, sent))
    ):
        return ()
    java: Any = context._jvm
    system = java.java.lang.System
    environment = {str(key): str(value) for key, value in system.getenv().items()}
    shared = filter(None, [conf.get("spark.executorEnv.PYTHONPATH"), environment.get("PYTHONPATH")])
    environment["PYTHONPATH"] = os.pathsep.join(shared)
    variable = next((name for name in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON") if name in environment), "")
    sources = WorkerPython(
        environment.get(variable, "python3"),
        variable or "PYSPARK_PYTHON",
        environment,
        str(system.getProperty("user.dir")),
    )
    return sources, replace(sources, command=context.pythonExec, variable="PYSPARK_PYTHON")


def builder_settings(builder: SparkSession.Builder) -> dict[str, str]:
    """Return the settings of a builder, of a classic session or of Connect."""
    return {str(key): str(value) for key, value in vars(builder).get("_options", {}).items()}


def has_context() -> bool:
    """Return True if a classic session runs in this process."""
    return SparkContext._active_spark_context is not None


_RAISED = (
    "spark.executor.Executor",
    "spark.scheduler.TaskSetManager",
    "spark.sql.execution.datasources.v2",
    "spark.sql.connect.utils.ErrorUtils",
    "spark.sql.hive.thriftserver.SparkExecuteStatementOperation",
    "hive.service.cli.thrift.ThriftCLIService",
)
"""The loggers of Java whose errors a local session, or a client of its servers, also raises."""
_CONTEXT_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""The loggers of PySpark for errors that it also raises."""


def quiet_raised_errors(spark: SparkSession) -> None:
    """Let a session not log errors that it also raises: in Python, and, for a classic session, in the JVM."""
    for name in _CONTEXT_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    if is_classic(spark):
        log4j = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
        for name in _RAISED:
            log4j.core.config.Configurator.setLevel(f"org.apache.{name}", log4j.Level.OFF)
        result, context = log4j.core.Filter.Result, log4j.core.LoggerContext.getContext(False)
        aborted = log4j.core.filter.RegexFilter.createFilter(
            "Aborting task.*", None, False, result.DENY, result.NEUTRAL
        )
        context.getConfiguration().addFilter(aborted)
        context.updateLoggers()


def java_connector_catalogs(spark: SparkSession) -> dict[str, str]:
    """Return the catalogs of a classic session that settings assign to the Java connector, if its jar is missing.

    The values are the warehouses; empty: not set.
    """
    prefix, settings = "spark.sql.catalog.", spark.conf.getAll
    java: Any = spark.sparkContext._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    catalogs: dict[str, str] = {}
    for key, value in settings.items():
        name = key.removeprefix(prefix)
        if key.startswith(prefix) and "." not in name and value.startswith("org.apache.paimon.spark."):
            try:
                loader.loadClass(value)
            except Py4JJavaError:
                catalogs[name] = settings.get(f"{key}.warehouse", "")
    return catalogs


def gateway_of(spark: SparkSession) -> object:
    """Return the gateway to the JVM of a classic session, which owns all Java objects; `None` for Spark Connect."""
    return spark.sparkContext._gateway if is_classic(spark) else None


def java_session(spark: SparkSession) -> Any:
    """Return the Java object of a classic session."""
    return spark._jsparkSession


def java_rows(frame: DataFrame) -> Any:
    """Return the Java Dataset of a DataFrame of a classic session."""
    return frame._jdf


def session_state(spark: SparkSession) -> Any:
    """Return the Java SessionState of a classic session."""
    return spark._jsparkSession.sessionState()


def analyzed(frame: DataFrame) -> Any:
    """Return the analyzed plan of a DataFrame."""
    return frame._jdf.queryExecution().analyzed()


def analyzed_plan(spark: SparkSession, plan: Any, mode: Any) -> Any:
    """Return the analyzed form of a Java plan in a classic session.

    Args:
        spark: the session.
        plan: the plan to analyze.
        mode: Java's CommandExecutionMode, which controls whether commands run.
    """
    return session_state(spark).executePlan(plan, mode).analyzed()


def rows_of_spark(spark: SparkSession, text: str, parser: Any, datasets: Any) -> list[Any]:
    """Return the rows of a statement that only Spark's own parser parses, in a classic session.

    Args:
        spark: the session.
        text: the statement.
        parser: Java's class SparkSqlParser.
        datasets: Scala's object Dataset.
    """
    return DataFrame(datasets.ofRows(java_session(spark), parser().parsePlan(text)), spark).collect()


def optimized(frame: DataFrame) -> Any:
    """Return the optimized plan of a DataFrame."""
    return frame._jdf.queryExecution().optimizedPlan()


_SELECTS = ("Project", "Filter")


def local_bytes(frame: DataFrame) -> int | None:
    """Return the size of the rows that the driver holds for a DataFrame of a classic session.

    `None`: the rows have another source than a collection of the program, such as a list for `createDataFrame`, or the
    DataFrame does more than select and filter them.
    """
    plan = optimized(frame)
    while plan.nodeName() in _SELECTS:
        plan = plan.children().head()
    if plan.nodeName() != "LogicalRDD":
        return None
    rdd = plan.rdd()
    while rdd.getClass().getSimpleName() != "ParallelCollectionRDD":
        parents = rdd.dependencies()
        if parents.size() != 1 or parents.head().getClass().getSimpleName() != "OneToOneDependency":
            return None
        rdd = parents.head().rdd()
    jvm: Any = frame.sparkSession.sparkContext._jvm
    return int(jvm.org.apache.spark.util.SizeEstimator.estimate(rdd.partitions()))


@lru_cache(maxsize=8)
def _json_reader(gateway: Any) -> tuple[Any, Any]:
    """Return a JSON mapper from the library that Spark ships, and the Java class ``String[]``."""
    mapper = gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper()
    return mapper, gateway.jvm.java.lang.Class.forName("[Ljava.lang.String;")


def _java_texts(spark: SparkSession, texts: Iterable[str]) -> Any:
    """Return a Java array of texts. Cost: one JVM call for all texts."""
    mapper, kind = _json_reader(gateway_of(spark))
    return mapper.readValue(json.dumps(list(texts)), kind)


def quoted(name: str) -> str:
    """Return a column name quoted for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def select_texts(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """Return ``frame.selectExpr(*texts)``. Cost in a classic session: a few JVM calls, however many texts."""
    spark = frame.sparkSession
    if not is_classic(spark):
        return frame.selectExpr(*texts)
    return DataFrame(java_rows(frame).selectExpr(_java_texts(spark, texts)), spark)


def renamed(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return ``frame.toDF(*names)``. Cost in a classic session: a few JVM calls, however many names."""
    spark = frame.sparkSession
    if not is_classic(spark):
        return frame.toDF(*names)
    return DataFrame(java_rows(frame).toDF(_java_texts(spark, names)), spark)


def collected(frame: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame of a classic session, in the Arrow types that Java sends.

    `DataFrame.toArrow` also casts them, and Arrow rejects that cast for a NULL VARIANT, whose struct fields are NOT
    NULL. Instants here have the session's time zone, not UTC.
    """
    classic: Any = frame  # the stubs of PySpark lack this method
    return pa.Table.from_batches(classic._collect_as_arrow(empty_list_if_zero_records=False))


_vectorized_udf: Any = vars(arrow_functions).get("vectorized_udf")  # the stubs of PySpark lack it


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: StructType
) -> DataFrame:
    """Return `frame.mapInArrow(function, schema)`; a classic session does not need pandas for it.

    PySpark itself requires pandas there, because it wraps the function with `pandas_udf`, although neither the driver
    nor a worker uses pandas. Spark passes all columns that the expression names: one struct saves a JVM call per
    column.
    """
    if _vectorized_udf is None or not is_classic(frame.sparkSession):
        return frame.mapInArrow(function, schema)
    udf = _vectorized_udf(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF, "pandas")
    column = udf(F.expr(f"struct({', '.join(map(quoted, frame.columns))})"))
    return DataFrame(java_rows(frame).mapInArrow(column._jc, False, None), frame.sparkSession)


_write_planned: Any = vars(plan_data_source_read).get("write_read_func_and_partitions")


def plans_reads() -> bool:
    """Return True if this process can plan the tasks of a batch read, as `planned_read` does."""
    return _write_planned is not None


def planned_read(source: DataSource, columns: StructType, reader: DataSourceReader) -> bytes | None:
    """Plan a batch read in this process; return the bytes that Spark's planning process would write.

    The bytes contain the function that reads a task, and the tasks.

    Args:
        source: the data source, for its name.
        columns: the columns to read, as Spark sees them.
        reader: the reader of the rows.

    Returns `None` if this version of Spark plans reads in another way. Raises the errors of the reader.
    """
    if _write_planned is None:
        return None
    output = BytesIO()
    with as_in_worker():
        _write_planned(
            output,
            reader=reader,
            data_source=source,
            schema=columns,
            max_arrow_batch_size=1,  # for readers that yield rows; readers of the connector yield batches
            binary_as_bytes=True,
        )
    return output.getvalue()


_convert_exception: Any = vars(captured).get("convert_exception")
_TRANSLATIONS: list[Callable[[Any], Exception | None]] = []
_AMENDMENTS: list[Callable[[str], str | None]] = []


def translate_java_errors(translate: Callable[[Any], Exception | None]) -> None:
    """Let PySpark raise another error for some Java exceptions. A second call with the same function changes nothing.

    Args:
        translate: returns the error to raise for a Java exception; `None`: raise PySpark's own error.
    """
    if _convert_exception is not None and translate not in _TRANSLATIONS:
        _TRANSLATIONS.append(translate)
        vars(captured)["convert_exception"] = _converted


def amend_java_errors(amend: Callable[[str], str | None]) -> None:
    """Let PySpark's errors have another text. A second call with the same function changes nothing.

    Args:
        amend: returns the new text of an error; `None`: the text stays.
    """
    if _convert_exception is not None and amend not in _AMENDMENTS:
        _AMENDMENTS.append(amend)
        vars(captured)["convert_exception"] = _converted


def with_advice(text: str, advice: str | None) -> str | None:
    """Return the text of an error whose first line ends with advice, before its SQLSTATE; `None`: no advice."""
    if advice is None:
        return None
    end = len(re.split(r" SQLSTATE:|\n", text, maxsplit=1)[0])
    return f"{text[:end].rstrip()} {advice}{text[end:]}"


WORKER_ERROR = "paimon_core.errors."
"""The text before the name of an error of the engine, as a worker sends it."""
_WORKER_HEADER = re.compile(
    rf"\s*(An exception was thrown from the Python worker)[^\n]*\n\s*(?={re.escape(WORKER_ERROR)})"
)
"""The text before the error of a worker, in Spark 4.1."""


class _WorkerError(captured.PythonException):
    """A PythonException whose text begins with the error of the worker, without a line before it."""

    __str__ = captured.CapturedException.__str__


_WorkerError.__name__ = _WorkerError.__qualname__ = captured.PythonException.__name__
_WorkerError.__module__ = captured.PythonException.__module__


def _amend(error: captured.CapturedException) -> None:
    """Change the text of an error as `amend_java_errors` says. A function that fails changes nothing."""
    text = error._desc or ""
    header = _WORKER_HEADER.match(text)
    if header is not None:
        error._desc = text = f"{header[1]}: {text[header.end() :]}"
    error._desc = _amended(text) or error._desc
    if type(error) is captured.PythonException and WORKER_ERROR in (error._desc or "").partition("\n")[0]:
        error.__class__ = _WorkerError


def _amended(text: str) -> str | None:
    """Return the new text of an error from the first function that has one; `None`: the text stays."""
    for amend in _AMENDMENTS:
        with suppress(Exception):
            amended = amend(text)
            if amended is not None:
                return amended
    return None


def _converted(error: Any) -> Any:
    """Return the error that PySpark raises for a Java exception: see the two functions above."""
    converted = _convert_exception(error)
    _amend(converted)
    if isinstance(converted, captured.AnalysisException):
        return converted
    return next((translated for translate in _TRANSLATIONS if (translated := translate(error)) is not None), converted)


def _connect_with_retry(connect: Callable[[], Any], attempts: int = 5) -> Any:
    """Connect to Java; retry if Java closes the connection before it answers.

    After Ctrl-C py4j asks Java to close the connection of the interrupted call. Java compares ports so loosely that it
    closes all connections open at that moment, including new ones (`GatewayServer.shutdownSocket` of py4j 0.10.9).
    """
    try:
        return connect()
    except Py4JNetworkError as error:
        if error.when != EMPTY_RESPONSE or attempts == 1:
            raise
    time.sleep(0.1)
    return _connect_with_retry(connect, attempts - 1)


def gateway_server(context: SparkContext) -> Any:
    """Return the Java side of the gateway as an object."""
    gateway: Any = context._gateway
    return JavaObject("GATEWAY_SERVER", gateway._gateway_client)


def keep_connection_once(context: SparkContext) -> None:
    """Let py4j's client keep the connection of a thread at most once.

    py4j keeps it after each command, also after a command inside another one: Python calls Java, Java calls Python, and
    Python calls Java again. When the thread ends, it forgets the connection once, so a closed connection would remain.
    """
    client: Any = context._gateway._gateway_client  # type: ignore[union-attr]

    def give_back(connection: Any) -> None:
        if connection not in client.deque:  # no other thread gives it back: a connection belongs to one
            client.deque.append(connection)

    client._give_back_connection = give_back


def answer_outside_of_main_thread(context: SparkContext) -> None:
    """Let Python answer callbacks from Java in separate threads, also after Ctrl-C.

    Java sends a callback over the connection of the Python thread that called it, if its callback client existed when
    that connection was opened. The connections of the main thread are older than the client, except for the connection
    that replaces an interrupted one. On that connection a second Ctrl-C would interrupt a callback, and would arrive as
    a Java error.

    REQUIRES: the callback server of the gateway has started.
    """
    gateway: Any = context._gateway
    client = gateway._gateway_client
    if "_create_new_connection" in vars(client):
        return
    connect = client._create_new_connection

    def reset() -> None:
        server = gateway_server(context)
        server.resetCallbackClient(server.getCallbackClient().getAddress(), gateway._python_proxy_port)

    def connected() -> Any:
        connection = _connect_with_retry(connect)
        if threading.current_thread() is threading.main_thread():
            resetter = threading.Thread(target=reset, daemon=True)  # a new thread has a separate connection
            resetter.start()
            resetter.join()
        return connection

    client._create_new_connection = connected
