"""Files outside of a table's directory: whose word counts for reading them, and for deleting them (decision 15).

Metadata name such files by whole paths, and metadata may come from anybody.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from paimon_core.errors import CorruptedError, InvalidInputError, hide_secrets
from paimon_core.fileio.paths import local_path, scheme_of
from paimon_core.options.file import DATA_FILE_EXTERNAL_PATHS, DATA_FILE_EXTERNAL_PATHS_ALLOWED

__all__ = ["NO_TRUST", "Trust", "check_external", "is_below"]

_OBJECT_STORES = frozenset(
    {"s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "az", "adl", "wasb", "wasbs", "oss", "oci", "obs", "cos", "cosn"}
)
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://([^/]*)(/.*)?", re.DOTALL)
_ALLOWED = DATA_FILE_EXTERNAL_PATHS_ALLOWED.key

Place = tuple[str, str, tuple[str, ...]]
"""Scheme, host or bucket, and the names of the directories down to a place."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The word of the caller, who is not the table: ``roots`` below which external files may be read and deleted, and
    the ``warehouse``, below which roots that the table declares may be read."""

    roots: tuple[str, ...] = field(default=(), repr=False)
    warehouse: str | None = field(default=None, repr=False)


NO_TRUST = Trust()


def check_external(path: str, declared: Sequence[str], trust: Trust, root: str) -> str:
    """Return ``path``, the external path of a file of the table at ``root``, if it may be read.

    It must lie below a root that the caller named, or below one of those the table has ``declared``, which is on an
    object store or in the caller's warehouse.

    Raises CorruptedError for a path below no root, InvalidInputError where only the table vouches for a root.
    """
    if is_below(path, (root, *trust.roots)):
        return path
    shown = hide_secrets(path)
    found = next((one for one in declared if is_below(path, (one,))), None)
    if found is None:
        raise CorruptedError(
            f"the table at {hide_secrets(root)} names a file at {shown}, which is below no root of its option "
            f"{DATA_FILE_EXTERNAL_PATHS.key!r}: the metadata are damaged, or made to reach files of others. Where the "
            f"file belongs to the table, name its root by the option {_ALLOWED!r} of this call or of the catalog"
        )
    warehouse = () if trust.warehouse is None else (trust.warehouse,)
    if scheme_of(path) in _OBJECT_STORES or is_below(found, warehouse, itself=True):
        return path
    raise InvalidInputError(
        f"the table at {hide_secrets(root)} has a file at {shown}, outside of its directory, and nobody but the table "
        f"says that it may be read there: if you trust who made the table, give the option {_ALLOWED!r} = "
        f"{hide_secrets(found)!r} to this call or to the catalog"
    )


def is_below(path: str, roots: Iterable[str], *, itself: bool = False) -> bool:
    """Return True if ``path`` leads to a place below one of ``roots``, or with ``itself`` to one of them."""
    place = _place(path)
    if place is None:
        return False
    for root in map(_place, roots):
        if root is not None and root[:2] == place[:2]:
            depth = len(root[2])
            if place[2][:depth] == root[2] and (itself or len(place[2]) > depth):
                return True
    return False


def _place(path: str) -> Place | None:
    """The place of a path; None for a path that is not absolute, or that could lead elsewhere."""
    if scheme_of(path) == "file":
        scheme, host, rest = "file", "", local_path(path)
    else:
        parts = _REMOTE.fullmatch(path)
        if parts is None:
            return None
        scheme, host, rest = scheme_of(path), parts[1], parts[2] or "/"
    names = tuple(rest.removeprefix("/").removesuffix("/").split("/")) if rest.strip("/") else ()
    if not rest.startswith("/") or any(name in ("", ".", "..") for name in names):
        return None
    if "::" in path or "\0" in path or "\\" in path:  # fsspec reads a chain of file systems in the first
        return None
    return _SAME_STORE.get(scheme, scheme), host, names
