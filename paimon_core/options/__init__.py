"""The registry of all options, and the checks for misspelt keys.

:func:`check_known` refuses unknown keys that a user sets. Unknown keys of a stored schema are preserved and ignored;
:func:`warn_of_strays` warns about unknown keys that begin like a family.
"""

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.options import bucket, families, file, iceberg, lsm, merge, scan, snapshot
from paimon_core.options.option import Option, Options

__all__ = [
    "ALL_OPTIONS",
    "REMOVED",
    "Option",
    "Options",
    "begins_like_known",
    "check_known",
    "check_not_newer",
    "is_known",
    "nearest",
    "spelled",
    "warn_of_strays",
    "warn_once",
]

ALL_OPTIONS: Final[dict[str, Option[Any]]] = {
    option.key: option
    for module in (file, bucket, merge, lsm, scan, snapshot, iceberg)
    for option in vars(module).values()
    if isinstance(option, Option)
}
"""The declarations of all options by key."""

REMOVED: Final = frozenset(
    {
        "compaction.max.file-num", "lookup.local-file-type", "manifest.format", "object-location",
        "streaming-read-mode", "upsert-key", "write-manifest-cache",
    }
)  # fmt: skip
"""Keys of older releases, which are accepted but have no effect."""

_DECLARED: Final = frozenset(ALL_OPTIONS).union(*(option.old_keys for option in ALL_OPTIONS.values()))
_STARTS: Final = frozenset(
    key.partition(".")[0]
    for key in (*_DECLARED, *families.EFFECTIVE, *families.REFUSED, *families.ELSEWHERE, *families.NEWER)
    if "." in key
)
_CASES: Final = {key.lower(): key for key in _DECLARED if key != key.lower()}


def is_known(key: str) -> bool:
    """Return True for a declared key, its old name, a removed key, or a name in a family."""
    if key.startswith(families.DEFAULTS_PREFIX):
        return is_known(key.removeprefix(families.DEFAULTS_PREFIX))
    return key in _DECLARED or key in REMOVED or families.is_named(key)


def begins_like_known(key: str) -> bool:
    """Return True if a key has the part before the dot of a known key, or begins like ``bucket``."""
    first, dot, _ = key.strip().lower().partition(".")
    return first.startswith("bucket") or (bool(dot) and first in _STARTS)


def nearest(key: str) -> str | None:
    """Return the known key closest to a misspelt one, or `None`."""
    if key.startswith(families.DEFAULTS_PREFIX):
        similar = nearest(key.removeprefix(families.DEFAULTS_PREFIX))
        return similar and families.DEFAULTS_PREFIX + similar
    folded = key.strip().lower().replace("_", "-")
    if folded in ALL_OPTIONS:
        return folded
    close = get_close_matches(folded, [*ALL_OPTIONS, *families.candidates(key)], n=1, cutoff=0.7)
    return close[0] if close else None


def spelled(key: str) -> str:
    """Return a known key in its declared case; an unknown key unchanged."""
    return _CASES.get(key.lower()) or families.spelled(key)


def check_known(given: Iterable[str], where: str) -> None:
    """Refuse unknown keys, and warn once about each key without effect.

    Args:
        given: the keys, or a mapping from keys to values; a key with its default value causes no warning.
        where: the receiver of the options, for messages.

    Raises InvalidInputError for an unknown key, UnsupportedError for a key of newer releases of the Java engine.
    """
    for key in given:
        if not is_known(key):
            check_not_newer(key, where)
            close = nearest(key)
            advice = f"did you mean {close!r}?" if close else "paimon_core.options.ALL_OPTIONS lists the known ones"
            raise InvalidInputError(f"unknown option {key!r} in {where}; {advice}")
        reason = _without_effect(key, given[key] if isinstance(given, Mapping) else None)
        if reason is not None:
            warn_once(f"option {key!r} of {where} {reason}")


def check_not_newer(key: str, where: str) -> None:
    """Raise UnsupportedError for a key of newer releases of the Java engine. ``where``: as for `check_known`."""
    if families.is_newer(key.removeprefix(families.DEFAULTS_PREFIX)):
        raise UnsupportedError(
            f"option {key!r} in {where} is not supported: it is newer than this engine, which implements Paimon 1.4.2"
        )


def _without_effect(key: str, text: str | None) -> str | None:
    """Return the reason why an option has no effect; `None`: it has an effect, is refused later, or is the default."""
    if families.is_elsewhere(key):
        return "has no effect here: only other engines use it"
    option = ALL_OPTIONS.get(key)
    if option is None or option.mark.kind not in ("without effect here", "not yet"):
        return None
    try:
        if text is not None and option.parse(text) == option.default:
            return None
    except ValueError:
        pass  # the code that parses the value refuses it
    when = "has no effect here" if option.mark.kind == "without effect here" else "has no effect yet"
    return f"{when}: {option.mark.reason}"


def warn_of_strays(keys: Iterable[str], where: str) -> None:
    """Warn once about each unknown key that begins like a family. ``where``: the table, for the warning."""
    for key in keys:
        if families.is_of_family(key) and not is_known(key):
            close = nearest(key)
            advice = f"; did you mean {close!r}?" if close else ""
            warn_once(f"option {key!r} of {where} is unknown and has no effect{advice}")


@lru_cache(maxsize=1024)
def warn_once(text: str) -> None:
    """Warn the user once per process and text."""
    warnings.warn(hide_secrets(text), stacklevel=2)
