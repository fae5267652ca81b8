"""Bytes of a metadata file -> records of this engine; anything else is refused, naming the file."""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format.container import BlockDecoder, Container
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.records import (
    MANIFEST_SCHEMA,
    MANIFEST_VERSION,
    STATS_FIELDS,
    entry_of,
    plain,
    unknown_fields,
)

__all__ = ["UnknownFieldsError", "decode_entries", "decode_records"]

T = TypeVar("T")
Record = Mapping[str, Any]


class UnknownFieldsError(UnsupportedError):
    """The file has fields of a newer version: it can be read, but not rewritten without losing them."""


def decode_records(data: bytes, path: str, version: int, value_of: Callable[[Record], T]) -> list[T]:
    """Every record of the container as ``value_of`` makes it.

    Raises CorruptedError for bytes that are no such file, UnsupportedError for records of another ``version``.
    """
    container = Container(io.BytesIO(data), path)
    schema = plain(container.header.schema)
    try:
        decoder = BlockDecoder(schema)
    except Exception as cause:
        raise container.corrupted(cause) from cause
    values: list[T] = []
    for block in container.records(decoder):
        values += _values(container, block, path, version, value_of)
    return values


def decode_entries(data: bytes, path: str, *, with_stats: bool = True, lossless: bool = False) -> list[ManifestEntry]:
    """The entries of a manifest.

    Without statistics decoding is faster and the entries say that they have none. ``lossless`` raises
    UnknownFieldsError when the file says more than entries can hold.
    """
    container = Container(io.BytesIO(data), path)
    schema = plain(container.header.schema)
    if lossless and (lost := unknown_fields(schema, MANIFEST_SCHEMA)):
        raise UnknownFieldsError(f"{path} has fields unknown to this engine: {', '.join(lost)}; it can only be read")
    return decode_records(data, path, MANIFEST_VERSION, entry_of)


def _values(
    container: Container, block: list[Any], path: str, version: int, value_of: Callable[[Record], T]
) -> list[T]:
    try:
        for record in block:
            if record["_VERSION"] != version:
                found = record["_VERSION"]
                raise UnsupportedError(f"{path} has version {found}; this engine reads version {version} only")
        return [value_of(record) for record in block]
    except (KeyError, TypeError, AttributeError) as cause:
        raise container.corrupted(cause) from cause
