"""Names of tables, of branches of tables and of system tables in a catalog."""

from dataclasses import dataclass

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.paths import check_name
from paimon_core.store.location import BRANCH_PREFIX, SEPARATOR, split_name

SYSTEM_DATABASE = "sys"


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name ``database.table``, optionally with ``$branch_<branch>`` and ``$<system table>``."""

    database: str
    table: str
    branch: str | None = None
    system_table: str | None = None

    @staticmethod
    def parse(text: str) -> "Identifier":
        """Parse a name, whose parts may be quoted with backticks. Raises InvalidInputError with the expected form."""
        parts = split_parts(text)
        if len(parts) != 2 or not all(parts):
            raise InvalidInputError(f"{text!r} is not a table name: it must be 'database.table'")
        database, suffixed_table = parts
        check_name(database, text)
        table, branch, system = split_name(suffixed_table, text)
        return Identifier(database, table, branch, system)

    def __str__(self) -> str:
        branch = f"{SEPARATOR}{BRANCH_PREFIX}{self.branch}" if self.branch else ""
        system = f"{SEPARATOR}{self.system_table}" if self.system_table else ""
        return f"{self.database}.{self.table}{branch}{system}"


def identifier_of(identifier: str | Identifier) -> Identifier:
    """Return the identifier that a text or an identifier is."""
    return Identifier.parse(identifier) if isinstance(identifier, str) else identifier


def plain_identifier(identifier: str | Identifier, use: str) -> Identifier:
    """Return the identifier of a table. Raises InvalidInputError for a branch or a system table.

    ``use``: what the table shall be, such as "created".
    """
    name = identifier_of(identifier)
    if name.branch is not None or name.system_table is not None:
        raise InvalidInputError(f"{str(name)!r} is a branch or system table, which cannot be {use}")
    return name


def split_parts(text: str) -> list[str]:
    """Split a name at dots outside of backticks, and remove the backticks. Raises InvalidInputError for an open one."""
    parts, quoted = [""], False
    for char in text:
        if char == "`":
            quoted = not quoted
        elif char == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    if quoted:
        raise InvalidInputError(f"{text!r} is not a table name: a backtick is not closed")
    return parts
