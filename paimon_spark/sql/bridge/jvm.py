"""Spark's JVM as driver Python sees it; names inside of Spark stand in `paimon_spark.internals`.

The connector's Java classes are in the folder ``java``. Janino, which every Spark ships for its code generation,
compiles them on the driver. Executors never load them.
"""

import atexit
import json
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import resources
from typing import Any, ClassVar
from weakref import WeakSet

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from paimon_core.errors import PaimonError, UnsupportedError, hide_secrets
from paimon_spark.internals import check_names, gateway_server, java_session, session_state
from paimon_spark.interruption import statement

_log = logging.getLogger(__name__)
_PACKAGE = "paimon.python"
CATALOG_CLASS = f"{_PACKAGE}.Catalog"
_CATALYST = "org.apache.spark.sql.catalyst.analysis"
_CONNECTOR = "org.apache.spark.sql.connector"
_DELEGATES = "  /*DELEGATES*/\n"


_ARGUMENTS_IN_ARRAY = -1
_SECONDS_OF_A_STATEMENT = 10.0
"""For so long after an error others of its class are taken for the same failure: Spark asks again, and otherwise."""


class Function:
    """A Python function of a question and its arguments, as ``PythonFunction.java``.

    A py4j callback runs in a thread of its own, after Ctrl-C in the one that called Java. Exceptions that PySpark
    translated on their way to Python return to the JVM as themselves.
    """

    def __init__(self, answer: Callable[[str, Any], Any]) -> None:
        self._answer = answer

    def ask(self, question: str, number: int, *arguments: Any) -> Any:
        """Answer a question of ``java/``."""
        try:
            given = arguments[0] if number == _ARGUMENTS_IN_ARRAY else arguments[:number]
            with statement():
                return self._answer(question, list(given))
        except CapturedException as error:
            if error._origin is None:
                raise
            raise Py4JJavaError(str(error), error._origin) from None
        except Exception:
            raise
        except BaseException as error:  # py4j would end its thread without an answer, and Java would wait for ever
            raise RuntimeError(f"{type(error).__name__}: {error}") from error

    class Java:
        """The interfaces that py4j implements with an object of the class."""

        implements = [f"{_PACKAGE}.PythonFunction"]  # noqa: RUF012


