"""CREATE FUNCTION ... RETURN, DROP FUNCTION and DESCRIBE FUNCTION, for the SQL functions of a catalog."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from paimon_core import Catalog
from paimon_core.engine import Identifier
from paimon_core.errors import UnsupportedError
from paimon_spark.internals import java_session
from paimon_spark.sql.bridge.catalogs import catalog_of_new_table
from paimon_spark.sql.bridge.conversions import text_array
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.ddl.functions import description, stored_function
from paimon_spark.sql.statements.tokens import Cursor


@dataclass(frozen=True)
class FunctionStatement:
    """A statement about a function. ``table``: the parts of its name."""

    table: tuple[str, ...]

    verb: ClassVar[str] = ""
    columns: ClassVar[str] = ""

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon {self.verb} FUNCTION {'.'.join(self.table)}"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Run the statement in a session and return its rows."""
        raise NotImplementedError

    def is_of_session(self, jvm: Jvm, spark: SparkSession) -> bool:
        """Return True if the name is of a function of Spark or of a temporary function."""
        return len(self.table) == 1 and bool(
            jvm.call("SqlFunctions", "isOfSession", java_session(spark), self.table[0])
        )

    def resolved(self, jvm: Jvm, spark: SparkSession) -> tuple[Catalog, tuple[str, str, str]]:
        """Return the catalog, and the names of the catalog, of the database and of the function.

        Raises UnsupportedError unless the name has a database.
        """
        handler, identifier = catalog_of_new_table(jvm, spark, self.table)
        namespace = [str(part) for part in identifier.namespace()]
        if len(namespace) != 1:
            raise UnsupportedError(f"{'.'.join(self.table)!r} cannot name a function: it needs a database and a name")
        return handler.catalog, (str(handler.name), namespace[0], str(identifier.name()))


@dataclass(frozen=True)
class CreateFunctionStatement(FunctionStatement):
    """``CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] f(...) [RETURNS ...] RETURN ...``.

    ``definition``: the text after the name; `None`: it defines a function of a Java class.
    """

    definition: str | None
    replace: bool
    ignore_if_exists: bool

    verb: ClassVar[str] = "CREATE"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Create the function, which Spark checks first; return no rows."""
        catalog, name = self.resolved(jvm, spark)
        shown, identifier = ".".join(name), Identifier(*name[1:])
        if self.definition is None:
            raise UnsupportedError(
                f"function {shown} cannot be created: only SQL functions can, such as "
                f"CREATE FUNCTION {name[2]}(x INT) RETURNS INT RETURN x + 1"
            )
        if self.ignore_if_exists and catalog.function_exists(identifier):
            return []
        quoted = "`" + name[2].replace("`", "``") + "`"
        text = f"CREATE OR REPLACE TEMPORARY FUNCTION {quoted}{self.definition}"
        checked = jvm.call("SqlFunctions", "checked", java_session(spark), text, text_array(jvm, name))
        if checked is None:
            raise UnsupportedError(
                f"function {shown} cannot be created: a function that returns a table is not supported; create a view"
            )
        function = stored_function(json.loads(checked), name)
        catalog.create_function(identifier, function, ignore_if_exists=self.ignore_if_exists, replace=self.replace)
        return []


@dataclass(frozen=True)
class DropFunctionStatement(FunctionStatement):
    """``DROP FUNCTION [IF EXISTS] f``."""

    ignore_if_not_exists: bool

    verb: ClassVar[str] = "DROP"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Drop the function; return no rows."""
        catalog, name = self.resolved(jvm, spark)
        catalog.drop_function(Identifier(*name[1:]), self.ignore_if_not_exists)
        return []


@dataclass(frozen=True)
class DescribeFunctionStatement(FunctionStatement):
    """``DESCRIBE FUNCTION [EXTENDED] f``, for a function that a catalog stores."""

    extended: bool

    verb: ClassVar[str] = "DESCRIBE"
    columns: ClassVar[str] = "function_desc STRING"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Return the description, one line in each row."""
        catalog, name = self.resolved(jvm, spark)
        function = catalog.function(Identifier(*name[1:]))
        return [[line] for line in description(function, name, extended=self.extended)]

    def is_stored(self, jvm: Jvm, spark: SparkSession) -> bool:
        """Return True if the catalog stores the function."""
        try:
            catalog, name = self.resolved(jvm, spark)
        except UnsupportedError:
            return False
        return catalog.function_exists(Identifier(*name[1:]))


def parse_create_function(text: str) -> CreateFunctionStatement | None:
    """Parse ``CREATE FUNCTION``; `None`: another statement, such as ``CREATE TEMPORARY FUNCTION``."""
    cursor = Cursor(text)
    replace = cursor.accept("CREATE", "OR", "REPLACE", "FUNCTION")
    if not replace and not cursor.accept("CREATE", "FUNCTION"):
        return None
    ignore = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.next.kind not in ("name", "quoted", "number"):
        return None
    name = cursor.parts()
    definition = cursor.rest() if cursor.next.text == "(" else None
    if replace and ignore:
        return None  # Spark refuses it
    return CreateFunctionStatement(name, definition, replace, ignore)


def parse_drop_function(text: str) -> DropFunctionStatement | None:
    """Parse ``DROP FUNCTION``; `None`: another statement, such as ``DROP TEMPORARY FUNCTION``."""
    cursor = Cursor(text)
    if not cursor.accept("DROP", "FUNCTION"):
        return None
    ignore = cursor.accept("IF", "EXISTS")
    if cursor.next.kind not in ("name", "quoted", "number"):
        return None
    name = cursor.parts()
    return DropFunctionStatement(name, ignore) if cursor.next.kind == "end" else None


def parse_describe_function(text: str) -> DescribeFunctionStatement | None:
    """Parse ``DESCRIBE FUNCTION``; `None`: another statement, or a name that only Spark can have, such as ``+``."""
    cursor = Cursor(text)
    if not cursor.accept("DESCRIBE", "FUNCTION") and not cursor.accept("DESC", "FUNCTION"):
        return None
    extended = cursor.accept("EXTENDED")
    if cursor.next.kind not in ("name", "quoted"):
        return None
    name = cursor.parts()
    return DescribeFunctionStatement(name, extended) if cursor.next.kind == "end" else None
