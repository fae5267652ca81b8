"""Access from the Python driver to Spark's JVM: its classes, its sessions and the connector's classes.

Names of Spark's internals are in `paimon_spark.internals`. The connector's Java classes are in the folder ``java``.
Executors of a cluster get them for native writes.
"""

import json
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar
from weakref import WeakSet

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from paimon_spark.internals import check_names, gateway_server, java_session, keep_connection_once
from paimon_spark.sql.bridge.compiler import RELATIONS, add_classes, has_class, java_class

PACKAGE = "paimon.python"
CATALOG_CLASS = f"{PACKAGE}.Catalog"
VIEWED_CATALOG_CLASS = f"{PACKAGE}.ViewedCatalog"
"""The class of a catalog that stores views, since Spark 4.3."""
SESSION_CATALOG = "spark_catalog"
"""The name of Spark's own catalog."""
SESSION_CATALOG_CLASS = f"{PACKAGE}.SessionCatalog"
"""The class of a catalog under this name, which adds Paimon tables to the tables of Spark's own catalog."""


class Jvm:
    """The JVM of a classic session."""

    _adding: ClassVar[Lock] = Lock()
    _checked: ClassVar[WeakSet[Any]] = WeakSet()
    """The gateways whose JVM has the compiled classes and all Spark names that they use."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._context = spark.sparkContext
        self.gateway: Any = self._context._gateway
        self.java: Any = self._context._jvm
        self._types: dict[str, Any] = {}
        self._connector_classes: dict[str, Any] = {}
        self._methods: dict[tuple[str, str], Any] = {}

    # ---- classes and calls

    def type(self, name: str) -> Any:
        """Return a class of the JVM by its full name. Cost: one call for each part of the name, the first time."""
        if name not in self._types:
            self._types[name] = java_class(self.java, name)
        return self._types[name]

    def connector_class(self, name: str) -> Any:
        """Return a compiled class of ``java/`` by its name. Raises the errors of `bridge`."""
        if name not in self._connector_classes:
            self._connector_classes[name] = getattr(self.bridge, name)
        return self._connector_classes[name]

    def call(self, name: str, method: str, *arguments: Any) -> Any:
        """Call a static method of a compiled class. Cost: one JVM call, without the method lookup of py4j."""
        if (name, method) not in self._methods:
            self._methods[name, method] = getattr(self.connector_class(name), method)
        return self._methods[name, method](*arguments)

    def scala(self, name: str) -> Any:
        """Return a Scala object of the JVM by its full name."""
        package, _, simple_name = name.rpartition(".")
        return getattr(getattr(self.type(package), f"{simple_name}$"), "MODULE$")

    def is_called_by(self, class_name: str, method: str) -> bool:
        """Return True if a method of a Spark class is on the stack of the JVM thread that called Python.

        Args:
            class_name: the class, without its package.
            method: the method.
        """
        return bool(self.call("Sessions", "isCalledBy", class_name, method))

    @cached_property
    def bridge(self) -> Any:
        """The package of the compiled classes of ``java/``.

        Raises UnsupportedError if this version of Spark lacks an interface or a class loader that accepts classes.
        """
        ensure_callback_server_started(self.gateway)  # type: ignore[no-untyped-call]
        self.gateway.python_parameters.propagate_java_exceptions = True
        if self.gateway not in self._checked:
            self._add_classes()
            self.type(PACKAGE).Connections.use(gateway_server(self._context))
            keep_connection_once(self._context)
            self.check()
        return self.type(PACKAGE)

    def _add_classes(self) -> None:
        lang = self.java.java.lang
        context = lang.Thread.currentThread().getContextClassLoader()
        with self._adding:  # a loader accepts a class once
            try:
                context.loadClass(CATALOG_CLASS)
            except Py4JJavaError:
                loader = lang.Class.forName("org.apache.spark.SparkContext").getClassLoader()
                add_classes(self.java, self.gateway, loader, context, self.spark.version)

    def check(self) -> None:
        """Raise UnsupportedError if this version of Spark lacks a name that Python or the compiled classes use.

        REQUIRES: `bridge` has compiled the classes.
        """
        self._checked.discard(self.gateway)
        check_names(self.spark, self.type(PACKAGE).PaimonNames)
        self._checked.add(self.gateway)

    @cached_property
    def has_views(self) -> bool:
        """True if this Spark has views in catalogs other than its own: since version 4.3."""
        return has_class(self.java, RELATIONS)

    # ---- sessions

    def active_session(self) -> SparkSession:
        """Return the session whose query this thread of the JVM is planning."""
        return self.session(self.call("Sessions", "active", java_session(self.spark)))

    def session(self, session: Any) -> SparkSession:
        """Return a Java session as a SparkSession."""
        return SparkSession(self._context, session)

    def settings(self, prefix: str, spark: SparkSession | None = None) -> dict[str, str]:
        """Return the settings whose names begin with a prefix.

        Args:
            prefix: the beginning of the names.
            spark: a session; `None`: the session of `active_session`.
        """
        session = java_session(self.spark if spark is None else spark)
        settings: dict[str, str] = json.loads(self.call("Sessions", "settings", session, spark is None, prefix))
        return settings

    def set_everywhere(self, key: str, value: str) -> None:
        """Set a configuration value for this session and for all later sessions."""
        self.set_in_context(key, value)
        self.spark.conf.set(key, value)

    def set_in_context(self, key: str, value: str | None) -> None:
        """Set a configuration value of the context, which later sessions inherit; `None` removes it."""
        settings = self._context._jsc.sc().conf()
        settings.remove(key) if value is None else settings.set(key, value)

    def context_setting(self, key: str) -> str | None:
        """Return a configuration value of the context; `None` if it is not set."""
        value = self._context._jsc.sc().conf().get(key, "")
        return str(value) or None
