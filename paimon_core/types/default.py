"""The default of a column: the text in the schema as a value of the column's type.

A default of an array is ``[1, 2]`` or ``ARRAY(1, 2)``, a default of a map ``{a -> 1}`` or ``MAP(a, 1)``, with texts as
they are: no quotes, and ``null`` for NULL.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import to_arrow
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import ArrayType, AtomicType, DataField, DataType, MapType, with_nullable

_TEXT: Final = AtomicType("VARCHAR", True, 2147483647)
_LIST: Final = re.compile(r"\s*\[(.*)\]\s*", re.DOTALL)
_LIST_CALL: Final = re.compile(r"\s*ARRAY\s*\((.*)\)\s*", re.DOTALL | re.IGNORECASE)
_ENTRIES: Final = re.compile(r"\s*\{(.*)\}\s*", re.DOTALL)
_ENTRIES_CALL: Final = re.compile(r"\s*MAP\s*\((.*)\)\s*", re.DOTALL | re.IGNORECASE)
_ENTRY: Final = re.compile(r"(.+?)\s*->\s*(.+)", re.DOTALL)
_NULL: Final = "null"


@lru_cache(maxsize=256)
def default_value(field: DataField) -> pa.Scalar:
    """Return the default of a column as a value of its type. REQUIRES: it has a default.

    Raises InvalidInputError for a text that is not a value of the type, and as `cast_array`.
    """
    kind = with_nullable(field.type, True)
    try:
        (field.default or "").encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"column {field.name!r} has the default {field.default!r}, which is not Unicode"
        ) from error
    if isinstance(kind, ArrayType | MapType):
        return pa.scalar(_nested(field.default or "", kind), to_arrow(kind))
    return cast_array(pa.array([unquoted(field.default or "")], pa.string()), _TEXT, kind)[0]


def unquoted(text: str) -> str:
    """Return a default without the quotes of a SQL literal, with which Paimon's connector for Spark stores it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def list_text(items: Sequence[str | None]) -> str:
    """Return the default for an array with these items, as every engine reads it.

    Raises InvalidInputError for an item that has no text of its own among others, such as ``a, b``.
    """
    return f"[{', '.join(map(_item, items))}]"


def map_text(entries: Sequence[tuple[str | None, str | None]]) -> str:
    """Return the default for a map with these entries. Raises as `list_text`."""
    return "{" + ", ".join(f"{_item(key)} -> {_item(value)}" for key, value in entries) + "}"


def list_items(text: str) -> list[str | None]:
    """Return the items of a default for an array as texts. Raises InvalidInputError for another form."""
    match, call = _LIST.fullmatch(text), _LIST_CALL.fullmatch(text)
    if match is None and call is None:
        raise InvalidInputError(f"{text!r} is not an array: write [1, 2] or ARRAY(1, 2)")
    return [_read(item, text, call=match is None) for item in _split((match or call)[1], text)]  # type: ignore[index]


def map_entries(text: str) -> list[tuple[str | None, str | None]]:
    """Return the entries of a default for a map as texts. Raises InvalidInputError for another form."""
    match, call = _ENTRIES.fullmatch(text), _ENTRIES_CALL.fullmatch(text)
    if match is not None:
        pairs = [_ENTRY.fullmatch(item) for item in _split(match[1], text)]
        if all(pair is not None for pair in pairs):
            return [(_read(p[1], text), _read(p[2], text)) for p in pairs if p is not None]
    elif call is not None:
        items = [_read(item, text, call=True) for item in _split(call[1], text)]
        if len(items) % 2 == 0:
            return list(zip(items[::2], items[1::2], strict=True))
    raise InvalidInputError(f"{text!r} is not a map: write {{a -> 1, b -> 2}} or MAP(a, 1, b, 2)")


def _nested(text: str | None, kind: DataType) -> Any:
    """Return the Python value of a text; a map as a list of its entries."""
    if text is None:
        return None
    if isinstance(kind, ArrayType):
        return [_nested(item, kind.element) for item in list_items(text)]
    if isinstance(kind, MapType):
        entries = map_entries(text)
        if any(key is None for key, _ in entries) or len({key for key, _ in entries}) < len(entries):
            raise InvalidInputError(f"{text!r} has a key that is NULL or occurs twice")
        return [(_nested(key, kind.key), _nested(value, kind.value)) for key, value in entries]
    return cast_array(pa.array([text], pa.string()), _TEXT, with_nullable(kind, True))[0].as_py()


def _split(content: str, text: str) -> list[str]:
    """Return the items between commas that are not in brackets. Raises InvalidInputError for quotes and escapes."""
    if '"' in content or "\\" in content:
        raise InvalidInputError(f"{text!r} has double quotes or backslashes, which engines read in different ways")
    items, depth = [""], 0
    for character in content:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    items = [item.strip() for item in items]
    if items == [""]:
        return []
    if "" in items:
        raise InvalidInputError(f"{text!r} has an empty item, which engines read in different ways")
    return items


def _read(item: str, text: str, *, call: bool = False) -> str | None:
    if call and item.startswith("'"):
        raise InvalidInputError(f"{text!r} has quotes, which some engines make part of the values: leave them out")
    return None if item == _NULL else item


def _item(item: str | None) -> str:
    if item is None:
        return _NULL
    special = any(character in item for character in '()[]{}"\\,') or "->" in item
    if special or not item.strip() or item != item.strip() or item.lower() == _NULL:
        raise InvalidInputError(
            f"the text {item!r} cannot be an item of a default: it is empty, 'null', has blanks around it, or has one "
            'of ( ) [ ] { } " \\ , ->'
        )
    return item
