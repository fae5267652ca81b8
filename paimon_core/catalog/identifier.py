"""Names of tables: ``db.table``, a branch of one, a system table about one."""

from dataclasses import dataclass

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.paths import check_name
from paimon_core.store.location import BRANCH_PREFIX, SEPARATOR, split_name

SYSTEM_DATABASE = "sys"


@dataclass(frozen=True, slots=True)
class Identifier:
    """``database.table``, with ``$branch_<branch>`` and ``$<system table>`` where given."""

    database: str
    table: str
    branch: str | None = None
    system_table: str | None = None

    @staticmethod
    def parse(text: str) -> "Identifier":
        """Read a name; parts may be quoted with backticks. Raises InvalidInputError saying what a name looks like."""
        parts = _split(text)
        if len(parts) != 2 or not all(parts):
            raise InvalidInputError(f"{text!r} is no table name: it must be 'database.table'")
        database, rest = parts
        check_name(database, text)
        table, branch, system = split_name(rest, text)
        return Identifier(database, table, branch, system)

    def __str__(self) -> str:
        branch = f"{SEPARATOR}{BRANCH_PREFIX}{self.branch}" if self.branch else ""
        system = f"{SEPARATOR}{self.system_table}" if self.system_table else ""
        return f"{self.database}.{self.table}{branch}{system}"


def _split(text: str) -> list[str]:
    """Split at dots outside backticks."""
    parts, quoted = [""], False
    for char in text:
        if char == "`":
            quoted = not quoted
        elif char == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    if quoted:
        raise InvalidInputError(f"{text!r} is no table name: a backtick is not closed")
    return parts
