"""Paths are plain strings as the user gave them: ``/a/b``, ``file:///a/b``, ``s3://bucket/a``."""

import os
import re
from collections.abc import Sequence

from paimon_core.errors import InvalidInputError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/")
_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*:)?/+$")
_NEVER_IN_NAMES = frozenset(("/", "\0", os.sep))


def join(*parts: str) -> str:
    """Join path parts with single slashes; empty parts vanish, the scheme and a leading slash stay."""
    given = [part for part in parts if part]
    if not given:
        return ""
    root = _ROOT.match(given[0])
    first = given[0] if root else given[0].rstrip("/") + "/"
    return (first + "/".join(part.strip("/") for part in given[1:])) if given[1:] or root else first[:-1]


def scheme_of(path: str) -> str:
    """Return the lower-case URL scheme; ``"file"`` for a path without one."""
    match = _SCHEME.match(path)
    return match[1].lower() if match else "file"


def local_path(path: str) -> str:
    """Return the operating system's path of a local path in any spelling (``/a``, ``file:/a``, ``file:///a``)."""
    if not path.lower().startswith("file:/"):
        return path
    rest = path[len("file:") :]
    return rest[2:] if rest.startswith("//") else rest


def absolute(path: str) -> str:
    """Return the path independent of the working directory; only a relative local path changes."""
    return os.path.abspath(path) if scheme_of(path) == "file" and not path.lower().startswith("file:/") else path


def are_file_names(names: Sequence[str]) -> bool:
    """Return True if every text names a file of a directory, and cannot leave it: no separator, not ``..``."""
    joined = "\n".join(names)
    return not any(mark in joined for mark in _NEVER_IN_NAMES) and not any(one in names for one in ("", ".", ".."))


def check_name(name: str, shown: str) -> None:
    """Refuse what cannot be the name of a directory: slashes, ``.`` and ``..``, blanks only.

    Raises InvalidInputError, which says ``shown`` for what was given.
    """
    if "/" in name or "\\" in name or name in (".", "..") or (name and not name.strip()):
        raise InvalidInputError(
            f"{shown!r} cannot name a database, table or branch: {name!r} would leave its directory"
        )
