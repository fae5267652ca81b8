"""The location of a table as users write it: ``path``, ``path$branch_b``, ``path$files``, ``path$branch_b$files``."""

from dataclasses import dataclass

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.paths import check_name
from paimon_core.store.layout import MAIN_BRANCH

SEPARATOR = "$"
BRANCH_PREFIX = "branch_"
READ_OPTIMIZED = "ro"


@dataclass(frozen=True, slots=True)
class TableLocation:
    """The directory of a table, a branch and a system table in lower case; `None`: no branch, or no system table.

    The system table `READ_OPTIMIZED` is the read-optimized view. Other names are not checked.
    """

    path: str
    branch: str | None = None
    system_table: str | None = None

    def __str__(self) -> str:
        """Return the text that :meth:`parse` reads."""
        branch = "" if self.branch is None else SEPARATOR + BRANCH_PREFIX + self.branch
        return self.path + branch + ("" if self.system_table is None else SEPARATOR + self.system_table)

    def chosen_branch(self, branch: str | None) -> str:
        """Return the branch of an argument, else of this location, else the main branch.

        Raises InvalidInputError if the two contradict each other.
        """
        if branch is not None and self.branch is not None and self.branch != branch:
            raise InvalidInputError(
                f"branch is given as {branch!r}, but the path {str(self)!r} names {self.branch!r}: give one"
            )
        return branch or self.branch or MAIN_BRANCH

    @staticmethod
    def parse(text: str) -> "TableLocation":
        """Return the location that `text` names. Raises as `split_name`, and InvalidInputError for another type."""
        if not isinstance(text, str):
            raise InvalidInputError(f"the path of a table is {text!r} ({type(text).__name__}): pass a text, str(path)")
        directory, slash, name = text.rstrip("/").rpartition("/")
        if not name or name.endswith(":"):  # the root of a file system
            return TableLocation(text)
        if SEPARATOR not in name:
            return TableLocation(directory + slash + name)
        table, branch, system_table = split_name(name, text)
        return TableLocation(directory + slash + table, branch, system_table)


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
            f"{shown!r} is not a table name: only '$branch_<branch>', then '$<system table>', may follow the table"
        )
    for part in (table, branch or ""):
        check_name(part, shown)
    return table, branch, system_table