class Jvm:
    """The JVM of a classic session."""

    _targets: ClassVar[dict[str, Any]] = {}
    _checked: ClassVar[WeakSet[Any]] = WeakSet()
    """The gateways whose JVM has the compiled classes and every name that they need."""
    _logged: ClassVar[tuple[type[BaseException] | None, float]] = (None, 0.0)
    """The class of the error that was logged last, and until when others of it are not."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._context = spark.sparkContext
        self._gateway: Any = self._context._gateway
        self.java: Any = self._context._jvm
        self._types: dict[str, Any] = {}
        self._own: dict[str, Any] = {}
        self._methods: dict[tuple[str, str], Any] = {}

    def strings(self, items: Iterable[str | None]) -> Any:
        """Return a Java array of texts."""
        return self.call("Trees", "strings", json.dumps(list(items)))

    def array(self, kind: str, items: Iterable[Any]) -> Any:
        """Return a Java array of the class ``kind``. Cost: a call for each item."""
        values = list(items)
        found = self._gateway.new_array(self.type(kind), len(values))
        for i, value in enumerate(values):
            found[i] = value
        return found

    def type(self, name: str) -> Any:
        """Return a class of the JVM by its full name. Cost: a call for each part of the name, once."""
        if name not in self._types:
            found = self.java
            for part in name.split("."):
                found = getattr(found, part)
            self._types[name] = found
        return self._types[name]

    def own(self, name: str) -> Any:
        """Return a compiled class of ``java/`` by its name. Raises as `bridge`."""
        if name not in self._own:
            self._own[name] = getattr(self.bridge, name)
        return self._own[name]

    def call(self, name: str, method: str, *arguments: Any) -> Any:
        """Call a static method of a compiled class. Cost: one call; py4j alone looks the method up each time."""
        if (name, method) not in self._methods:
            self._methods[name, method] = getattr(self.own(name), method)
        return self._methods[name, method](*arguments)

    def rows(self, rows: Iterable[Iterable[Any]]) -> Any:
        """Return rows as a Java array of arrays."""
        return self.array("java.lang.Object", [self.array("java.lang.Object", row) for row in rows])

    def list(self, items: Iterable[str]) -> Any:
        """Return a ``java.util.ArrayList``."""
        return self.call("Trees", "collection", json.dumps(list(items)))

    def map(self, values: Mapping[str, str]) -> Any:
        """Return a ``java.util.Map``."""
        return self.call("Trees", "collection", json.dumps(dict(values)))

    def exception(self, name: str, *arguments: Any) -> Py4JJavaError:
        """Return an exception of Spark's analysis, such as ``NoSuchTableException``, to be raised out of a callback."""
        error = getattr(self.type(_CATALYST), name)(*arguments)
        return Py4JJavaError(str(error.getMessage()), error)

    def unsupported(self, message: str) -> Py4JJavaError:
        """Return an UnsupportedOperationException, to be raised out of a callback."""
        error = self.java.java.lang.UnsupportedOperationException(message)
        return Py4JJavaError(message, error)

    def illegal(self, message: str) -> Py4JJavaError:
        """Return an IllegalArgumentException, to be raised out of a callback."""
        return Py4JJavaError(message, self.java.java.lang.IllegalArgumentException(message))

    def stored_schema(self, table: Any) -> str | None:
        """Return the schema of a Java table as the engine stores it; `None`: the table is not of this connector."""
        own = str(table.getClass().getName()).startswith(f"{_PACKAGE}.")
        return str(table.storedSchema()) if own else None

    def function(self, target: object) -> Function:
        """Return a Function that answers a question with the method of its name; errors arrive as Spark's kinds."""

        def answer(question: str, arguments: Any) -> Any:
            try:
                return getattr(target, question)(*arguments)
            except (UnsupportedError, NotImplementedError) as error:
                raise self.unsupported(str(error)) from None
            except PaimonError as error:
                raise self.illegal(str(error)) from None
            except (CapturedException, Py4JJavaError):
                raise
            except BaseException as error:  # py4j would show its trace, and for SystemExit it would not answer at all
                self._log_once(question, error)
                raise self.illegal(hide_secrets(f"{type(error).__name__}: {error}")) from error

        return Function(answer)

    def _log_once(self, question: str, error: BaseException) -> None:
        """Log an error with its trace; others of its class soon after, as of the next question, without one."""
        kind, until = Jvm._logged
        if kind is type(error) and time.monotonic() < until:
            _log.debug("the answer to %r failed: %s", question, hide_secrets(str(error)))
            return
        Jvm._logged = (type(error), time.monotonic() + _SECONDS_OF_A_STATEMENT)
        _log.error("the answer to %r failed", question, exc_info=error)

    def install(self, name: str, target: Any) -> None:
        """Make a target answer the questions of the catalog of this name."""
        self._targets[name] = target
        self.bridge.Bridge.FUNCTIONS.put(name, self.function(target))

    def set_everywhere(self, key: str, value: str) -> None:
        """Set a configuration for this session and for sessions that are made later."""
        self._context._jsc.sc().conf().set(key, value)
        self.spark.conf.set(key, value)

    def is_called_by(self, class_name: str, method: str) -> bool:
        """Return True if a method of a Spark class has led to the question that this thread of the JVM asks."""
        frames = self.java.java.lang.Thread.currentThread().getStackTrace()
        return any(one.getMethodName() == method and one.getClassName().endswith(f".{class_name}") for one in frames)

    def active_session(self) -> SparkSession:
        """Return the session whose query is planned in this thread of the JVM."""
        return SparkSession(self._context, self.call("Sessions", "active", java_session(self.spark)))

    def settings(self, prefix: str, spark: SparkSession | None = None) -> dict[str, str]:
        """Return the settings whose names begin with a prefix.

        Args:
            prefix: of the names.
            spark: a session; `None`: the one whose query is planned in this thread of the JVM.
        """
        session = java_session(self.spark if spark is None else spark)
        found: dict[str, str] = json.loads(self.call("Sessions", "settings", session, spark is None, prefix))
        return found

    def session(self, session: Any) -> SparkSession:
        """Return a Java session as a SparkSession."""
        return SparkSession(self._context, session)

    def table(self, spark: SparkSession, parts: Sequence[str], command: str) -> Any:
        """Return the engine's table for a name as a session resolves it.

        Raises Spark's TABLE_OR_VIEW_NOT_FOUND, UnsupportedError for a table that is not Paimon's.
        """
        return self.table_and_storage(spark, parts, command)[0]

    def table_and_storage(self, spark: SparkSession, parts: Sequence[str], command: str) -> tuple[Any, dict[str, str]]:
        """Return the engine's table for a name, as `table` does, and the options of its file system as texts."""
        found = self.resolved(spark, parts, command)
        target = self._targets.get(str(found.catalog().name()))
        if target is None:
            raise UnsupportedError(f"{'.'.join(parts)} is not a Paimon table: {command} is not possible")
        storage = target.catalog.storage_options.items()
        return target.open_table(found.identifier()), {str(key): str(value) for key, value in storage}

    def resolved(self, spark: SparkSession, parts: Iterable[str], command: str) -> Any:
        """Return Spark's ResolvedTable for a name as a session resolves it. Raises TABLE_OR_VIEW_NOT_FOUND."""
        names = self.java.java.util.ArrayList()
        for part in parts:
            names.append(part)
        name = self.java.scala.jdk.javaapi.CollectionConverters.asScala(names).toSeq()
        unresolved = self.type(f"{_CATALYST}.UnresolvedTable")(name, command, True)
        execution = session_state(spark).executePlan(unresolved, self._no_execution())
        return execution.analyzed()

    def target(self, spark: SparkSession, parts: Sequence[str]) -> tuple[Any, Any]:
        """Return the target of the catalog that has a new table of this name, and the table's Identifier.

        REQUIRES: the catalog is installed.
        """
        manager = session_state(spark).catalogManager()
        names = list(parts)
        named = len(names) > 1 and bool(manager.isCatalogRegistered(names[0]))
        catalog = names.pop(0) if named else str(manager.currentCatalog().name())
        space = names[:-1] or ([] if named else [str(one) for one in manager.currentNamespace()])
        identifier = self.type(f"{_CONNECTOR}.catalog.Identifier")
        return self._targets[catalog], identifier.of(self.array("java.lang.String", space), names[-1])

    def _no_execution(self) -> Any:
        return self.scala("org.apache.spark.sql.execution.CommandExecutionMode").SKIP()

    def parse_error(self, text: str, line: int, column: int, near: str) -> Py4JJavaError:
        """Return a ParseException of kind PARSE_SYNTAX_ERROR at a place of a text, to be raised out of a callback."""
        error = self.bridge.PaimonErrors.syntax(text, line, column, f"'{near}'" if near else "end of input")
        return Py4JJavaError(str(error.getMessage()), error)

    def no_table(self, name: str) -> Py4JJavaError:
        """Return an AnalysisException of kind TABLE_OR_VIEW_NOT_FOUND, which ends the search for the table."""
        manager = session_state(self.active_session()).catalogManager()
        current = ".".join([str(manager.currentCatalog().name()), *manager.currentNamespace()])
        error = self.bridge.PaimonErrors.noTable(name, current)
        return Py4JJavaError(str(error.getMessage()), error)

    def struct(self, schema: StructType) -> Any:
        """Return a schema as Java's StructType."""
        return java_session(self.spark).parseDataType(schema.json())

    def columns(self, definitions: str) -> Any:
        """Return columns, written as in ``CREATE TABLE``, as Java's StructType."""
        return self.type("org.apache.spark.sql.types.StructType").fromDDL(definitions)

    def frame(self, rows: Any) -> DataFrame:
        """Return a Java Dataset as a DataFrame of its own session."""
        return DataFrame(rows, SparkSession(self._context, rows.sparkSession()))

    def scala(self, name: str) -> Any:
        """Return a Scala object of the JVM by its full name."""
        package, _, own = name.rpartition(".")
        return getattr(getattr(self.type(package), f"{own}$"), "MODULE$")

    @cached_property
    def bridge(self) -> Any:
        """The package of the compiled classes of ``java/``.

        Raises UnsupportedError if this Spark lacks an interface, or has no class loader that takes classes.
        """
        ensure_callback_server_started(self._gateway)  # type: ignore[no-untyped-call]
        self._gateway.python_parameters.propagate_java_exceptions = True
        if self._gateway not in self._checked:
            loader = self.java.java.lang.Thread.currentThread().getContextClassLoader()
            try:
                loader.loadClass(CATALOG_CLASS)
            except Py4JJavaError:
                self._compile(loader)
            self.type(_PACKAGE).Connections.use(gateway_server(self._context))
            self.check()
        return self.type(_PACKAGE)

    def check(self) -> None:
        """Raise UnsupportedError if this Spark lacks a name that Python or the compiled classes need.

        REQUIRES: the classes are compiled, as by `bridge`.
        """
        self._checked.discard(self._gateway)
        check_names(self.spark, self.type(_PACKAGE).PaimonNames)
        self._checked.add(self._gateway)

    def _delegates(self) -> str:
        """Return the Java text of the methods of this Spark's ParserInterface that pass a question on unchanged."""
        found = []
        parser = self.java.java.lang.Class.forName("org.apache.spark.sql.catalyst.parser.ParserInterface")
        for method in parser.getMethods():
            name, modifiers = str(method.getName()), self.java.java.lang.reflect.Modifier
            if "$" in name or modifiers.isStatic(method.getModifiers()) or name.startswith("parsePlan"):
                continue
            types = [str(kind.getCanonicalName()) for kind in method.getParameterTypes()]
            declared = ", ".join(f"{kind} a{i}" for i, kind in enumerate(types))
            given = ", ".join(f"a{i}" for i in range(len(types)))
            thrown = ", ".join(str(kind.getCanonicalName()) for kind in method.getExceptionTypes())
            result = method.getReturnType().getCanonicalName()
            throws = f" throws {thrown}" if thrown else ""
            found.append(f"  public {result} {name}({declared}){throws} {{ return spark.{name}({given}); }}\n")
        return "".join(found)

    def _compile(self, loader: Any) -> None:
        janino, util = self.type("org.codehaus.janino"), self.type("org.codehaus.commons.compiler.util.resource")
        folder = tempfile.mkdtemp(prefix="paimon-spark-classes-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        files = [
            file for file in resources.files(__package__).joinpath("java").iterdir() if file.name.endswith(".java")
        ]
        sources = [
            util.StringResource(file.name, file.read_text().replace(_DELEGATES, self._delegates()))
            for file in sorted(files, key=lambda file: file.name)
        ]
        compiler = janino.Compiler()
        compiler.setIClassLoader(janino.ClassLoaderIClassLoader(loader))
        compiler.setClassFileCreator(util.DirectoryResourceCreator(self.java.java.io.File(folder)))
        try:
            compiler.compile(self.array("org.codehaus.commons.compiler.util.resource.Resource", sources))
            loader.addURL(self.java.java.io.File(folder).toURI().toURL())
        except Py4JJavaError as error:
            raise UnsupportedError(
                f"this Spark {self.spark.version} cannot hold a Paimon catalog: {error.java_exception.getMessage()}; "
                "use spark.read.format('paimon') and PaimonTable.forPath"
            ) from error
