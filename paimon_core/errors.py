"""What can go wrong, one class per thing a caller would do about it.

::

    PaimonError
    ├── InvalidInputError (ValueError)           fix the call: option, schema, predicate, data
    ├── NotFoundError (LookupError)              database, table, column, snapshot, tag, branch
    ├── AlreadyExistsError                       choose another name, or ask to ignore it
    ├── UnsupportedError (NotImplementedError)   the table uses something this engine does not do
    ├── CommitConflictError                      others changed what you changed: plan again and retry
    ├── CommitUnknownError                       it may have landed: look before retrying; files are kept
    ├── OutOfRangeError                          the snapshot expired under a reader: restart from a newer one
    ├── CorruptedError                           a file cannot be read: names the file
    └── MissingDependencyError (ImportError)     install the named extra

A message says what was asked, what was found, where, and what to do. Errors of the storage itself
pass through as the ``OSError`` they are.
"""

import re

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
    "UnsupportedError",
]


_USER_INFO = re.compile(r"(?<=://)(?:[^/@:\s'\"]*|[^/@:\s'\"]*:(?!\d+/)[^@\s'\"]*)@")
"""The user, with or without a password, of a URL; a secret key may hold slashes, and a port is no password."""
_PARAMETER = re.compile(r"(?i)([?&](?:[\w.-]*(?:secret|token|password|signature)|sig)=)[^&\s'\"]+")


def hide_secrets(text: str) -> str:
    """Return the text without the user names and passwords of URLs in it, fit for messages."""
    return _PARAMETER.sub(r"\1***", _USER_INFO.sub("***@", text)) if "://" in text else text


def user_info(url: str) -> str | None:
    """Return what a URL says of the user, the password included; None where it names none."""
    found = _USER_INFO.search(url)
    return found[0][:-1] if found else None


class PaimonError(Exception):
    """Root of every error this engine raises on its own account. Its message holds no password of a URL."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(hide_secrets(arg) if isinstance(arg, str) else arg for arg in args))


class InvalidInputError(PaimonError, ValueError):
    """The call itself is wrong: an option, a schema, a predicate or the data given."""


class NotFoundError(PaimonError, LookupError):
    """A database, table, column, snapshot, tag or branch that does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # LookupError's children quote their argument otherwise


class AlreadyExistsError(PaimonError):
    """Something of that name is there already."""


class UnsupportedError(PaimonError, NotImplementedError):
    """The table or the call uses a feature this engine does not implement; it is named in the message."""


class CommitConflictError(PaimonError):
    """Somebody else changed what this commit changes: plan again on the newest snapshot and retry."""


class CommitUnknownError(PaimonError):
    """The commit may or may not have landed: look at the newest snapshots before retrying; its files are kept."""


class OutOfRangeError(PaimonError):
    """The snapshot asked for is gone (expired) or not there yet."""


class CorruptedError(PaimonError):
    """A metadata or data file cannot be read; the message names it."""


class MissingDependencyError(PaimonError, ImportError):
    """An optional package is missing; the message names the extra to install."""
