"""Files outside of a table's directory, and the permission to read and delete them (decision 15).

Metadata name these files by absolute paths, and metadata may come from an untrusted source.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from paimon_core.errors import CorruptedError, InvalidInputError, hide_secrets
from paimon_core.fileio.paths import local_path, scheme_of
from paimon_core.fileio.stores import canonical_scheme, store_of
from paimon_core.options.file import (
    BLOB_EXTERNAL_PATHS_ALLOWED,
    DATA_FILE_EXTERNAL_PATHS,
    DATA_FILE_EXTERNAL_PATHS_ALLOWED,
)

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://([^/]*)(/.*)?", re.DOTALL)
_ALLOWED = DATA_FILE_EXTERNAL_PATHS_ALLOWED.key

ParsedPath = tuple[str, str, tuple[str, ...]]
"""A parsed path: scheme, host or bucket of an object store, and the names of directories from the root down."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The paths that the caller allows, independent of the table's options.

    ``roots``: directories in which external files may be read and deleted. ``warehouse``: the directory in which roots
    that the table declares may be read, and blobs that descriptors describe; `None`: no directory. ``blob_roots``:
    other directories in which such blobs may be read.
    """

    roots: tuple[str, ...] = field(default=(), repr=False)
    warehouse: str | None = field(default=None, repr=False)
    blob_roots: tuple[str, ...] = field(default=(), repr=False)

    def to_text(self) -> str:
        """Return the text that `of_text` reads, for another process of the caller's job."""
        return json.dumps([self.roots, self.warehouse, self.blob_roots])

    @staticmethod
    def of_text(text: str) -> "Trust":
        """Return the paths that `to_text` wrote."""
        roots, warehouse, blob_roots = json.loads(text)
        return Trust(tuple(roots), warehouse, tuple(blob_roots))


NO_TRUST = Trust()


def check_external(path: str, declared: Sequence[str], trust: Trust, root: str) -> str:
    """Return ``path``, the external path of a file of the table at ``root``, if it may be read.

    The path must be below the table, below a root of ``trust``, or below a root of ``declared`` that is on an object
    store or in the warehouse of ``trust``.

    Args:
        path: the external path.
        declared: the roots in the table's option ``data-file.external-paths``.
        trust: the paths that the caller allows.
        root: the directory of the table.

    Raises CorruptedError for a path below no root, InvalidInputError if only the table allows the root.
    """
    if is_inside(path, (root, *trust.roots)):
        return path
    shown = hide_secrets(path)
    declared_root = next((candidate for candidate in declared if is_inside(path, (candidate,))), None)
    if declared_root is None:
        raise CorruptedError(
            f"the table at {hide_secrets(root)} names a file at {shown}, which is below no root of its option "
            f"{DATA_FILE_EXTERNAL_PATHS.key!r}: the metadata are damaged, or were forged to reach other files. If the "
            f"file belongs to the table, allow its root with the option {_ALLOWED!r} of this call or of the catalog"
        )
    warehouse = () if trust.warehouse is None else (trust.warehouse,)
    if store_of(path).object_store or is_inside(declared_root, warehouse, itself=True):
        return path
    raise InvalidInputError(
        f"the table at {hide_secrets(root)} has a file at {shown}, outside of its directory, and only the table itself "
        f"allows reading it there: if you trust the creator of the table, set the option {_ALLOWED!r} = "
        f"{hide_secrets(declared_root)!r} for this call or for the catalog"
    )


def check_blob(path: str, declared: Sequence[str], trust: Trust, root: str) -> str:
    """Return ``path``, the file of a blob that a value of the table at ``root`` describes, if it may be read.

    Values come from anybody who writes rows. So the path must be below the table, below a directory of ``trust``, or
    below a root of ``declared`` that is on an object store. Arguments as for `check_external`. Raises InvalidInputError
    for another path.
    """
    trusted = (root, *trust.roots, *trust.blob_roots, *(() if trust.warehouse is None else (trust.warehouse,)))
    if is_inside(path, (*trusted, *(directory for directory in declared if store_of(directory).object_store))):
        return path
    shown = hide_secrets(path)
    raise InvalidInputError(
        f"a row of the table at {hide_secrets(root)} describes a blob in {shown}, which is neither below the table nor "
        f"below the warehouse: if you trust the writers of the table, add the directory of the file to the option "
        f"{BLOB_EXTERNAL_PATHS_ALLOWED.key!r} of this call or of the catalog, or read the descriptors with "
        "'blob-as-descriptor' = 'true'"
    )


def is_inside(path: str, roots: Iterable[str], *, itself: bool = False) -> bool:
    """Return True if ``path`` is below one of ``roots``. ``itself``: True to accept a path of ``roots`` too."""
    parsed = _parse(path)
    if parsed is None:
        return False
    for root in map(_parse, roots):
        if root is not None and root[:2] == parsed[:2]:
            depth = len(root[2])
            if parsed[2][:depth] == root[2] and (itself or len(parsed[2]) > depth):
                return True
    return False


def _parse(path: str) -> ParsedPath | None:
    """Parse a path; `None`: the path is not absolute, or a part of it such as ``..`` could lead elsewhere."""
    if scheme_of(path) == "file":
        scheme, host, rest = "file", "", local_path(path)
    else:
        parts = _REMOTE.fullmatch(path)
        if parts is None:
            return None
        scheme, host, rest = canonical_scheme(path), parts[1], parts[2] or "/"
    names = tuple(rest.removeprefix("/").removesuffix("/").split("/")) if rest.strip("/") else ()
    if not rest.startswith("/") or any(name in ("", ".", "..") for name in names):
        return None
    if "::" in path or "\0" in path or "\\" in path:  # fsspec reads `::` as a chain of file systems
        return None
    return scheme, host, names
