"""Metadata in Avro: whole containers in memory, as manifests and manifest lists are (format.md 4.1).

Reading follows the schema in the file's own header, fields by name, whatever records and namespaces are called.
"""

import io
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any

import fastavro

from paimon_core.format.codec import avro_codec
from paimon_core.format.container import BlockDecoder, Container, ContainerWriter, Schema

_BLOCK_RECORDS = 1000


def read_avro(data: bytes, path: str = "", skip: Collection[str] = ()) -> tuple[Schema, list[dict[str, Any]]]:
    """The writer's schema and every record of a container.

    ``path`` names the file in messages; ``skip`` names fields, at any depth, that need not be decoded (they are then
    missing from the records; a hint, not a promise). Logical types are decoded as fastavro does.
    Raises CorruptedError when the bytes are no complete Avro container, UnsupportedError for an unknown codec.
    """
    container = Container(io.BytesIO(data), path)
    schema = container.header.schema
    decoder = _decoder(container, schema, skip)
    records: list[dict[str, Any]] = []
    for block in container.records(decoder):
        records += block
    return schema, records


def write_avro(schema: Schema, records: Iterable[dict[str, Any]], codec: str = "zstd", level: int = 1) -> bytes:
    """A complete container. ``codec`` by Avro's name or the table option's (``zstd``, ``none``)."""
    sink = io.BytesIO()
    writer = ContainerWriter(sink, schema, avro_codec(codec), level)
    source = iter(records)
    while block := list(islice(source, _BLOCK_RECORDS)):
        writer.write(block)
    return sink.getvalue()


def _decoder(container: Container, schema: Schema, skip: Collection[str]) -> BlockDecoder:
    try:
        if skip:
            try:
                return BlockDecoder(schema, _without(schema, skip))
            except fastavro.schema.UnknownType:  # a skipped field held the definition of a type used elsewhere
                pass
        return BlockDecoder(schema)
    except Exception as cause:
        raise container.corrupted(cause) from cause


def _without(schema: Schema, names: Collection[str]) -> Schema:
    if isinstance(schema, list):
        return [_without(branch, names) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "record":
        kept = [f for f in schema["fields"] if f["name"] not in names]
        return {**schema, "fields": [{**f, "type": _without(f["type"], names)} for f in kept]}
    return {k: _without(v, names) if k in ("type", "items", "values") else v for k, v in schema.items()}
