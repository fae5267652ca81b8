"""A procedure (name, parameters, result columns and function) and one call of it.

The function takes a `Call` and returns rows. SQL's ``CALL`` and ``paimon-spark call`` run the same functions; each
overrides the methods of `Call` that depend on its environment.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

from paimon_core.catalog.catalog import Catalog
from paimon_core.catalog.identifier import Identifier, split_parts
from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError, nearest_name
from paimon_core.migration.migrate import SourceTable
from paimon_core.operations.jobs.runner import LOCAL, Runner
from paimon_core.predicate.filter import Filter
from paimon_core.schema.partition_spec import partition_specs, partition_values
from paimon_core.snapshot.time_travel import epoch_millis
from paimon_core.table import Table

Rows = Sequence[tuple[Any, ...]]
DONE: Rows = [(True,)]
"""The rows of a procedure that only reports success."""
RESULT = "result BOOLEAN"

_DEFAULT_DATABASE = "default"
_SIGNATURE = re.compile(r"(\w+)\((.*)\)")
_PARAMETER = re.compile(r"(\[?)(\w+) ([A-Z]+)\]?")


class TableNotFoundError(NotFoundError):
    """The table ``identifier``, which a call names, does not exist."""

    def __init__(self, message: str, identifier: Identifier) -> None:
        super().__init__(message)
        self.identifier = identifier


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure; ``type`` is a Spark SQL type. An optional parameter is NULL by default.

    Names and types agree with the Java connector.
    """

    name: str
    type: str
    required: bool

    def __str__(self) -> str:
        text = f"{self.name} {self.type}"
        return text if self.required else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure. ``result``: its result columns, as in ``CREATE TABLE``; ``effect``: one sentence on its effect."""

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
    """Return a decorator that turns a function into a procedure; the first docstring line is the effect.

    Args:
        signature: ``name(parameter TYPE, [optional TYPE])``.
        result: the columns of the rows that the function returns.
    """
    match = _SIGNATURE.fullmatch(signature)
    assert match, signature
    parameters = tuple(Parameter(name, kind, not optional) for optional, name, kind in _PARAMETER.findall(match[2]))

    def decorate(run: Callable[["Call"], Rows]) -> Procedure:
        effect = (getdoc(run) or "").partition("\n")[0]
        return Procedure(match[1], parameters, result, effect, run)

    return decorate


@dataclass(frozen=True)
class Call:
    """One call: the catalog and its name, and a value for every parameter (`None`: NULL).

    Connectors override `current_database`, `opened`, `moment`, `runner` and `refresh`.
    """

    catalog: Catalog
    catalog_name: str
    procedure: Procedure
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Return an argument; `None` if it is absent or NULL. Raises InvalidInputError for a required NULL."""
        value = self.values[name]
        if value is None and any(
            parameter.required for parameter in self.procedure.parameters if parameter.name == name
        ):
            raise InvalidInputError(f"argument {name!r} of {self.procedure.name} must not be NULL")
        return value

    def text(self, name: str) -> str | None:
        """Return a text argument; `None` if it is absent, NULL or blank."""
        value = self[name]
        return value if value is not None and value.strip() else None

    def where(self, table: Table) -> Filter:
        """Return the argument ``where`` as a filter on the partition columns of a table; `None` without it."""
        return self.text("where")

    def identifier(self, name: str = "table") -> Identifier:
        """Return the identifier of the table that an argument names; the database is optional.

        Raises InvalidInputError for a table of another catalog and for a name with too many parts.
        """
        text = self[name]
        parts = split_parts(text)
        if len(parts) == 3 and parts[0] == self.catalog_name:
            parts = parts[1:]
        if len(parts) == 1:
            parts = [self.current_database(), *parts]
        if len(parts) != 2:
            raise InvalidInputError(
                f"argument {name!r} of {self.procedure.name}: {text!r} is not a table of catalog "
                f"{self.catalog_name!r}; write 'table' or 'database.table', with backticks around a part with a dot"
            )
        return Identifier.parse(".".join(f"`{part}`" for part in parts))

    def table(self, name: str = "table") -> Table:
        """Return the table or branch that an argument names. Raises TableNotFoundError if it does not exist."""
        identifier = self.identifier(name)
        try:
            return self.opened(identifier)
        except NotFoundError as error:
            raise TableNotFoundError(str(error), identifier) from None

    def tables(self, name: str = "table") -> Iterator[Table]:
        """Yield the table that an argument names or, for ``database.*``, all tables of the database with snapshots."""
        database, star, ending = str(self[name]).rpartition(".*")
        if not star or ending:
            yield self.table(name)
            return
        for table in self.catalog.list_tables(database):
            identifier = Identifier.parse(f"`{database}`.`{table}`")
            if not self.catalog.is_format_table(identifier):
                yield self.opened(identifier)

    def opened(self, identifier: Identifier) -> Table:
        """Return a table with the session's options. Raises NotFoundError if it does not exist."""
        return self.catalog.table(identifier)

    def millis(self, name: str) -> int | None:
        """Return a time argument in epoch milliseconds, parsing texts with `moment`; `None` without the argument."""
        value = self[name]
        if value is None or isinstance(value, int):
            return value
        if value.strip().lstrip("-").isdigit():
            return int(value)
        millis = self.moment(value)
        if millis is None:
            raise InvalidInputError(
                f"argument {name!r} of {self.procedure.name}: {value!r} is neither epoch milliseconds nor a date and "
                "time such as '2026-01-31 12:00:00'"
            )
        return millis

    def options(self, name: str = "options") -> dict[str, str]:
        """Return the options of a text ``key=value,key=value``; a part without ``=`` continues the previous value."""
        pairs: dict[str, str] = {}
        last = None
        for part in (self.text(name) or "").split(","):
            key, equals, value = (item.strip() for item in part.partition("="))
            if equals and key:
                pairs[last := key] = value
            elif last is not None:
                pairs[last] += f",{part.strip()}"
            elif part.strip():
                raise InvalidInputError(f"argument {name!r} of {self.procedure.name}: {part!r} is not 'key=value'")
        return pairs

    def partitions(self, table: Table, name: str = "partitions") -> list[dict[str, object]] | None:
        """Return the partitions of a text ``p=1,q=a;p=2``, with values of the columns' types; `None` without one."""
        text, argument = self.text(name), f"argument {name!r} of {self.procedure.name}"
        if text is None:
            return None
        try:
            specs = partition_specs(text)
        except ValueError as error:
            raise InvalidInputError(f"{argument}: {text!r} {error}") from None
        return [partition_values(table.schema, spec, argument, table.path) for spec in specs]

    def refuse(self, name: str, instead: str) -> None:
        """Raise UnsupportedError if an unsupported argument is set; ``instead``: what to do."""
        if self[name] is not None:
            raise UnsupportedError(f"argument {name!r} of {self.procedure.name} is not supported: {instead}")

    # ---- methods that connectors override

    def source_table(self, name: str) -> SourceTable:
        """Return a table of Spark's own catalog to migrate. Raises UnsupportedError without a Spark session."""
        raise self._without_session(name)

    def source_tables(self, database: str) -> list[str]:
        """Return the table names of a database of Spark's own catalog. Raises UnsupportedError without a session."""
        raise self._without_session(database)

    def _without_session(self, name: str) -> UnsupportedError:
        return UnsupportedError(
            f"{name!r} cannot be looked up in Spark's own catalog here: call {self.procedure.name} in a Spark session, "
            "or pass the directory and its format"
        )

    def current_database(self) -> str:
        """Return the database of tables that are named without a database."""
        return _DEFAULT_DATABASE

    def moment(self, text: str) -> int | None:
        """Return the epoch milliseconds of a local date and time; `None` if the text is not a date and time."""
        try:
            return epoch_millis(text)
        except InvalidInputError:
            return None

    def runner(self, table: Table) -> Runner:
        """Return the runner for the tasks of a procedure."""
        return LOCAL

    def refresh(self) -> None:
        """Drop cached rows of the table in the argument ``table``, because they have changed."""


def checked_values(called: Procedure, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every parameter: the argument of the same name, or `None`.

    Raises InvalidInputError for an unknown argument, suggesting the nearest name, and for a missing argument.
    """
    names = [parameter.name for parameter in called.parameters]
    for argument in arguments:
        if argument not in names:
            near = nearest_name(str(argument), names)
            hint = f"did you mean {near!r}?" if near else f"the signature is {called.signature}"
            raise InvalidInputError(f"procedure {called.name!r} has no argument {argument!r}; {hint}")
    missing = [
        parameter.name for parameter in called.parameters if parameter.required and parameter.name not in arguments
    ]
    if missing:
        raise InvalidInputError(f"argument {missing[0]!r} is missing: {called.signature}")
    return {**dict.fromkeys(names), **arguments}
