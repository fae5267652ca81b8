"""Parsing of JSON that other engines and servers write: any text is a value or a ValueError."""

import json
from typing import Any


def parse_json(data: bytes | str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError for other texts, for a text nested too deeply, and for half of a surrogate pair, which no file of
    UTF-8 can hold.
    """
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value


def parse_object(data: bytes | str) -> dict[str, Any]:
    """Return the object of a JSON text. Raises ValueError as `parse_json`, and for another value than an object."""
    value = parse_json(data)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {type(value).__name__}")
    return value


def optional_text(value: object, name: str) -> str | None:
    """Return a value of a JSON object that is a text or absent. Raises ValueError naming it for another value."""
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{name!r} must be a text, found {value!r}")


def text_map(value: object, name: str) -> dict[str, str]:
    """Return the texts of an object by name, with numbers and booleans as texts; `None` is an empty object.

    Raises ValueError naming it for another value than an object.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{name!r} must be an object, found {value!r}")
    return {str(key): str(one) for key, one in value.items()}
