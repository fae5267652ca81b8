"""Options of one column, ``fields.<column>.<option>``: how their keys are taken apart."""

FIELD_OPTIONS = (
    "nested-key-null-strategy",
    "nested-sequence-field",
    "nested-key",
    "aggregate-function",
    "list-agg-delimiter",
    "ignore-retract",
    "sequence-group",
    "default-value",
    "count-limit",
    "stats-mode",
    "distinct",
    "ts-field",
)
"""What may follow ``fields.<column>.``; a column name may hold dots, so the end decides."""

_FIELDS = "fields."


def field_option(column: str, option: str) -> str:
    """The key of an option of one column."""
    return f"{_FIELDS}{column}.{option}"


def split_list(text: str) -> list[str]:
    """The items of a comma list, without surrounding blanks and empty ones."""
    return [item.strip() for item in text.split(",") if item.strip()]


def split_field_option(key: str) -> tuple[list[str], str] | None:
    """``fields.<a>,<b>.<option>`` as (columns, option); None for any other key."""
    if not key.startswith(_FIELDS):
        return None
    for option in FIELD_OPTIONS:
        if key.endswith("." + option) and len(key) > len(_FIELDS) + len(option) + 1:
            return split_list(key[len(_FIELDS) : -len(option) - 1]), option
    return None
