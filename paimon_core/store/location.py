"""The location of a table as users write it: ``path``, ``path$branch_b``, ``path$ro``, ``path$branch_b$ro``."""

from dataclasses import dataclass

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.fileio.paths import check_name

SEPARATOR = "$"
BRANCH_PREFIX = "branch_"
READ_OPTIMIZED = "ro"


@dataclass(frozen=True, slots=True)
class TableLocation:
    """The directory of a table, a branch (`None`: no branch is named), and True for the read-optimized view."""

    path: str
    branch: str | None = None
    read_optimized: bool = False

    def __str__(self) -> str:
        """Return the text that :meth:`parse` reads."""
        branch = "" if self.branch is None else SEPARATOR + BRANCH_PREFIX + self.branch
        return self.path + branch + (SEPARATOR + READ_OPTIMIZED if self.read_optimized else "")

    @staticmethod
    def parse(text: str) -> "TableLocation":
        """Return the location that `text` names; raises as `split_name` and `of` do."""
        directory, slash, name = text.rstrip("/").rpartition("/")
        if not name or name.endswith(":"):  # the root of a file system
            return TableLocation(text)
        if SEPARATOR not in name:
            return TableLocation(directory + slash + name)
        table, branch, system_table = split_name(name, text)
        return TableLocation.of(directory + slash + table, branch, system_table)

    @staticmethod
    def of(path: str, branch: str | None, system_table: str | None) -> "TableLocation":
        """Return the location of a table, a branch or the view ``$ro``; UnsupportedError for other system tables."""
        if system_table not in (None, READ_OPTIMIZED):
            raise UnsupportedError(f"system tables are not readable yet: {system_table!r} of {path}")
        return TableLocation(path, branch, system_table is not None)


def split_name(name: str, shown: str) -> tuple[str, str | None, str | None]:
    """Return the table, the branch and the lower-case system table of ``table$branch_<branch>$<system table>``.

    Raises InvalidInputError, which quotes `shown`, for a name of another form.
    """
    table, *suffixes = name.split(SEPARATOR)
    branch = system_table = None
    if suffixes and suffixes[0].lower().startswith(BRANCH_PREFIX):
        branch = suffixes.pop(0)[len(BRANCH_PREFIX) :]
    if suffixes:
        system_table = suffixes.pop(0).lower()
    if suffixes or not table or branch == "" or system_table == "":
        raise InvalidInputError(
            f"{shown!r} is no table name: after the table may follow '$branch_<branch>', then '$<system table>'"
        )
    for part in (table, branch or ""):
        check_name(part, shown)
    return table, branch, system_table
