"""Handlers: Python objects whose methods Java calls, through ``PythonHandler.java``.

Java reaches the methods of the handler's endpoints (`paimon_spark.sql.bridge.endpoints`) and no other attribute.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from paimon_core.errors import PaimonError, UnsupportedError, hide_secrets
from paimon_spark.interruption import statement
from paimon_spark.sql.bridge.endpoints import endpoint_methods
from paimon_spark.sql.bridge.jvm import PACKAGE, Jvm
from paimon_spark.sql.bridge.spark_errors import illegal, unsupported

_log = logging.getLogger(__name__)
_ARGUMENTS_IN_ARRAY = -1
_SECONDS_OF_A_STATEMENT = 10.0
"""Spark may retry a failed call through another method. Errors of one class within this time count as one failure."""

_results = threading.local()
"""The last answer or error of each thread: see `Handler`."""


class Handler:
    """A Python object that implements ``PythonHandler.java``, whose methods Java calls.

    A py4j callback runs in a separate thread, even after Ctrl-C in the thread that called Java. An exception that
    PySpark translated on its way to Python returns to the JVM as the original exception.

    py4j sends a Java object as a number that Java looks up. Once Python collects the object, Java removes the number,
    possibly before it has looked it up: then the call would return null. So each thread keeps what its last call
    returned or raised. Java looks it up before it calls again or closes the connection.
    """

    def __init__(self, run: Callable[[str, Sequence[Any]], Any]) -> None:
        self._run = run

    def call(self, method: str, number: int, *arguments: Any) -> Any:
        """Call a method with the first `number` arguments; -1: the first argument is an array of all arguments."""
        try:
            values = arguments[0] if number == _ARGUMENTS_IN_ARRAY else arguments[:number]
            with statement():
                _results.last = self._run(method, list(values))
            return _results.last
        except CapturedException as error:
            if error._origin is None:
                raise
            _results.last = error._origin
            raise Py4JJavaError(str(error), error._origin) from None
        except Py4JJavaError as error:
            _results.last = error.java_exception
            raise
        except Exception:
            raise
        except BaseException as error:  # py4j would end its thread without a result, and Java would wait forever
            raise RuntimeError(f"{type(error).__name__}: {error}") from error

    class Java:
        """The Java interfaces that objects of the class implement through py4j."""

        implements = [f"{PACKAGE}.PythonHandler"]  # noqa: RUF012


class _Failures:
    """The class of the last logged error, and the time until which its errors are logged without traceback."""

    def __init__(self) -> None:
        self._kind: type[BaseException] | None = None
        self._until = 0.0

    def log(self, method: str, error: BaseException) -> None:
        """Log an error, with a traceback unless an error of its class was just logged."""
        if self._kind is type(error) and time.monotonic() < self._until:
            _log.debug("method %r failed: %s", method, hide_secrets(str(error)))
            return
        self._kind, self._until = type(error), time.monotonic() + _SECONDS_OF_A_STATEMENT
        _log.error("method %r failed", method, exc_info=error)


_failures = _Failures()


def handler_of(jvm: Jvm, target: object) -> Handler:
    """Return a handler that calls the endpoint methods of an object and converts errors for Spark.

    Args:
        jvm: the JVM that calls.
        target: an object whose class derives from at least one endpoint.
    """
    kind: type[Any] = type(target)
    methods = endpoint_methods(kind)

    def run(method: str, arguments: Sequence[Any]) -> Any:
        try:
            if method not in methods:
                raise AttributeError(f"{type(target).__name__} has no endpoint method {method!r}")
            return getattr(target, method)(*arguments)
        except (UnsupportedError, NotImplementedError) as error:
            raise unsupported(jvm, str(error)) from None
        except PaimonError as error:
            raise illegal(jvm, str(error)) from None
        except (CapturedException, Py4JJavaError):
            raise
        except BaseException as error:  # py4j would print its trace; for SystemExit it would send no result at all
            _failures.log(method, error)
            raise illegal(jvm, hide_secrets(f"{type(error).__name__}: {error}")) from error

    return Handler(run)
