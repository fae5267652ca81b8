"""The views and functions of a catalog that can store them."""

from collections.abc import Callable, Mapping
from typing import ClassVar, NoReturn

from paimon_core.catalog.databases import CatalogDatabases
from paimon_core.catalog.identifier import SYSTEM_DATABASE, Identifier, plain_identifier
from paimon_core.catalog.view import CatalogFunction, View, check_dialects
from paimon_core.errors import AlreadyExistsError, NotFoundError, UnsupportedError, listed_names


class CatalogViews(CatalogDatabases):
    """The views and functions of a catalog, in its databases. Tables and views share one set of names.

    A subclass that stores them sets ``has_views`` or ``has_functions``, and implements the methods whose names begin
    with an underscore. In other catalogs no view and no function exists, and creating one raises UnsupportedError.
    """

    kind: ClassVar[str]
    """The value of the option ``metastore`` for this catalog."""
    has_views: ClassVar[bool] = False
    """True if the catalog stores views."""
    has_functions: ClassVar[bool] = False
    """True if the catalog stores functions."""

    # ---- views

    def list_views(self, database: str) -> list[str]:
        """Return the names of the views of a database, sorted. Raises NotFoundError for a missing database."""
        if database == SYSTEM_DATABASE:
            return []
        self._existing_database(database)
        return sorted(self._view_names(database)) if self.has_views else []

    def view(self, identifier: str | Identifier) -> View:
        """Return a view. Raises NotFoundError with the views that exist."""
        name = plain_identifier(identifier, "a view")
        found = self._find_view(name) if self.has_views else None
        if found is None:
            raise self._no_view(name)
        return found

    def view_exists(self, identifier: str | Identifier) -> bool:
        """Return True if the view exists."""
        return self.has_views and self._find_view(plain_identifier(identifier, "looked for")) is not None

    def create_view(
        self, identifier: str | Identifier, view: View, *, ignore_if_exists: bool = False, replace: bool = False
    ) -> None:
        """Create a view, or replace it if ``replace``. The query is stored as it is, and not checked.

        Raises AlreadyExistsError if a table or a view has the name, unless ``ignore_if_exists``, and always if a table
        has the name of a view to replace; NotFoundError if the database does not exist; UnsupportedError in a catalog
        that stores no views, or for a part of the view that the catalog cannot store.
        """
        name = plain_identifier(identifier, "a view")
        self._existing_database(name.database)
        if not self.has_views:
            self._refuse("view", name, "'hive', 'jdbc' and 'rest'")
        try:
            self._create_view(name, view, replace=replace)
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise

    def drop_view(self, identifier: str | Identifier, ignore_if_not_exists: bool = False) -> None:
        """Drop a view. Raises NotFoundError if it does not exist, unless ``ignore_if_not_exists``."""
        name = plain_identifier(identifier, "dropped")
        if not (self.has_views and self._drop_view(name)) and not ignore_if_not_exists:
            raise self._no_view(name)

    def rename_view(self, source: str | Identifier, target: str | Identifier) -> None:
        """Rename a view from ``source`` to ``target``, which may be in another database.

        Raises NotFoundError if the view or the new database does not exist, AlreadyExistsError if a table or a view has
        the new name.
        """
        old, new = plain_identifier(source, "renamed"), plain_identifier(target, "a new name")
        if not self.view_exists(old):
            raise self._no_view(old)
        self._existing_database(new.database)
        self._rename_view(old, new)

    def alter_view(
        self,
        identifier: str | Identifier,
        *,
        options: Mapping[str, str | None] | None = None,
        dialects: Mapping[str, str | None] | None = None,
        comment: str | None = None,
    ) -> None:
        """Change the properties of a view, all or none.

        Args:
            identifier: the view.
            options: properties to set; the value `None` removes one.
            dialects: texts of the query in the dialects of engines, to set; `None` removes one.
            comment: the new comment; empty: no comment; `None`: the comment stays.

        Raises NotFoundError for a missing view, InvalidInputError for a missing dialect, UnsupportedError for a change
        that the catalog cannot store.
        """
        name = plain_identifier(identifier, "altered")

        def change(view: View) -> View:
            check_dialects(view, dialects or {}, str(name))
            return view.changed(options, dialects, comment)

        if not self.has_views or not self._alter_view(name, change):
            raise self._no_view(name)

    # ---- functions

    def list_functions(self, database: str) -> list[str]:
        """Return the names of the functions of a database, sorted. Raises NotFoundError for a missing database."""
        if database == SYSTEM_DATABASE:
            return []
        self._existing_database(database)
        return sorted(self._function_names(database)) if self.has_functions else []

    def function(self, identifier: str | Identifier) -> CatalogFunction:
        """Return a function. Raises NotFoundError with the functions that exist."""
        name = plain_identifier(identifier, "a function")
        found = self._find_function(name) if self.has_functions else None
        if found is None:
            raise self._no_function(name)
        return found

    def function_exists(self, identifier: str | Identifier) -> bool:
        """Return True if the function exists."""
        return self.has_functions and self._find_function(plain_identifier(identifier, "looked for")) is not None

    def create_function(
        self,
        identifier: str | Identifier,
        function: CatalogFunction,
        *,
        ignore_if_exists: bool = False,
        replace: bool = False,
    ) -> None:
        """Create a function, or replace it if ``replace``. Definitions are stored as they are, and not checked.

        Raises AlreadyExistsError if the function exists, unless ``ignore_if_exists``; NotFoundError if the database
        does not exist; UnsupportedError in a catalog that stores no functions.
        """
        name = plain_identifier(identifier, "a function")
        self._existing_database(name.database)
        if not self.has_functions:
            self._refuse("function", name, "'rest'")
        try:
            self._create_function(name, function, replace=replace)
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise

    def drop_function(self, identifier: str | Identifier, ignore_if_not_exists: bool = False) -> None:
        """Drop a function. Raises NotFoundError if it does not exist, unless ``ignore_if_not_exists``."""
        name = plain_identifier(identifier, "dropped")
        if not (self.has_functions and self._drop_function(name)) and not ignore_if_not_exists:
            raise self._no_function(name)

    # ---- the views and functions of a subclass

    def _view_names(self, database: str) -> list[str]:
        """Return the names of the views of a database, which existed a moment ago."""
        raise NotImplementedError

    def _find_view(self, name: Identifier) -> View | None:
        """Return a view; `None` if it does not exist."""
        raise NotImplementedError

    def _create_view(self, name: Identifier, view: View, *, replace: bool) -> None:
        """Create a view, or replace it. Raise AlreadyExistsError as `create_view` does."""
        raise NotImplementedError

    def _drop_view(self, name: Identifier) -> bool:
        """Drop a view; return False if it does not exist."""
        raise NotImplementedError

    def _rename_view(self, old: Identifier, new: Identifier) -> None:
        """Rename a view, which existed a moment ago. Raise AlreadyExistsError as `rename_view` does."""
        raise NotImplementedError

    def _alter_view(self, name: Identifier, change: Callable[[View], View]) -> bool:
        """Replace a view with a changed one; return False if it does not exist. ``change``: as `alter_view` does."""
        raise NotImplementedError

    def _function_names(self, database: str) -> list[str]:
        """Return the names of the functions of a database, which existed a moment ago."""
        raise NotImplementedError

    def _find_function(self, name: Identifier) -> CatalogFunction | None:
        """Return a function; `None` if it does not exist."""
        raise NotImplementedError

    def _create_function(self, name: Identifier, function: CatalogFunction, *, replace: bool) -> None:
        """Create a function, or replace it. Raise AlreadyExistsError as `create_function` does."""
        raise NotImplementedError

    def _drop_function(self, name: Identifier) -> bool:
        """Drop a function; return False if it does not exist."""
        raise NotImplementedError

    # ---- inside

    def _no_view(self, name: Identifier) -> NotFoundError:
        names = listed_names(name.table, self.list_views(name.database))
        return NotFoundError(f"no view {str(name)!r} in {self.warehouse}; database {name.database!r} has: {names}")

    def _no_function(self, name: Identifier) -> NotFoundError:
        names = listed_names(name.table, self.list_functions(name.database))
        return NotFoundError(f"no function {str(name)!r} in {self.warehouse}; database {name.database!r} has: {names}")

    def _refuse(self, kind: str, name: Identifier, metastores: str) -> NoReturn:
        raise UnsupportedError(
            f"{kind} {str(name)!r} cannot be created: a catalog with the option 'metastore' = {self.kind!r} stores no "
            f"{kind}s, as in Java; catalogs with {metastores} do"
        )
