"""Every option this engine knows: the registry, and the check that catches misspelt keys.

Keys of a stored schema that nobody knows are kept and ignored; keys a user gives are checked by :func:`check_known`.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Final

from paimon_core.errors import InvalidInputError
from paimon_core.options import bucket, file, lsm, merge, scan, snapshot
from paimon_core.options.option import Option, Options

__all__ = ["ALL_OPTIONS", "PATTERNS", "REMOVED", "Option", "Options", "check_known", "is_known", "nearest"]

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

PATTERNS: Final = (
    "fields.?*",
    "file-index.?*",
    "parquet.?*",
    "orc.?*",
    "avro.?*",
    "csv.?*",
    "json.?*",
    "table-default.?*",
    # Understood by other engines on the same table, without effect on what this one reads and writes.
    "read.?*",
    "write.merge-schema*",
    "write.use-v2-write",
    "write.hive-style-dynamic-partition.enabled",
    "source.split.target-size-with-column-pruning",
    "lookup.?*",
    "variant.?*",
    "global-index.?*",
    "pk-?*.index.columns",
    "chain-table.?*",
    "format-table.?*",
    "manifest-sort.?*",
    "metastore.?*",
    "metadata.iceberg.?*",
    "sink.?*",
    "sort-compaction.?*",
    "scan.infer-parallelism*",
    "scan.parallelism",
    "scan.remove-normalize",
    "scan.split-enumerator.?*",
    "scan.watermark.?*",
    "commit.callback.?*",
    "tag.callback.?*",
    "partition.mark-done-action.?*",
    "partition.idle-time-to-done",
    "partition.time-interval",
)
"""Families of keys (shell patterns) that are known without a declaration each."""

_DECLARED: Final = frozenset(ALL_OPTIONS).union(*(option.old_keys for option in ALL_OPTIONS.values()))


def is_known(key: str) -> bool:
    """Whether a key is declared, an older name, a removed one or of a known family."""
    return key in _DECLARED or key in REMOVED or any(fnmatchcase(key, pattern) for pattern in PATTERNS)


def nearest(key: str) -> str | None:
    """The declared key most like a misspelt one, or None when none is close."""
    folded = key.strip().lower().replace("_", "-")
    close = [folded] if folded in ALL_OPTIONS else get_close_matches(folded, ALL_OPTIONS, n=1, cutoff=0.7)
    return close[0] if close else None


def check_known(keys: Iterable[str], where: str) -> None:
    """Refuse keys nobody knows (a mapping counts as its keys); ``where`` says what they were given to."""
    for key in keys:
        if not is_known(key):
            close = nearest(key)
            advice = f"did you mean {close!r}?" if close else "see paimon_core.options.ALL_OPTIONS for what exists"
            raise InvalidInputError(f"unknown option {key!r} of {where}: {advice}")
