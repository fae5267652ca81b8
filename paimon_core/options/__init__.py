"""Every option this engine knows: the registry, and the check that catches misspelt keys.

Keys of a stored schema that nobody knows are kept and ignored, with a warning where they look like those of a family
(:func:`warn_of_strays`); keys a user gives are checked by :func:`check_known`.
"""

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.options import bucket, families, file, lsm, merge, scan, snapshot
from paimon_core.options.option import Option, Options

__all__ = [
    "ALL_OPTIONS",
    "REMOVED",
    "Option",
    "Options",
    "check_known",
    "is_known",
    "nearest",
    "spelled",
    "warn_of_strays",
    "warn_once",
]

ALL_OPTIONS: Final[dict[str, Option[Any]]] = {
    option.key: option
    for module in (file, bucket, merge, lsm, scan, snapshot)
    for option in vars(module).values()
    if isinstance(option, Option)
}
"""Declarations by key."""

REMOVED: Final = frozenset(
    {
        "compaction.max.file-num",
        "lookup.local-file-type",
        "manifest.format",
        "object-location",
        "streaming-read-mode",
        "upsert-key",
        "write-manifest-cache",
    }
)
"""Keys older releases had: accepted and without effect."""

_DECLARED: Final = frozenset(ALL_OPTIONS).union(*(option.old_keys for option in ALL_OPTIONS.values()))
_CASES: Final = {key.lower(): key for key in _DECLARED if key != key.lower()}


def is_known(key: str) -> bool:
    """Return True where a key is declared, an older name, a removed one or named by a family."""
    if key.startswith(families.DEFAULTS_PREFIX):
        return is_known(key.removeprefix(families.DEFAULTS_PREFIX))
    return key in _DECLARED or key in REMOVED or families.is_named(key)


def nearest(key: str) -> str | None:
    """Return the known key most like a misspelt one, or None when none is close."""
    if key.startswith(families.DEFAULTS_PREFIX):
        near = nearest(key.removeprefix(families.DEFAULTS_PREFIX))
        return near and families.DEFAULTS_PREFIX + near
    folded = key.strip().lower().replace("_", "-")
    if folded in ALL_OPTIONS:
        return folded
    close = get_close_matches(folded, [*ALL_OPTIONS, *families.candidates(key)], n=1, cutoff=0.7)
    return close[0] if close else None


def spelled(key: str) -> str:
    """Return the key in the case in which it is known; one that nobody knows as it is."""
    return _CASES.get(key.lower()) or families.spelled(key)


def check_known(given: Iterable[str], where: str) -> None:
    """Refuse keys nobody knows; warn once of those that do nothing here, unless a mapping gives them their default.

    ``where`` says what they were given to.
    """
    for key in given:
        if not is_known(key):
            close = nearest(key)
            advice = f"did you mean {close!r}?" if close else "see paimon_core.options.ALL_OPTIONS for what exists"
            raise InvalidInputError(f"unknown option {key!r} of {where}: {advice}")
        reason = _in_vain(key, given[key] if isinstance(given, Mapping) else None)
        if reason is not None:
            warn_once(f"option {key!r} of {where} {reason}")


def _in_vain(key: str, text: str | None) -> str | None:
    """Say why the option does nothing here; None where it does something, is refused elsewhere or is the default."""
    if families.is_elsewhere(key):
        return "has no effect here: only other engines follow it"
    option = ALL_OPTIONS.get(key)
    if option is None or option.mark.kind not in ("without effect here", "not yet"):
        return None
    try:
        if text is not None and option.parse(text) == option.default:
            return None
    except ValueError:
        pass  # refused by who parses it
    when = "has no effect here" if option.mark.kind == "without effect here" else "has no effect yet"
    return f"{when}: {option.mark.reason}"


def warn_of_strays(keys: Iterable[str], where: str) -> None:
    """Warn once of each key that begins as those of a family and that nobody knows; ``where`` says who keeps it."""
    for key in keys:
        if families.is_of_family(key) and not is_known(key):
            close = nearest(key)
            advice = f"; did you mean {close!r}?" if close else ""
            warn_once(f"option {key!r} of {where} is unknown and has no effect{advice}")


@lru_cache(maxsize=1024)
def warn_once(text: str) -> None:
    """Warn a user, once in this process for each text."""
    warnings.warn(hide_secrets(text), stacklevel=2)
