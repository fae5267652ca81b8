"""A procedure: name, parameters, result columns and function; and one call of it.

A function takes a `Call` and returns rows. ``CALL`` of SQL and ``paimon-spark call`` run the same functions; what only
one of them knows is a method of `Call` that it replaces.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.catalog.identifier import Identifier, split_parts
from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError, nearest_name
from paimon_core.migration.migrate import SourceTable
from paimon_core.operations.jobs.execute import LOCAL, Runner
from paimon_core.schema.partition_spec import partition_specs, partition_values
from paimon_core.snapshot.time_travel import epoch_millis
from paimon_core.table import Table

Rows = Sequence[tuple[Any, ...]]
DONE: Rows = [(True,)]
"""The rows of a procedure that has nothing to say but that it is done."""
RESULT = "result BOOLEAN"

_DEFAULT_DATABASE = "default"
_SIGNATURE = re.compile(r"(\w+)\((.*)\)")
_PARAMETER = re.compile(r"(\[?)(\w+) ([A-Z]+)\]?")


class TableNotFoundError(NotFoundError):
    """A table that a call names and that does not exist; `identifier` says which."""

    def __init__(self, message: str, identifier: Identifier) -> None:
        super().__init__(message)
        self.identifier = identifier


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure; `type` is a type of Spark's SQL. A parameter that is not required is NULL by default.

    Names and types are those of the Java connector.
    """

    name: str
    type: str
    required: bool

    def __str__(self) -> str:
        text = f"{self.name} {self.type}"
        return text if self.required else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure; `result`: the columns of its rows, as in ``CREATE TABLE``; `effect`: what it does, in a sentence."""

    name: str
    parameters: tuple[Parameter, ...]
    result: str
    effect: str
    run: Callable[["Call"], Rows]

    @property
    def signature(self) -> str:
        """Return ``name(parameter TYPE, [optional TYPE])``."""
        return f"{self.name}({', '.join(map(str, self.parameters))})"


def procedure(signature: str, result: str = RESULT) -> Callable[[Callable[["Call"], Rows]], Procedure]:
    """Return a decorator that makes a procedure of a function; the first line of its docstring is the effect.

    Args:
        signature: ``name(parameter TYPE, [optional TYPE])``.
        result: the columns of the rows that the function returns.
    """
    found = _SIGNATURE.fullmatch(signature)
    assert found, signature
    parameters = tuple(Parameter(name, kind, not optional) for optional, name, kind in _PARAMETER.findall(found[2]))

    def made(run: Callable[["Call"], Rows]) -> Procedure:
        effect = (getdoc(run) or "").partition("\n")[0]
        return Procedure(found[1], parameters, result, effect, run)

    return made


@dataclass(frozen=True)
class Call:
    """One call: the catalog with its name, and a value for every parameter (`None`: NULL).

    Connectors replace `current_database`, `opened`, `moment`, `runner` and `refresh`.
    """

    catalog: FileSystemCatalog
    catalog_name: str
    procedure: Procedure
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Return an argument; `None`: it is not given, or NULL. InvalidInputError for NULL where one is required."""
        value = self.values[name]
        if value is None and any(one.required for one in self.procedure.parameters if one.name == name):
            raise InvalidInputError(f"argument {name!r} of {self.procedure.name} must not be NULL")
        return value

    def text(self, name: str) -> str | None:
        """Return a text; `None`: it is not given, NULL or blank."""
        value = self[name]
        return value if value is not None and value.strip() else None

    def identifier(self, name: str = "table") -> Identifier:
        """Return the table that an argument names; the database may be left out.

        Raises InvalidInputError for a table of another catalog, and for a name of more parts.
        """
        text = self[name]
        parts = split_parts(text)
        if len(parts) == 3 and parts[0] == self.catalog_name:
            parts = parts[1:]
        if len(parts) == 1:
            parts = [self.current_database(), *parts]
        if len(parts) != 2:
            raise InvalidInputError(
                f"argument {name!r} of {self.procedure.name}: {text!r} is no table of catalog {self.catalog_name!r}; "
                "it is 'table' or 'database.table', with backticks around a part that has a dot"
            )
        return Identifier.parse(".".join(f"`{part}`" for part in parts))

    def table(self, name: str = "table") -> Table:
        """Return the table that an argument names, or its branch. TableNotFoundError if there is none."""
        identifier = self.identifier(name)
        try:
            return self.opened(identifier)
        except NotFoundError as error:
            raise TableNotFoundError(str(error), identifier) from None

    def tables(self, name: str = "table") -> Iterator[Table]:
        """Yield the table that an argument names, or with ``database.*`` all tables of the database."""
        database, star, rest = str(self[name]).rpartition(".*")
        if not star or rest:
            yield self.table(name)
            return
        for table in self.catalog.list_tables(database):
            yield self.opened(Identifier.parse(f"`{database}`.`{table}`"))

    def opened(self, identifier: Identifier) -> Table:
        """Return a table with the options of the session. NotFoundError if there is none."""
        return self.catalog.table(identifier)

    def millis(self, name: str) -> int | None:
        """Return a moment in epoch milliseconds; a text is read by `moment`; `None`: it is not given."""
        value = self[name]
        if value is None or isinstance(value, int):
            return value
        if value.strip().lstrip("-").isdigit():
            return int(value)
        found = self.moment(value)
        if found is None:
            raise InvalidInputError(
                f"argument {name!r} of {self.procedure.name}: {value!r} is neither epoch milliseconds nor a date and "
                "time such as '2026-01-31 12:00:00'"
            )
        return found

    def options(self, name: str = "options") -> dict[str, str]:
        """Return the options of a text ``key=value,key=value``; a part without ``=`` belongs to the value before it."""
        pairs: dict[str, str] = {}
        last = None
        for part in (self.text(name) or "").split(","):
            key, equals, value = (one.strip() for one in part.partition("="))
            if equals and key:
                pairs[last := key] = value
            elif last is not None:
                pairs[last] += f",{part.strip()}"
            elif part.strip():
                raise InvalidInputError(f"argument {name!r} of {self.procedure.name}: {part!r} is not 'key=value'")
        return pairs

    def partitions(self, table: Table, name: str = "partitions") -> list[dict[str, object]] | None:
        """Return the partitions of a text ``p=1,q=a;p=2``, with values of the columns' types; `None`: not given."""
        text, what = self.text(name), f"argument {name!r} of {self.procedure.name}"
        if text is None:
            return None
        try:
            specs = partition_specs(text)
        except ValueError as error:
            raise InvalidInputError(f"{what}: {text!r} {error}") from None
        return [partition_values(table.schema, spec, what, table.path) for spec in specs]

    def refuse(self, name: str, instead: str) -> None:
        """Raise UnsupportedError if an argument without effect here is given; `instead`: what to do."""
        if self[name] is not None:
            raise UnsupportedError(f"argument {name!r} of {self.procedure.name} is not supported: {instead}")

    # ---- what connectors replace

    def source_table(self, name: str) -> SourceTable:
        """Return a table of Spark's own catalog, which may be migrated. UnsupportedError without a session of Spark."""
        raise self._without_session(name)

    def source_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database of Spark's own catalog. UnsupportedError without a session."""
        raise self._without_session(database)

    def _without_session(self, name: str) -> UnsupportedError:
        return UnsupportedError(
            f"{name!r} cannot be looked up in Spark's own catalog here: call {self.procedure.name} in a session of "
            "Spark, or give the directory and its format"
        )

    def current_database(self) -> str:
        """Return the database of a table that is named without one."""
        return _DEFAULT_DATABASE

    def moment(self, text: str) -> int | None:
        """Return the epoch milliseconds of a date and time in local time; `None`: the text is none."""
        try:
            return epoch_millis(text)
        except InvalidInputError:
            return None

    def runner(self, table: Table) -> Runner:
        """Return the runner of tasks."""
        return LOCAL

    def refresh(self) -> None:
        """Drop what is cached of the rows of the argument ``table``, which have changed."""


def checked_values(found: Procedure, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every parameter: the argument of its name, or `None`.

    Raises InvalidInputError with the nearest name for an unknown argument, and for a missing one.
    """
    known = [one.name for one in found.parameters]
    for argument in arguments:
        if argument not in known:
            near = nearest_name(argument, known)
            hint = f"did you mean {near!r}?" if near else f"its arguments are {found.signature}"
            raise InvalidInputError(f"procedure {found.name!r} has no argument {argument!r}; {hint}")
    missing = [one.name for one in found.parameters if one.required and one.name not in arguments]
    if missing:
        raise InvalidInputError(f"argument {missing[0]!r} is missing: {found.signature}")
    return {**dict.fromkeys(known), **arguments}
