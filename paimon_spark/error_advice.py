"""Advice on Spark's own errors: the first line of an error also says what to do.

`advise_on_errors` installs the advice. It changes only the text of errors that PySpark raises in this process.
"""

import re
from collections.abc import Callable
from typing import Any

import pyspark

from paimon_core.errors import InvalidInputError
from paimon_spark.internals import WORKER_ERROR, amend_java_errors, translate_java_errors, with_advice
from paimon_spark.worker_python import advice as worker_advice

_CATALOG = "paimon_spark.catalog(spark, {!r}, warehouse=...)"
_JAVA_CATALOG = re.compile(r"org\.apache\.paimon\.spark\.\w+")
_CATALOG_NAME = re.compile(r"catalog '(\w+)'")
_MISSING_PACKAGE = re.compile(
    r"^ModuleNotFoundError: No module named '(?:paimon_core|paimon_spark|pyarrow)\b", re.MULTILINE
)

_CHANGES = re.compile(r"\bCHANGES\s+FROM\s+(?:VERSION|TIMESTAMP)\b", re.IGNORECASE)
_BEFORE_CHANGES = tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2)
_WITHOUT_CHANGES = (
    "CHANGES FROM needs Spark 4.2: read the changes from `t$audit_log` WITH ('incremental-between' = '0,5'), or the "
    "written rows with paimon_incremental_query('t', 0, 5)."
)
_EXECUTORS = (
    "MissingDependencyError: the Python of the executors lacks pyspark-paimon: "
    "install it on every node, or send an environment with --archives (spark.archives)"
)


def advise_on_errors() -> None:
    """Install the advice in this process. A second call changes nothing."""
    amend_java_errors(_amended)
    translate_java_errors(_java_connector)


def _unregistered(_: "re.Match[str]") -> str:
    return f"The workers' Python lacks pyspark-paimon: {worker_advice()}."


def _without_catalog(match: "re.Match[str]") -> str:
    catalog = match[1].split(".")[0].strip("`")
    return f"If {catalog} is a catalog of Paimon tables, install it: {_CATALOG.format(catalog)}."


def _procedure(match: "re.Match[str]") -> str:
    name = match[1].replace("`", "")
    return f"Name the catalog: CALL paimon.{name}(...)."


def _partitioned(_: "re.Match[str]") -> str:
    return (
        'With format("paimon") and save(), name the partition columns in an option instead of partitionBy: '
        '.option("partition", "dt").'
    )


_ADVICE: dict["re.Pattern[str]", Callable[["re.Match[str]"], str]] = {
    re.compile(r"\[DATA_SOURCE_NOT_(?:FOUND|EXIST)\].*\bpaimon\b", re.IGNORECASE): _unregistered,
    re.compile(
        r"\[REQUIRES_SINGLE_PART_NAMESPACE\].* but got (?:identifier )?((?:`[^`]*`|[^\s.]+)\.\S+)\."
    ): _without_catalog,
    re.compile(r"\[MISSING_CATALOG_ABILITY\.PROCEDURES\]"): lambda _: "Name the catalog: CALL paimon.sys.compact(...).",
    re.compile(r"\[UNRESOLVED_ROUTINE\] Cannot resolve routine (`sys`\.`\w+`)"): _procedure,
    re.compile(r".*provided partitioning or clustering columns do not match"): _partitioned,
}


def _amended(text: str, before_changes: bool = _BEFORE_CHANGES) -> str | None:
    """Return the text of an error with advice on its first line; `None`: no advice.

    ``before_changes``: True if Spark's parser does not know ``CHANGES FROM``.
    """
    if _MISSING_PACKAGE.search(text) is not None:
        return f"{WORKER_ERROR}{_EXECUTORS}\n{text.lstrip()}"
    first = text.partition("\n")[0]
    if before_changes and first.lstrip().startswith("[PARSE_SYNTAX_ERROR]") and _CHANGES.search(text) is not None:
        return with_advice(text, _WITHOUT_CHANGES)
    advice = next((advise(match) for pattern, advise in _ADVICE.items() if (match := pattern.match(first))), None)
    return with_advice(text, advice)


def _java_connector(error: Any) -> InvalidInputError | None:
    """Return the error for a catalog of the Java connector that Spark cannot load; `None`: another error."""
    text = str(error.getMessage())
    kind = _JAVA_CATALOG.search(text)
    if kind is None or ("CANNOT_LOAD_CATALOG" not in str(error.toString()) and "Cannot find catalog" not in text):
        return None
    name = _CATALOG_NAME.search(text)
    shown = name[1] if name else "paimon"
    return InvalidInputError(
        f"spark.sql.catalog.{shown} is {kind[0]}, the catalog of the Java connector, whose jar is not in this session: "
        f"call {_CATALOG.format(shown)}"
    )
