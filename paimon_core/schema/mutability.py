"""The rules for changing the options of a table with data."""

from collections.abc import Mapping

from paimon_core.errors import InvalidInputError
from paimon_core.options.merge import DELETION_VECTORS_MODIFIABLE

NEVER = {
    "path": "the directory of a table is fixed",
    "type": "the type of a table is fixed",
    "blob.external-paths.allowed": "a table cannot allow its own paths; set it for each call or the catalog",
    "data-file.external-paths.allowed": "a table cannot allow its own paths; set it for each call or the catalog",
}
"""Options that cannot change even while the table is empty."""

IMMUTABLE = frozenset(
    {
        "aggregation.remove-record-on-delete", "blob-descriptor-field", "blob-field", "blob-view-field",
        "bucket-function.type", "bucket-key", "data-evolution.enabled", "data-file.path-directory",
        "dynamic-bucket.initial-buckets", "force-lookup", "index-file-in-data-file-dir", "merge-engine",
        "partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group", "partition",
        "partition.default-name", "partition.legacy-name", "pk-clustering-override", "primary-key",
        "primary-key.nullable", "row-tracking.enabled", "rowkind.field", "sequence.snapshot-ordering",
    }
)  # fmt: skip
"""Options that determine the meaning or the paths of files already written."""

_FORMER_NAMES = {"blob.stored-descriptor-fields"}
_ONLY_TO_TRUE = frozenset({"ignore-delete", "ignore-update-before"})


def check_change(options: Mapping[str, str], key: str, value: str | None) -> None:
    """Refuse a change of an option that existing data does not allow.

    Args:
        options: the options before the change.
        key: the option.
        value: the new value; `None` removes the option, and an equal value is always allowed.

    Raises InvalidInputError.
    """
    old = options.get(key)
    if old == value:
        return
    if key in NEVER:
        raise InvalidInputError(f"option {key!r} cannot be changed: {NEVER[key]}")
    if key in IMMUTABLE or key in _FORMER_NAMES:
        raise InvalidInputError(
            f"option {key!r} cannot be changed from {old!r} to {value!r} once the table has data: "
            "the meaning or the paths of its files depend on the option; create a new table and copy the rows"
        )
    if key == "bucket":
        _check_bucket(old, value)
    if key == "deletion-vectors.enabled" and not _is_true(options.get(DELETION_VECTORS_MODIFIABLE.key)):
        raise InvalidInputError(
            f"option {key!r} cannot be changed to {value!r} unless 'deletion-vectors.modifiable' is true"
        )
    if key in _ONLY_TO_TRUE and _is_true(old) and not _is_true(value):
        raise InvalidInputError(f"option {key!r} cannot change from true to {value!r}: rows that it dropped are lost")
    if key == "clustering.columns" and _is_true(options.get("pk-clustering-override")):
        raise InvalidInputError(
            f"option {key!r} cannot be changed: with 'pk-clustering-override' these columns order the rows of files"
        )


def _check_bucket(old: str | None, value: str | None) -> None:
    if value is None:
        raise InvalidInputError("option 'bucket' cannot be removed once the table has data")
    before, after = (_mode_of(text) for text in (old or "-1", value))
    if before != after:
        raise InvalidInputError(
            f"option 'bucket' cannot be changed from {old or -1} to {value} once the table has data: rows "
            f"with {before} are stored differently from rows with {after}. Create a new table and copy the rows"
        )


def _mode_of(text: str) -> str:
    return {"-1": "no fixed buckets (-1)", "-2": "postponed buckets (-2)"}.get(text.strip(), "fixed buckets")


def _is_true(text: str | None) -> bool:
    return (text or "").strip().lower() == "true"
