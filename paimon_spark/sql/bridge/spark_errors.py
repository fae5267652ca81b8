"""Java exceptions that handlers raise when Java calls them."""

from typing import Any

from py4j.protocol import Py4JJavaError

from paimon_spark.internals import session_state
from paimon_spark.sql.bridge.jvm import Jvm

_CATALYST = "org.apache.spark.sql.catalyst.analysis"


def analysis_error(jvm: Jvm, name: str, *arguments: Any) -> Py4JJavaError:
    """Return an exception that Spark's analyzer handles.

    Args:
        jvm: the JVM.
        name: the class, such as ``NoSuchTableException``.
        arguments: the arguments of its constructor.
    """
    error = getattr(jvm.type(_CATALYST), name)(*arguments)
    return Py4JJavaError(str(error.getMessage()), error)


def unsupported(jvm: Jvm, message: str) -> Py4JJavaError:
    """Return an UnsupportedOperationException."""
    return Py4JJavaError(message, jvm.type("java.lang.UnsupportedOperationException")(message))


def illegal(jvm: Jvm, message: str) -> Py4JJavaError:
    """Return an IllegalArgumentException."""
    return Py4JJavaError(message, jvm.type("java.lang.IllegalArgumentException")(message))


def syntax_error(jvm: Jvm, text: str, line: int, column: int, near: str) -> Py4JJavaError:
    """Return a ParseException of kind PARSE_SYNTAX_ERROR.

    Args:
        jvm: the JVM.
        text: the statement.
        line: the line of the error, from 1.
        column: the column of the error, from 0.
        near: the unexpected word; empty: the unexpected end of the text.
    """
    error = jvm.bridge.PaimonErrors.syntax(text, line, column, f"'{near}'" if near else "end of input")
    return Py4JJavaError(str(error.getMessage()), error)


def missing_table(jvm: Jvm, name: str) -> Py4JJavaError:
    """Return an AnalysisException of kind TABLE_OR_VIEW_NOT_FOUND, which ends Spark's search for the table."""
    manager = session_state(jvm.active_session()).catalogManager()
    current = ".".join([str(manager.currentCatalog().name()), *manager.currentNamespace()])
    error = jvm.bridge.PaimonErrors.noTable(name, current)
    return Py4JJavaError(str(error.getMessage()), error)
