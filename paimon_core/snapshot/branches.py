"""Branches: further timelines over the same data files, below ``branch/branch-<name>/`` (format 10.2)."""

from paimon_core.fileio.fileio import FileIO, join

MAIN = "main"

_PREFIX = "branch-"


def branch_root(root: str, branch: str) -> str:
    """Where the schemas, snapshots and tags of a branch lie; for ``main`` the table itself."""
    return root if branch == MAIN else join(root, "branch", _PREFIX + branch)


def list_branches(io: FileIO, root: str) -> list[str]:
    """The names of all branches except ``main``, sorted."""
    entries = io.list(join(root, "branch"))
    return sorted(
        one.name.removeprefix(_PREFIX) for one in entries if one.is_directory and one.name.startswith(_PREFIX)
    )
