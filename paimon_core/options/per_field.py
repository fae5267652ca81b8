"""Keys of options of one column, ``fields.<column>.<option>``."""

FIELD_OPTIONS = (
    "nested-key-null-strategy", "nested-sequence-field", "nested-key", "aggregate-function", "list-agg-delimiter",
    "ignore-retract", "sequence-group", "default-value", "count-limit", "stats-mode", "distinct", "ts-field",
)  # fmt: skip
"""The options of a column. A column name may contain dots, so the end of a key identifies its option."""

_FIELDS = "fields."


def field_option(column: str, option: str) -> str:
    """Return the key of an option of one column."""
    return f"{_FIELDS}{column}.{option}"


def split_list(text: str) -> list[str]:
    """Return the items of a comma-separated list, without surrounding blanks and empty items."""
    return [item.strip() for item in text.split(",") if item.strip()]


def split_field_option(key: str) -> tuple[list[str], str] | None:
    """Split ``fields.<a>,<b>.<option>`` into columns and option; `None` for any other key."""
    if not key.startswith(_FIELDS):
        return None
    for option in FIELD_OPTIONS:
        if key.endswith("." + option) and len(key) > len(_FIELDS) + len(option) + 1:
            return split_list(key[len(_FIELDS) : -len(option) - 1]), option
    return None
