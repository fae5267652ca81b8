"""What Python touches inside of Spark: names that no promise of Spark covers.

`NAMES` lists them. `check_names`, when a catalog is installed, finds one that this Spark lacks. The other modules, and
`paimon_spark.sql.bridge.jvm`, reach Spark's inside only through these functions. Names that the Java classes of
``paimon_spark/sql/bridge/java`` use are checked by their compiler.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaObject
from py4j.protocol import EMPTY_RESPONSE, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors.exceptions import captured
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas import functions as arrow_functions
from pyspark.sql.types import StructType
from pyspark.sql.worker import plan_data_source_read
from pyspark.util import PythonEvalType

from paimon_core.errors import UnsupportedError
from paimon_spark.report import as_in_worker

_SQL = "org.apache.spark.sql"
NAMES: Mapping[str, tuple[str, ...]] = {
    f"{_SQL}.classic.SparkSession": ("sessionState", "conf", "parseDataType"),
    f"{_SQL}.classic.Dataset": ("queryExecution", "sparkSession", "selectExpr", "toDF"),
    f"{_SQL}.internal.SessionState": ("conf", "executePlan", "catalogManager", "newHadoopConf"),
    f"{_SQL}.internal.SQLConf": ("getAllConfs",),
    f"{_SQL}.connector.catalog.CatalogManager": ("isCatalogRegistered", "currentCatalog", "currentNamespace"),
    f"{_SQL}.execution.QueryExecution": ("analyzed", "optimizedPlan"),
    f"{_SQL}.execution.CommandExecutionMode$": ("SKIP",),
    f"{_SQL}.catalyst.analysis.UnresolvedTable": (),
    f"{_SQL}.catalyst.analysis.ResolvedTable": ("catalog", "identifier", "table"),
    f"{_SQL}.catalyst.plans.logical.LogicalPlan": ("stats", "expressions"),
    f"{_SQL}.catalyst.plans.logical.Statistics": ("sizeInBytes",),
    f"{_SQL}.catalyst.expressions.Expression": ("children", "deterministic", "prettyName"),
    f"{_SQL}.execution.datasources.v2.DataSourceV2Relation": ("table", "options"),
    f"{_SQL}.types.StructType": ("fromDDL",),
    f"{_SQL}.types.DataType": ("fromDDL",),
    f"{_SQL}.connector.catalog.ColumnDefaultValue": (),
    f"{_SQL}.connector.expressions.LiteralValue": (),
    f"{_SQL}.connector.catalog.procedures.ProcedureParameter": ("in",),
}
"""Classes of Spark that Python touches, each with the methods that it calls."""


def check_names(spark: SparkSession, names: Any, wanted: Mapping[str, Iterable[str]] | None = None) -> None:
    """Raise UnsupportedError with Spark's version and the first name that this Spark lacks.

    Args:
        spark: a classic session.
        names: the compiled class ``PaimonNames``.
        wanted: names as in `NAMES`, which is used without it.
    """
    for owner, methods in (NAMES if wanted is None else wanted).items():
        missing = names.missing(owner, ",".join(methods))
        if missing is not None:
            raise UnsupportedError(
                f"this Spark {spark.version} cannot hold a Paimon catalog: it has no {missing}; "
                "use spark.read.format('paimon') and PaimonTable.forPath"
            )


def is_classic(spark: SparkSession) -> bool:
    """Return True if a session has a JVM of its own, False for Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def gateway_of(spark: SparkSession) -> object:
    """Return the gateway to the JVM of a classic session: what Java made belongs to it. `None` for Spark Connect."""
    return spark.sparkContext._gateway if is_classic(spark) else None


def java_session(spark: SparkSession) -> Any:
    """Return a classic session as Java's."""
    return spark._jsparkSession


def java_rows(frame: DataFrame) -> Any:
    """Return a DataFrame of a classic session as Java's Dataset."""
    return frame._jdf


def session_state(spark: SparkSession) -> Any:
    """Return Java's SessionState of a classic session."""
    return spark._jsparkSession.sessionState()


def analyzed(frame: DataFrame) -> Any:
    """Return the analyzed plan of a DataFrame."""
    return frame._jdf.queryExecution().analyzed()


def analyzed_plan(spark: SparkSession, plan: Any, mode: Any) -> Any:
    """Return a Java plan as a classic session analyses it.

    Args:
        spark: the session.
        plan: the plan.
        mode: Java's CommandExecutionMode, which says if commands are run.
    """
    return session_state(spark).executePlan(plan, mode).analyzed()


def optimized(frame: DataFrame) -> Any:
    """Return the optimized plan of a DataFrame."""
    return frame._jdf.queryExecution().optimizedPlan()


@lru_cache(maxsize=8)
def _json_reader(gateway: Any) -> tuple[Any, Any]:
    """Return the reader of JSON that Spark ships, and Java's class of arrays of texts."""
    mapper = gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper()
    return mapper, gateway.jvm.java.lang.Class.forName("[Ljava.lang.String;")


def _java_texts(spark: SparkSession, texts: Iterable[str]) -> Any:
    """Return a Java array of texts. Cost: one call, however many there are."""
    mapper, kind = _json_reader(gateway_of(spark))
    return mapper.readValue(json.dumps(list(texts)), kind)


