"""The errors of the engine: one class for each action that a caller would take.

::

    PaimonError
    ├── InvalidInputError (ValueError)           fix the call: option, schema, predicate, data
    ├── NotFoundError (LookupError)              database, table, column, snapshot, tag, branch
    ├── AlreadyExistsError                       choose another name, or ask to ignore it
    ├── PermissionDeniedError                    a catalog's server refuses the credentials, or denies a permission
    ├── UnsupportedError (NotImplementedError)   the table uses something this engine does not do
    ├── CommitConflictError                      another commit changed the same files or rows: plan again and retry
    │   └── TableChangedError (CommitConflictError)   the table was dropped, replaced or altered: open it again
    ├── CommitUnknownError                       the commit may be done: check before retrying; files are kept
    ├── OutOfRangeError                          the snapshot expired while it was read: restart from a newer one
    ├── CorruptedError                           a file cannot be read: names the file
    └── MissingDependencyError (ImportError)     install the named extra

A message states what was requested, what was found, where, and what to do. Errors of the storage itself are not
wrapped: they stay an ``OSError``.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

__all__ = [
    "AlreadyExistsError",
    "CommitConflictError",
    "CommitUnknownError",
    "CorruptedError",
    "InvalidInputError",
    "MissingDependencyError",
    "NotFoundError",
    "OutOfRangeError",
    "PaimonError",
    "PermissionDeniedError",
    "TableChangedError",
    "UnsupportedError",
]


_SHOWN, _COMPARED = 20, 2_000
_CONTAINER = "".join(rf"(?<!{scheme}://)" for scheme in ("abfs", "abfss", "wasb", "wasbs"))  # container@account
_USER_INFO = re.compile(rf"(?<=://)(?:{_CONTAINER}[^/@:\s'\"]*|[^/@:\s'\"]*:(?!\d+/)[^@\s'\"]*)@")
"""The user of a URL, with or without a password. A secret key may contain slashes; a port is not a password."""
_PARAMETER = re.compile(r"(?i)([?&](?:[\w.-]*(?:secret|token|password|signature)|sig)=)[^&\s'\"]+")


def hide_secrets(text: str) -> str:
    """Return the text without the user names and passwords of its URLs, so that a message may show it."""
    return _PARAMETER.sub(r"\1***", _USER_INFO.sub("***@", text)) if "://" in text else text


def nearest_name(asked: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to ``asked``, ignoring case, or `None`. Compares at most 2,000 names."""
    names = {name.lower(): name for name in reversed(list(islice(known, _COMPARED)))}
    near = get_close_matches(asked.lower(), names, n=1)
    return names[near[0]] if near else None


def listed_names(asked: str, known: Iterable[str], nothing: str = "none") -> str:
    """Return the known names for the message of a `NotFoundError`: at most 20, then the name closest to ``asked``.

    ``nothing``: the text for an empty list.
    """
    names = list(known)
    near = nearest_name(asked, names)
    more = f", ... ({len(names):,} in all)" if len(names) > _SHOWN else ""
    hint = "" if near is None else f"; did you mean {near!r}?"
    return f"{', '.join(names[:_SHOWN])}{more}{hint}" if names else nothing


def user_info(url: str) -> str | None:
    """Return the user of a URL, with the password if there is one; ``None`` for a URL without a user."""
    found = _USER_INFO.search(url)
    return found[0][:-1] if found else None


class PaimonError(Exception):
    """The base class of all errors that this engine raises itself. Its message never contains a URL's password."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(hide_secrets(arg) if isinstance(arg, str) else arg for arg in args))


class InvalidInputError(PaimonError, ValueError):
    """An invalid call: an option, a schema, a predicate or the data is wrong."""


class NotFoundError(PaimonError, LookupError):
    """A database, table, column, snapshot, tag or branch that does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # otherwise subclasses of LookupError quote their argument


class AlreadyExistsError(PaimonError):
    """A database, table, column, tag or branch with this name already exists."""


class PermissionDeniedError(PaimonError):
    """A request for which a catalog's server does not accept the credentials, or denies the permission."""


class UnsupportedError(PaimonError, NotImplementedError):
    """A feature that the table or the call uses but this engine does not implement; the message names it."""


class CommitConflictError(PaimonError):
    """A conflict with another commit, which changed the same files or rows: plan again and retry."""


class TableChangedError(CommitConflictError):
    """A write to a table that was dropped, replaced or altered since it was opened: open the table again and retry."""


class CommitUnknownError(PaimonError):
    """A commit with unknown outcome: check the newest snapshots before retrying; its files are kept."""


class OutOfRangeError(PaimonError):
    """A requested snapshot that has expired or does not exist yet."""


class CorruptedError(PaimonError):
    """A metadata or data file that cannot be read; the message names it."""


class MissingDependencyError(PaimonError, ImportError):
    """An optional package that is missing; the message names the extra to install."""
