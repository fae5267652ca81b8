"""The part of a JDBC catalog in the changes of its tables: the lock, and the rows of tables and their properties."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from paimon_core.catalog.jdbc.database import CatalogError, Database, check_values, open_engine
from paimon_core.catalog.jdbc.lock import held_lock, lock_table
from paimon_core.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    InvalidInputError,
    TableChangedError,
    hide_secrets,
)
from paimon_core.fileio.stores import store_of
from paimon_core.options.parse import boolean, duration, number
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.environment import CatalogEnvironment

_KEY: Final = "jdbc"
_DEFAULTS: Final = {
    "catalog-key": _KEY,
    "client-pool-size": "2",
    "lock-acquire-timeout": "8 min",
    "lock-check-max-sleep": "8 s",
    "lock-key-max-length": "255",
    "sync-all-properties": "true",
}
_PARSERS: Final = {
    "client-pool-size": number(1),
    "lock-acquire-timeout": lambda text: duration(text).total_seconds(),
    "lock-check-max-sleep": lambda text: duration(text).total_seconds(),
    "lock.enabled": boolean,
    "lock-key-max-length": number(1),
    "sync-all-properties": boolean,
}


@dataclass(frozen=True)
class JdbcSettings:
    """The warehouse and the options of a JDBC catalog, with their values. Can be pickled; the repr shows no option."""

    warehouse: str
    options: Mapping[str, str] = field(repr=False, hash=False)

    def __post_init__(self) -> None:
        if not self.options.get("uri"):
            raise InvalidInputError("a JDBC catalog needs the option 'uri', such as 'jdbc:postgresql://host/database'")
        for name in _PARSERS:
            self.value(name)

    def __getstate__(self) -> tuple[str, Mapping[str, str]]:
        return self.warehouse, dict(self.options)

    def __setstate__(self, state: tuple[str, Mapping[str, str]]) -> None:
        object.__setattr__(self, "warehouse", state[0])
        object.__setattr__(self, "options", state[1])

    def value(self, name: str) -> object:
        """Return the value of an option, or its default; `None` without both. Raises InvalidInputError."""
        text = self.options.get(name, _DEFAULTS.get(name))
        parse = _PARSERS.get(name)
        try:
            return text if text is None or parse is None else parse(str(text))
        except ValueError as error:
            raise InvalidInputError(f"option {name!r} of the catalog is {text!r}: it {error}") from error

    @property
    def key(self) -> str:
        """The option ``catalog-key``."""
        return str(self.options.get("catalog-key", _KEY))

    @property
    def locks(self) -> bool:
        """True if publications take the lock; by default they do on object stores, as in Java."""
        chosen = self.value("lock.enabled")
        return store_of(self.warehouse).object_store if chosen is None else bool(chosen)

    @property
    def syncs(self) -> bool:
        """True if the options of tables are stored in the database, too."""
        return bool(self.value("sync-all-properties"))

    @property
    def database(self) -> Database:
        """The rows of the catalog, on the connections of this process."""
        engine, address = open_engine(self.options["uri"], self.options, int(str(self.value("client-pool-size"))))
        return Database(engine, address, self.key)

    def create_tables(self) -> None:
        """Create the tables of the catalog that are missing in the database."""
        database = self.database
        database.create_tables()
        if self.locks:
            database.create_tables(lock_table(int(str(self.value("lock-key-max-length")))))

    def lock(self, database: str, table: str) -> AbstractContextManager[None]:
        """Return a context that holds the lock of a table; without locks, one that does nothing."""
        if not self.locks:
            return nullcontext()
        timeout, longest = (float(str(self.value(name))) for name in ("lock-acquire-timeout", "lock-check-max-sleep"))
        length = int(str(self.value("lock-key-max-length")))
        return held_lock(self.database, f"{self.key}.{database}.{table}", timeout, longest, length)


@dataclass(frozen=True)
class JdbcEnvironment(CatalogEnvironment):
    """The environment of one table.

    Args:
        settings: the catalog.
        name: the database and the name of the table.
        path: the directory of the table.
    """

    settings: JdbcSettings
    name: tuple[str, str]
    path: str = field(repr=False)

    @property
    def _shown(self) -> str:
        return ".".join(self.name)

    def address(self) -> dict[str, str]:
        """Return the options of the catalog, with the warehouse, and the name of the table."""
        database, table = (part.replace("`", "``") for part in self.name)
        return {**self.settings.options, "warehouse": self.settings.warehouse, "table": f"`{database}`.`{table}`"}

    def locked(self) -> AbstractContextManager[None]:
        """Return a context that holds the lock of the table. Raises NotLockedError on entry."""
        return self.settings.lock(*self.name)

    def publish_schema(self, schemas: Schemas, schema: TableSchema) -> bool:
        """Publish a version of the schema, and store its options in the database; the first version lists the table.

        Arguments and errors as for `CatalogEnvironment.publish_schema`. Raises TableChangedError for a table that the
        catalog does not list any more, InvalidInputError for an option that the database cannot hold.
        """
        if schemas.table_root.rstrip("/") != self.path.rstrip("/"):  # of a branch
            return super().publish_schema(schemas, schema)
        properties = _properties(schema) if self.settings.syncs else {}
        check_values(properties, f"table {self._shown!r}")
        database = self.settings.database
        with self.locked():
            listed = database.has_table(*self.name)
            if schema.id > 0 and schemas.ids():
                if not listed:
                    raise TableChangedError(
                        f"{self._shown!r} is not in the catalog any more: it was dropped or renamed, so nothing was "
                        "changed"
                    )
                if not schemas.commit(schema):
                    return False
                if self.settings.syncs:
                    database.replace_properties(*self.name, properties)
                return True
            if listed or not schemas.commit(schema):
                return False
            self._list(database, schemas, schema, properties)
        return True

    def _list(self, database: Database, schemas: Schemas, schema: TableSchema, properties: Mapping[str, str]) -> None:
        """Insert the row of a new table; delete its schema if the row is provably not stored."""
        try:
            database.insert_table(*self.name, properties)
        except AlreadyExistsError:
            schemas.io.delete(schemas.path(schema.id))
            raise
        except CatalogError as error:
            try:
                listed = database.has_table(*self.name)
            except CatalogError:
                raise CommitUnknownError(
                    f"the catalog did not confirm the creation of {self._shown!r}, which may be done: look whether it "
                    f"exists, or drop it, before creating it again: {error}"
                ) from error
            if not listed:
                schemas.io.delete(schemas.path(schema.id))
                raise

    def __repr__(self) -> str:
        return f"JdbcEnvironment({self._shown!r}, {hide_secrets(self.path)!r})"


def _properties(schema: TableSchema) -> dict[str, str]:
    """Return the property rows of a table: its options, and its keys as options."""
    keys = {
        "primary-key": schema.primary_keys,
        "partition": schema.partition_keys,
        "bucket-key": schema.bucket_keys,
    }
    return {**dict(schema.options.items()), **{key: ",".join(columns) for key, columns in keys.items() if columns}}
