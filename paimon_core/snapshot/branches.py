"""Branches: additional timelines over the same data files, in ``branch/branch-<name>/`` (format 10.2)."""

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.paths import check_name

MAIN = "main"

_PREFIX = "branch-"


def branch_root(root: str, branch: str) -> str:
    """Return the directory of a branch's schemas, snapshots and tags; for ``main`` the table's root."""
    return root if branch == MAIN else join(root, "branch", _PREFIX + branch)


def tag_of_branch(branch: str) -> str:
    """Return the name of the tag on ``main`` that keeps the snapshot from which a branch was created."""
    return _PREFIX + branch


def list_branches(io: FileIO, root: str) -> list[str]:
    """Return the names of all branches except ``main``, sorted."""
    return sorted(branch_times(io, root))


def branch_times(io: FileIO, root: str) -> dict[str, int]:
    """Return the modification time (epoch ms) of the directory of each branch except ``main``, by name. 0: unknown."""
    entries = io.list(join(root, "branch"))
    return {
        entry.name.removeprefix(_PREFIX): entry.modified_ms
        for entry in entries
        if entry.is_directory and entry.name.startswith(_PREFIX)
    }


def check_branch_name(name: str) -> None:
    """Raise InvalidInputError for a name that no new branch can have: blank, only digits, ``main``, with a slash."""
    check_name(name, name)
    if not name.strip() or name.strip().isdigit() or name == MAIN:
        raise InvalidInputError(
            f"{name!r} cannot name a branch: a name is not blank, not only digits, and not {MAIN!r}"
        )
