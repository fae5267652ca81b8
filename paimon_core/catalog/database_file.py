"""The file ``.database`` in the directory of a database: its properties as JSON, or an empty file.

The Java engine takes only directories for tables, and ignores the file.
"""

import json
from collections.abc import Mapping

from paimon_core.errors import CorruptedError
from paimon_core.types.json_text import parse_object, text_map


def write_properties(properties: Mapping[str, str]) -> bytes:
    """Return the bytes of the file. Without properties, the file is empty."""
    return json.dumps({"properties": dict(properties)}, indent=2).encode() if properties else b""


def read_properties(data: bytes, path: str) -> dict[str, str]:
    """Return the properties in the bytes of the file at ``path``. Raises CorruptedError."""
    if not data.strip():
        return {}
    try:
        return text_map(parse_object(data)["properties"], "properties")
    except (ValueError, KeyError) as error:
        raise CorruptedError(f"database file {path} cannot be read: {type(error).__name__}: {error}") from error
