"""The format tables of a catalog: files of other tools in directories, under the names of the catalog."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from paimon_core.catalog.identifier import Identifier, plain_identifier
from paimon_core.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from paimon_core.lazy import deferred
from paimon_core.schema.schema import Schema
from paimon_core.table import AnyTable, SystemTable, Table

if TYPE_CHECKING:
    from paimon_core.format_table.alter import altered_format_schema
    from paimon_core.format_table.registry import PartitionRegistry
    from paimon_core.format_table.settings import check_registry, new_format_schema
    from paimon_core.schema.change import SchemaChange
    from paimon_core.schema.table_schema import TableSchema
    from paimon_core.table.format_table import FormatTable
else:
    altered_format_schema = deferred("paimon_core.format_table.alter", "altered_format_schema")
    check_registry = deferred("paimon_core.format_table.settings", "check_registry")
    new_format_schema = deferred("paimon_core.format_table.settings", "new_format_schema")


class CatalogFormatTables(ABC):
    """The format tables of a catalog, for `Catalog`, which inherits the methods."""

    warehouse: str
    has_format_tables: ClassVar[bool] = False
    """True if the catalog can hold format tables."""

    @abstractmethod
    def named_table(
        self, identifier: str | Identifier, options: Mapping[str, str] | None = None
    ) -> "AnyTable | FormatTable":
        """Open and return the table of any kind that a name has, for engines.

        Args:
            identifier: the name of the table.
            options: dynamic options of a table.

        Raises NotFoundError if no table has the name, UnsupportedError for a branch or a system
        table of a format table, and for ``options`` of a format table.
        """

    @abstractmethod
    def _existing_database(self, name: str) -> str:
        """Return the directory of a database. Raises NotFoundError if it does not exist."""

    @abstractmethod
    def _check_new(self, name: Identifier) -> None:
        """Raise InvalidInputError for a name that no new table of this catalog can have."""

    def create_format_table(
        self, identifier: str | Identifier, schema: Schema, ignore_if_exists: bool = False
    ) -> "FormatTable":
        """Create a format table and open it.

        Its option ``file.format`` is csv, json, orc, parquet (the default) or text. The defaults of the catalog for
        new tables do not apply. Only REST and Hive catalogs hold format tables.

        Args:
            identifier: the name of the table.
            schema: its columns, partition columns and options.
            ignore_if_exists: True to return an existing format table instead of an error.

        Raises AlreadyExistsError if the name is taken, NotFoundError if its database does not exist. Raises
        UnsupportedError for a catalog that holds no format tables, and for a column that the files or the catalog
        cannot hold. Raises InvalidInputError for a primary key, and for an option without effect on a format table.
        """
        name = plain_identifier(identifier, "created")
        if not self.has_format_tables:
            raise UnsupportedError(
                f"format table {str(name)!r} cannot be created in {self.warehouse}: only REST and Hive catalogs hold "
                "format tables"
            )
        self._existing_database(name.database)
        self._check_new(name)
        created = new_format_schema(schema, str(name))
        has_registry, is_external = self._partitions_of(name) is not None, "path" in created.options
        check_registry(created, str(name), has_registry=has_registry, is_external=is_external)
        try:
            self._create_format_table(name, created)
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise
        return self.format_table(name)

    def format_table(self, identifier: str | Identifier) -> "FormatTable":
        """Open and return a format table.

        Raises NotFoundError if it does not exist, InvalidInputError for a table of another kind, UnsupportedError for
        an option that this engine does not know.
        """
        table = self.named_table(plain_identifier(identifier, "opened as a format table"))
        if isinstance(table, (Table, SystemTable)):
            raise InvalidInputError(f"{str(identifier)!r} is not a format table: open it with Catalog.table")
        return table

    def alter_format_table(self, identifier: str | Identifier, changes: Sequence["SchemaChange"]) -> "FormatTable":
        """Apply changes to the columns or options of a format table, all or none, and return the changed table.

        No file changes: options of the format then describe old files, too. Only REST catalogs change format tables.

        Raises NotFoundError if it does not exist. Raises UnsupportedError for a Hive catalog, and for a change that
        would give old rows other values, such as a new name of a column. Raises InvalidInputError for a table of
        another kind, and for an invalid result.
        """
        name = plain_identifier(identifier, "altered")
        table, has_registry = self.format_table(name), self._partitions_of(name) is not None
        altered = altered_format_schema(table.schema, changes, str(name))
        check_registry(altered, str(name), has_registry=has_registry, is_external=table.is_external)
        self._alter_format_table(name, changes)
        return self.format_table(name)

    def is_format_table(self, identifier: str | Identifier) -> bool:
        """Return True for a format table. Raises NotFoundError if there is no table with this name."""
        return self.has_format_tables and not isinstance(self.named_table(identifier), (Table, SystemTable))

    def _partitions_of(self, name: Identifier) -> "PartitionRegistry | None":
        """Return the entries of the partitions of a format table; `None`: this catalog lists no partitions of it."""
        return None

    def _alter_format_table(self, name: Identifier, changes: Sequence["SchemaChange"]) -> None:
        """Apply changes that are possible."""
        raise UnsupportedError(
            f"format table {str(name)!r} cannot be altered in {self.warehouse}: as in Java, only REST catalogs change "
            "format tables; create a table with the option 'path' over the same files, or alter it with Hive"
        )

    def _create_format_table(self, name: Identifier, schema: "TableSchema") -> None:
        """Create a format table. Raise AlreadyExistsError if the name is taken."""
        raise NotImplementedError
