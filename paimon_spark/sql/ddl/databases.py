"""The databases of a catalog, for Spark's catalog interface."""

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from paimon_core import Catalog
from paimon_core.engine import SYSTEM_DATABASE
from paimon_core.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from paimon_spark.sql.bridge.conversions import java_array, java_map, text_array, texts_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.bridge.spark_errors import analysis_error

DEFAULT_DATABASE = "default"
_LOCATION = "location"
_OWNER = "owner"  # Spark adds the user of the process, which does not own the directory


@dataclass
class DatabaseHandler:
    """The databases of a catalog, for ``Catalog.java``."""

    jvm: Jvm
    name: str
    catalog: Catalog
    default_pending: bool = False
    """True if the database ``default`` is listed, but is created only with the first database or table."""

    def create_default(self) -> None:
        """Create the database ``default`` if it is pending."""
        if self.default_pending:
            self.catalog.create_database(DEFAULT_DATABASE, ignore_if_exists=True)
            self.default_pending = False

    def databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        names = self.catalog.list_databases()
        return sorted({*names, DEFAULT_DATABASE}) if self.default_pending else names

    def list_databases(self) -> Any:
        """Return the names of the databases as a Java array."""
        return java_array(self.jvm, "java.lang.Object", self.databases())

    def database_exists(self, namespace: Any) -> bool:
        """Return True if the database exists."""
        return self._exists(list(namespace))

    def _exists(self, parts: list[str]) -> bool:
        return len(parts) == 1 and (parts[0] == SYSTEM_DATABASE or parts[0] in self.databases())

    def load_database(self, namespace: Any) -> Any:
        """Return the properties of a database. Raise NoSuchNamespaceException if it is missing."""
        parts = list(namespace)
        if not self._exists(parts):
            raise self.no_such_database(namespace)
        name = parts[0]
        if name == SYSTEM_DATABASE:
            return java_map(self.jvm, {"comment": "system tables of the catalog"})
        pending = self.default_pending and name == DEFAULT_DATABASE
        properties = {} if pending else self.catalog.database_properties(name)
        return java_map(self.jvm, {**properties, _LOCATION: self._directory(name)})

    def create_database(self, namespace: Any, metadata: Any) -> None:
        """Create a database. Raise NamespaceAlreadyExistsException if it exists."""
        if len(namespace) != 1:
            raise UnsupportedError(f"database {'.'.join(namespace)!r}: databases of a warehouse are not nested")
        if namespace[0] == SYSTEM_DATABASE:  # some versions of Spark ask first whether it exists
            raise analysis_error(self.jvm, "NamespaceAlreadyExistsException", namespace)
        properties = texts_of(self.jvm, metadata)
        properties.pop(_OWNER, None)
        self._check_location(namespace[0], properties.pop(_LOCATION, None))
        self.create_default()
        try:
            self.catalog.create_database(namespace[0], properties=properties)
        except AlreadyExistsError:
            raise analysis_error(self.jvm, "NamespaceAlreadyExistsException", namespace) from None

    def alter_database(self, namespace: Any, changes: Any) -> None:
        """Set and remove properties of a database, including its comment."""
        self._check_changeable(namespace)
        changed: dict[str, str | None] = {}
        for change in changes:
            key = change.property()
            changed[key] = change.value() if change.getClass().getSimpleName() == "SetProperty" else None
        if _LOCATION in changed:
            self._check_location(namespace[0], changed.pop(_LOCATION))
        self.create_default()
        self.catalog.alter_database(namespace[0], changed)

    def drop_database(self, namespace: Any, cascade: bool) -> bool:
        """Delete a database and return True. `cascade`: True to delete its tables, too."""
        self._check_changeable(namespace)
        self.create_default()
        if not cascade and self.catalog.list_tables(namespace[0]):
            raise analysis_error(self.jvm, "NonEmptyNamespaceException", namespace)
        self.catalog.drop_database(namespace[0], cascade=cascade)
        return True

    def _check_exists(self, namespace: Any) -> None:
        if not self.database_exists(namespace):
            raise self.no_such_database(namespace)

    def _check_changeable(self, namespace: Any) -> None:
        self._check_exists(namespace)
        if namespace[0] == SYSTEM_DATABASE:
            raise InvalidInputError(f"database {SYSTEM_DATABASE!r} is reserved: its tables describe the catalog")

    def no_such_database(self, namespace: Any) -> Py4JJavaError:
        """Return the error for a missing database, with the name of the catalog."""
        name = text_array(self.jvm, [self.name, *namespace])
        return analysis_error(self.jvm, "NoSuchNamespaceException", name)

    def _directory(self, name: str) -> str:
        return self.catalog.database_location(name)

    def _check_location(self, name: str, location: str | None) -> None:
        directory = self._directory(name)
        if location is not None and not same_directory(location, directory):
            raise UnsupportedError(
                f"LOCATION {location!r} is not possible: this catalog stores the database in {directory}; install "
                "another catalog with another warehouse"
            )


def same_directory(first: str, second: str) -> bool:
    """Return True if two locations are the same directory; Spark writes local paths with and without a scheme."""
    return _plain(first) == _plain(second)


def _plain(location: str) -> str:
    text = location.rstrip("/")
    return "/" + text.removeprefix("file:").lstrip("/") if text.startswith("file:") else text
