"""Functions on paths, which are plain strings as the user wrote them: ``/a/b``, ``file:///a/b``, ``s3://bucket/a``."""

import os
import re
from collections.abc import Sequence

from paimon_core.errors import InvalidInputError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/")
_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*:)?/+$")
_NO_NAMES = ("", ".", "..")
_SEPARATOR = re.compile(rf"[/\0{re.escape(os.sep)}]")


def join(*parts: str) -> str:
    """Join path parts with single slashes; drop empty parts; keep the scheme and a leading slash."""
    if len(parts) == 2:  # most calls join a directory and a name
        directory, name = parts
        if directory and name and "/" not in (directory[-1], name[0], name[-1]):
            return f"{directory}/{name}"
    given = [part for part in parts if part]
    if not given:
        return ""
    root = _ROOT.match(given[0])
    first = given[0] if root else given[0].rstrip("/") + "/"
    return (first + "/".join(part.strip("/") for part in given[1:])) if given[1:] or root else first[:-1]


def scheme_of(path: str) -> str:
    """Return the lower-case URL scheme; ``"file"`` for a path without a scheme."""
    match = _SCHEME.match(path)
    return match[1].lower() if match else "file"


def local_path(path: str) -> str:
    """Return the operating system's path of a local path in any spelling (``/a``, ``file:/a``, ``file:///a``)."""
    if not path.lower().startswith("file:/"):
        return path
    rest = path[len("file:") :]
    return rest[2:] if rest.startswith("//") else rest


def absolute(path: str) -> str:
    """Return an absolute path; only a relative local path changes."""
    return os.path.abspath(path) if scheme_of(path) == "file" and not path.lower().startswith("file:/") else path


def is_file_name(name: str) -> bool:
    """Return True if a name stays within its directory: without separators, not ``..``, not empty."""
    return name not in _NO_NAMES and _SEPARATOR.search(name) is None


def are_file_names(names: Sequence[str]) -> bool:
    """Return True if `is_file_name` is True for all names."""
    return _SEPARATOR.search("\n".join(names)) is None and not any(name in names for name in _NO_NAMES)


def check_name(name: str, shown: str) -> None:
    """Check the name of a directory: a text, no slash, not ``.``, ``..`` or only blanks.

    Raises InvalidInputError, whose message shows ``shown`` as the user's input.
    """
    if not isinstance(name, str):
        raise InvalidInputError(f"{shown!r} ({type(name).__name__}) names no database, table or branch: pass a text")
    if "/" in name or "\\" in name or name in (".", "..") or (name and not name.strip()):
        raise InvalidInputError(
            f"{shown!r} cannot name a database, table or branch: {name!r} would leave its directory"
        )
