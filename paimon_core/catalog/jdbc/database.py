"""The tables of the catalog in a database, with the names, columns and keys of Java's JDBC catalog."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakSet

from paimon_core.catalog.jdbc.urls import PREFIX, DatabaseAddress, database_address
from paimon_core.errors import AlreadyExistsError, InvalidInputError, MissingDependencyError, PaimonError

try:
    import sqlalchemy as sa
    from sqlalchemy import event
except ImportError as error:
    raise MissingDependencyError(
        f"a JDBC catalog needs SQLAlchemy and a driver: pip install 'pyspark-paimon[jdbc]' ({error})"
    ) from error

NAME_LENGTH: Final = 255
VALUE_LENGTH: Final = 1000
_EXISTS, _LOCATION = "exists", "location"
_READ = "paimon_read"
_META = sa.MetaData()
_BUSY: Final = ("database is locked", "Deadlock", "deadlock", "Lock wait timeout", "could not serialize")
"""Parts of the messages for a transaction that another one stopped: nothing of it is stored."""


def _name(column: str, **settings: Any) -> "sa.Column[str]":
    return sa.Column(column, sa.String(NAME_LENGTH), nullable=False, **settings)


_tables = sa.Table(
    "paimon_tables",
    _META,
    _name("catalog_key", primary_key=True),
    _name("database_name", primary_key=True),
    _name("table_name", primary_key=True),
)
_databases = sa.Table(
    "paimon_database_properties",
    _META,
    _name("catalog_key", primary_key=True),
    _name("database_name", primary_key=True),
    sa.Column("property_key", sa.String(NAME_LENGTH), primary_key=True),
    sa.Column("property_value", sa.String(VALUE_LENGTH)),
)
_properties = sa.Table(
    "paimon_table_properties",
    _META,
    _name("catalog_key", primary_key=True),
    _name("database_name", primary_key=True),
    _name("table_name", primary_key=True),
    _name("property_key", primary_key=True),
    sa.Column("property_value", sa.String(VALUE_LENGTH)),
)
VIEWS: Final = sa.MetaData()
"""The table of views, which Java has since version 2. It is created with the first view."""
_views = sa.Table(
    "paimon_views",
    VIEWS,
    _name("catalog_key", primary_key=True),
    _name("database_name", primary_key=True),
    _name("view_name", primary_key=True),
    sa.Column("view_schema", sa.Text, nullable=False),
)
_with_views: WeakSet["sa.Engine"] = WeakSet()
"""The connections to databases that have the table of views."""


class CatalogError(PaimonError, OSError):
    """The database of a catalog did not answer, or refused a statement.

    ``is_conflict``: True if a row with the same key exists, or another transaction had it locked.
    """

    def __init__(self, message: str, *, is_conflict: bool = False) -> None:
        super().__init__(message)
        self.is_conflict = is_conflict


class Database:
    """The rows of one catalog in a database. Each method is one transaction.

    Args:
        engine: the connections.
        address: the database.
        key: the option ``catalog-key``; several catalogs can share a database.

    Raises CatalogError for any failure of the database.
    """

    def __init__(self, engine: "sa.Engine", address: DatabaseAddress, key: str) -> None:
        self.address, self.key = address, key
        self._engine = engine

    @property
    def has_views(self) -> bool:
        """True if the database has the table of views."""
        if self._engine not in _with_views:
            with self.transaction(reads=True) as connection:
                if not sa.inspect(connection).has_table(_views.name):
                    return False
            _with_views.add(self._engine)
        return True

    @property
    def _listing(self) -> tuple["sa.Table", ...]:
        """The tables whose rows make a database exist."""
        return (_databases, _tables, _views) if self.has_views else (_databases, _tables)

    # ---- the tables of the catalog

    def create_tables(self, tables: "sa.MetaData" = _META) -> None:
        """Create the tables that are missing. Other processes may do the same at the same time."""
        with self._errors():
            try:
                tables.create_all(self._engine)
            except sa.exc.DBAPIError:
                present = set(sa.inspect(self._engine).get_table_names())
                if not present.issuperset(tables.tables):
                    raise

    @contextmanager
    def transaction(self, *, reads: bool = False) -> Iterator["sa.Connection"]:
        """Run the block in a transaction; roll back if it raises. ``reads``: True if it changes nothing."""
        with (
            self._errors(),
            self._engine.connect().execution_options(**{_READ: reads}) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            original = getattr(error, "orig", None)
            reason = f"{type(error).__name__}: {original if original is not None else error}"
            if "key was too long" in reason:
                reason += (
                    "; four names of 255 characters are the primary key: create the database with CHARACTER SET utf8mb3"
                )
            if "unable to open database file" in reason:
                reason += "; its directory must exist"
            conflict = isinstance(error, sa.exc.IntegrityError) or any(text in reason for text in _BUSY)
            message = f"the catalog's database {self.address.shown} failed: {reason}"
            raise CatalogError(message, is_conflict=conflict) from None

    # ---- databases

    def databases(self) -> list[str]:
        """Return the names of the databases that have properties, tables or views, sorted."""
        names: set[str] = set()
        listing = self._listing
        with self.transaction(reads=True) as connection:
            for table in listing:
                column = table.c.database_name
                names.update(connection.scalars(sa.select(column).where(table.c.catalog_key == self.key).distinct()))
        return sorted(names)

    def has_database(self, name: str) -> bool:
        """Return True if a database has properties, tables or views."""
        listing = self._listing
        with self.transaction(reads=True) as connection:
            return self._has_database(connection, name, listing)

    def _has_database(self, connection: "sa.Connection", name: str, listing: Sequence["sa.Table"]) -> bool:
        return any(
            connection.execute(sa.select(table.c.catalog_key).where(*self._of(table, name)).limit(1)).first()
            is not None
            for table in listing
        )

    def create_database(self, name: str, location: str, properties: Mapping[str, str]) -> None:
        """Store a database with its properties. Raises AlreadyExistsError."""
        stored = {_EXISTS: "true", _LOCATION: location, **properties}
        check_values(stored, f"database {name!r}")
        exists = AlreadyExistsError(f"database {name!r} exists already in the catalog {self.key!r}")
        listing = self._listing
        rows = [self._row(name, property_key=key, property_value=value) for key, value in stored.items()]
        try:
            with self.transaction() as connection:
                if self._has_database(connection, name, listing):
                    raise exists
                connection.execute(sa.insert(_databases), rows)
        except CatalogError as error:
            if error.is_conflict and self.has_database(name):
                raise exists from None
            raise

    def database_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database, without the two that this module adds."""
        with self.transaction(reads=True) as connection:
            query = sa.select(_databases.c.property_key, _databases.c.property_value).where(*self._of(_databases, name))
            stored = {str(key): str(value or "") for key, value in connection.execute(query)}
        return {key: value for key, value in stored.items() if key not in (_EXISTS, _LOCATION)}

    def alter_database(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set properties of a database; a value `None` removes a property."""
        reserved = next((key for key in (_EXISTS, _LOCATION) if key in changes), None)
        if reserved is not None:
            raise InvalidInputError(
                f"property {reserved!r} of database {name!r} cannot be changed: the catalog sets it"
            )
        added = {key: value for key, value in changes.items() if value is not None}
        check_values(added, f"database {name!r}")
        with self.transaction() as connection:
            connection.execute(
                sa.delete(_databases).where(*self._of(_databases, name), _databases.c.property_key.in_(list(changes)))
            )
            if added:
                connection.execute(
                    sa.insert(_databases), [self._row(name, property_key=k, property_value=v) for k, v in added.items()]
                )

    def drop_database(self, name: str) -> list[str]:
        """Delete a database without tables and views, and return []; with some, change nothing and return the names."""
        has_views = self.has_views
        with self.transaction() as connection:
            left = self._table_names(connection, name)
            if has_views:
                left += connection.scalars(sa.select(_views.c.view_name).where(*self._of(_views, name)))
            if not left:
                for table in (_databases, _properties):
                    connection.execute(sa.delete(table).where(*self._of(table, name)))
            return left

    # ---- tables

    def table_names(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted."""
        with self.transaction(reads=True) as connection:
            return self._table_names(connection, database)

    def _table_names(self, connection: "sa.Connection", database: str) -> list[str]:
        return sorted(connection.scalars(sa.select(_tables.c.table_name).where(*self._of(_tables, database))))

    def has_table(self, database: str, name: str) -> bool:
        """Return True if the catalog lists a table."""
        with self.transaction(reads=True) as connection:
            return self._has_table(connection, database, name)

    def insert_table(self, database: str, name: str, properties: Mapping[str, str]) -> None:
        """List a table, with its properties. Raises AlreadyExistsError."""
        has_views = self.has_views
        try:
            with self.transaction() as connection:
                if has_views and self._stored_view(connection, database, name) is not None:
                    raise AlreadyExistsError(
                        f"'{database}.{name}' exists already in the catalog {self.key!r}, as a view"
                    )
                connection.execute(sa.insert(_tables), self._row(database, table_name=name))
                self._replace_properties(connection, database, name, properties)
        except CatalogError as error:
            if error.is_conflict and self.has_table(database, name):
                shown = f"{database}.{name}"
                raise AlreadyExistsError(f"table {shown!r} exists already in the catalog {self.key!r}") from None
            raise

    def replace_properties(self, database: str, name: str, properties: Mapping[str, str]) -> None:
        """Replace the properties of a table that the catalog lists; do nothing if it does not list it."""
        with self.transaction() as connection:
            listed = sa.select(_tables.c.catalog_key).where(*self._of(_tables, database, name))
            if connection.execute(listed).first() is not None:
                self._replace_properties(connection, database, name, properties)

    def _replace_properties(
        self, connection: "sa.Connection", database: str, name: str, properties: Mapping[str, str]
    ) -> None:
        """Replace the property rows of a table, even rows that another writer has left under this name."""
        connection.execute(sa.delete(_properties).where(*self._of(_properties, database, name)))
        rows = [self._row(database, table_name=name, property_key=k, property_value=v) for k, v in properties.items()]
        if rows:
            connection.execute(sa.insert(_properties), rows)

    def delete_table(self, database: str, name: str) -> bool:
        """Delete the row and the property rows of a table; return False if the catalog does not list it."""
        with self.transaction() as connection:
            found = connection.execute(sa.delete(_tables).where(*self._of(_tables, database, name))).rowcount > 0
            connection.execute(sa.delete(_properties).where(*self._of(_properties, database, name)))
            return found

    @contextmanager
    def renaming(self, old: tuple[str, str], new: tuple[str, str]) -> Iterator[None]:
        """Move the rows of a table to a new name, and keep the change if the block does not raise.

        Args:
            old: the database and the name.
            new: the new database and the new name.

        Raises AlreadyExistsError if the new name is taken, InvalidInputError if the old one is not listed any more.
        """
        has_views = self.has_views
        with self.transaction() as connection:
            moved = {"database_name": new[0], "table_name": new[1]}
            if has_views and self._stored_view(connection, *new) is not None:
                raise AlreadyExistsError(f"{'.'.join(old)!r} cannot be renamed: {'.'.join(new)!r} is a view")
            try:
                changed = connection.execute(sa.update(_tables).where(*self._of(_tables, *old)).values(moved)).rowcount
            except sa.exc.IntegrityError:
                raise AlreadyExistsError(
                    f"{'.'.join(old)!r} cannot be renamed: {'.'.join(new)!r} exists already in the catalog {self.key!r}"
                ) from None
            if not changed:
                raise InvalidInputError(f"{'.'.join(old)!r} was dropped or renamed by another process")
            connection.execute(sa.delete(_properties).where(*self._of(_properties, *new)))
            connection.execute(sa.update(_properties).where(*self._of(_properties, *old)).values(moved))
            yield

    # ---- views

    def view_names(self, database: str) -> list[str]:
        """Return the names of the views of a database."""
        if not self.has_views:
            return []
        with self.transaction(reads=True) as connection:
            return list(connection.scalars(sa.select(_views.c.view_name).where(*self._of(_views, database))))

    def view(self, database: str, name: str) -> str | None:
        """Return the stored text of a view; `None` if it does not exist."""
        if not self.has_views:
            return None
        with self.transaction(reads=True) as connection:
            return self._stored_view(connection, database, name)

    def put_view(self, database: str, name: str, text: str, *, replace: bool) -> None:
        """Store a view. Raises AlreadyExistsError if a table has its name, or a view does unless ``replace``."""
        exists = AlreadyExistsError(f"'{database}.{name}' exists already in the catalog {self.key!r}")
        try:
            with self.transaction() as connection:
                if self._has_table(connection, database, name):
                    raise AlreadyExistsError(f"{exists}, as a table")
                changed = sa.update(_views).where(*self._of(_views, database, name)).values(view_schema=text)
                if self._stored_view(connection, database, name) is None:
                    connection.execute(sa.insert(_views), self._row(database, view_name=name, view_schema=text))
                elif replace:
                    connection.execute(changed)
                else:
                    raise exists
        except CatalogError as error:
            if error.is_conflict and not replace and self.view(database, name) is not None:
                raise exists from None
            raise

    def update_view(self, database: str, name: str, old: str, new: str) -> bool:
        """Replace the stored text of a view; return False, and change nothing, if the text is not ``old`` any more."""
        with self.transaction() as connection:
            if old == new or self._stored_view(connection, database, name) != old:
                return self._stored_view(connection, database, name) == new
            conditions = [*self._of(_views, database, name), _views.c.view_schema == old]  # another may be faster
            return connection.execute(sa.update(_views).where(*conditions).values(view_schema=new)).rowcount > 0

    def delete_view(self, database: str, name: str) -> bool:
        """Delete a view; return False if it does not exist."""
        if not self.has_views:
            return False
        with self.transaction() as connection:
            return connection.execute(sa.delete(_views).where(*self._of(_views, database, name))).rowcount > 0

    def rename_view(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """Move a view to a new name. Arguments and errors as for `renaming`."""
        taken = AlreadyExistsError(f"{'.'.join(old)!r} cannot be renamed: {'.'.join(new)!r} exists already")
        try:
            with self.transaction() as connection:
                if self._has_table(connection, *new) or self._stored_view(connection, *new) is not None:
                    raise taken
                moved = {"database_name": new[0], "view_name": new[1]}
                changed = connection.execute(sa.update(_views).where(*self._of(_views, *old)).values(moved)).rowcount
        except CatalogError as error:
            if error.is_conflict and self.view(*new) is not None:
                raise taken from None
            raise
        if not changed:
            raise InvalidInputError(f"{'.'.join(old)!r} was dropped or renamed by another process")

    def _stored_view(self, connection: "sa.Connection", database: str, name: str) -> str | None:
        query = sa.select(_views.c.view_schema).where(*self._of(_views, database, name))
        found = connection.execute(query).first()
        return None if found is None else str(found[0])

    # ---- inside

    def _has_table(self, connection: "sa.Connection", database: str, name: str) -> bool:
        query = sa.select(_tables.c.catalog_key).where(*self._of(_tables, database, name))
        return connection.execute(query).first() is not None

    def _row(self, database: str, **values: str) -> dict[str, str]:
        return {"catalog_key": self.key, "database_name": database, **values}

    def _of(self, table: "sa.Table", database: str, name: str | None = None) -> list["sa.ColumnElement[bool]"]:
        """Return the conditions that choose the rows of a database, or of a table."""
        conditions = [table.c.catalog_key == self.key, table.c.database_name == database]
        if name is not None:
            conditions.append((table.c.view_name if table is _views else table.c.table_name) == name)
        return conditions


def check_values(properties: Mapping[str, str], owner: str) -> None:
    """Raise InvalidInputError for a property that the tables cannot hold. ``owner``: a name for the message."""
    for key, value in properties.items():
        if len(key) > NAME_LENGTH or len(value) > VALUE_LENGTH:
            raise InvalidInputError(
                f"property {key[:80]!r} of {owner} does not fit into a JDBC catalog, which holds names of "
                f"{NAME_LENGTH} and values of {VALUE_LENGTH} characters (this value has {len(value)}): shorten it, or "
                "set the catalog's option 'sync-all-properties' to false"
            )


_engines: dict[tuple[Any, ...], "sa.Engine"] = {}
"""The pools of connections, by process id and settings: a fork must not use the connections of its parent."""


def open_engine(uri: str, properties: Mapping[str, str], pool: int) -> tuple["sa.Engine", DatabaseAddress]:
    """Return the pool of connections to a database, which all catalogs of the process share, and the address.

    Args:
        uri: the JDBC URL.
        properties: the options of the catalog, with the properties of the driver.
        pool: the number of connections that stay open; more are opened if they are needed.

    Raises MissingDependencyError if the driver is not installed, and as `database_address` does.
    """
    address = database_address(uri, properties)
    key = (os.getpid(), uri, pool, *sorted((k, v) for k, v in properties.items() if k.startswith(PREFIX)))
    if key not in _engines:
        try:
            engine = sa.create_engine(
                sa.URL.create(**address.parts),
                connect_args=dict(address.arguments),
                pool_size=pool,
                max_overflow=32,
                pool_pre_ping=True,
                hide_parameters=True,
            )
        except ImportError as error:
            raise MissingDependencyError(
                f"a driver for {address.dialect} is missing: pip install 'pyspark-paimon[jdbc]' ({error})"
            ) from error
        if address.dialect == "sqlite":
            event.listen(engine, "connect", _without_implicit_transactions)
            event.listen(engine, "begin", _begin)
        _engines[key] = engine
    return _engines[key], address


def _without_implicit_transactions(connection: Any, _: Any) -> None:
    connection.isolation_level = None


def _begin(connection: "sa.Connection") -> None:
    """Begin a transaction of SQLite; one that writes takes the write lock first, since it cannot wait for it later."""
    reads = connection.get_execution_options().get(_READ, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