def quoted(name: str) -> str:
    """Return the name of a column for a text of Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def select_texts(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """Return ``frame.selectExpr(*texts)``. Cost in a classic session: a few calls of Java, however many texts."""
    spark = frame.sparkSession
    if not is_classic(spark):
        return frame.selectExpr(*texts)
    return DataFrame(java_rows(frame).selectExpr(_java_texts(spark, texts)), spark)


def renamed(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return ``frame.toDF(*names)``. Cost in a classic session: a few calls of Java, however many names."""
    spark = frame.sparkSession
    if not is_classic(spark):
        return frame.toDF(*names)
    return DataFrame(java_rows(frame).toDF(_java_texts(spark, names)), spark)


def collected(frame: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame of a classic session, in the Arrow types that Java sends.

    `DataFrame.toArrow` also casts them, and Arrow refuses that cast for a VARIANT that is NULL: the fields of its
    struct are NOT NULL. Instants have the session's time zone here, not UTC.
    """
    classic: Any = frame  # the stubs of PySpark do not name the method
    return pa.Table.from_batches(classic._collect_as_arrow(empty_list_if_zero_records=False))


_vectorized_udf: Any = vars(arrow_functions).get("vectorized_udf")  # the stubs of PySpark do not name it


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: StructType
) -> DataFrame:
    """Return `frame.mapInArrow(function, schema)`, in a classic session also without pandas.

    PySpark asks for pandas there, because it makes the function with `pandas_udf`; neither driver nor worker uses it.
    Spark hands all columns to the function, as long as its expression names them: one struct saves a call for each.
    """
    if _vectorized_udf is None or not is_classic(frame.sparkSession):
        return frame.mapInArrow(function, schema)
    made = _vectorized_udf(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF, "pandas")
    column = made(F.expr(f"struct({', '.join(map(quoted, frame.columns))})"))
    return DataFrame(java_rows(frame).mapInArrow(column._jc, False, None), frame.sparkSession)


_write_planned: Any = vars(plan_data_source_read).get("write_read_func_and_partitions")


def plans_reads() -> bool:
    """Return True if this process can plan the tasks of a batch read, as `planned_read` does."""
    return _write_planned is not None


def planned_read(source: DataSource, columns: StructType, reader: DataSourceReader) -> bytes | None:
    """Plan a batch read in this process: the function of its tasks and the tasks, as Spark's planning process writes.

    Args:
        source: the data source, for its name.
        columns: the columns of the read, as Spark knows them.
        reader: the reader of the rows.

    Returns `None` if this Spark plans in another way. Raises as the reader.
    """
    if _write_planned is None:
        return None
    found = BytesIO()
    with as_in_worker():
        _write_planned(
            found,
            reader=reader,
            data_source=source,
            schema=columns,
            max_arrow_batch_size=1,  # of readers that yield rows; those of the connector yield batches
            binary_as_bytes=True,
        )
    return found.getvalue()


_convert_exception: Any = vars(captured).get("convert_exception")
_TRANSLATIONS: list[Callable[[Any], Exception | None]] = []


def translate_java_errors(translate: Callable[[Any], Exception | None]) -> None:
    """Let PySpark raise another error for some Java exceptions. A second call with the same function changes nothing.

    Args:
        translate: a function from a Java exception to the error to raise; `None`: PySpark's own.
    """
    if _convert_exception is not None and translate not in _TRANSLATIONS:
        _TRANSLATIONS.append(translate)
        vars(captured)["convert_exception"] = _converted


def _converted(error: Any) -> Any:
    """Return the error that PySpark raises for a Java exception; see `translate_java_errors`."""
    found = _convert_exception(error)
    if isinstance(found, captured.AnalysisException):
        return found
    return next((other for translate in _TRANSLATIONS if (other := translate(error)) is not None), found)


def _connected_again(connect: Callable[[], Any], attempts: int = 5) -> Any:
    """Connect to Java, again if Java closes the connection before it answers.

    After Ctrl-C py4j asks Java to close the connection of the interrupted call. Java compares ports so loosely that it
    closes all connections that it has at that moment (`GatewayServer.shutdownSocket` of py4j 0.10.9), new ones too.
    """
    try:
        return connect()
    except Py4JNetworkError as error:
        if error.when != EMPTY_RESPONSE or attempts == 1:
            raise
    time.sleep(0.1)
    return _connected_again(connect, attempts - 1)


def gateway_server(context: SparkContext) -> Any:
    """Return Java's end of the gateway, as its own object."""
    gateway: Any = context._gateway
    return JavaObject("GATEWAY_SERVER", gateway._gateway_client)


def answer_outside_of_main_thread(context: SparkContext) -> None:
    """Let Java's questions reach Python in threads of their own, also after Ctrl-C.

    Java asks over the connection of the Python thread that called it, if the client of its callbacks has seen that
    connection begin. Those of the main thread begin before the client is made, except for the one after Ctrl-C, which
    py4j closes the connection for. Then a second Ctrl-C would interrupt an answer, and arrive as an error of Java.

    REQUIRES: the callback server of the gateway has begun.
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
        connection = _connected_again(connect)
        if threading.current_thread() is threading.main_thread():
            other = threading.Thread(target=reset, daemon=True)  # with a connection of its own
            other.start()
            other.join()
        return connection

    client._create_new_connection = connected
