"""Metadata in Avro: whole containers in memory, as manifests and manifest lists are (format 4.1).

Reading follows the schema in the file's own header, fields by name; names of records and namespaces do not matter.
"""

import io
from collections.abc import Iterable
from itertools import islice
from typing import Any

from paimon_core.format.avro_container import BlockDecoder, Container, ContainerWriter, Schema
from paimon_core.format.codec import avro_codec

_BLOCK_RECORDS = 1000


def read_avro(data: bytes, path: str = "") -> tuple[Schema, list[dict[str, Any]]]:
    """The writer's schema and every record of a container; ``path`` names the file in messages.

    Logical types are decoded as fastavro does. Raises CorruptedError when the bytes are no complete Avro container,
    UnsupportedError for an unknown codec.
    """
    container = Container(io.BytesIO(data), path)
    schema = container.header.schema
    try:
        decoder = BlockDecoder(schema)
    except Exception as cause:
        raise container.corrupted(cause) from cause
    return schema, [record for block in container.records(decoder) for record in block]


def write_avro(schema: Schema, records: Iterable[dict[str, Any]], codec: str = "zstd", level: int = 1) -> bytes:
    """A complete container. ``codec`` by Avro's name or the table option's (``zstd``, ``none``)."""
    sink = io.BytesIO()
    writer = ContainerWriter(sink, schema, avro_codec(codec), level)
    source = iter(records)
    while block := list(islice(source, _BLOCK_RECORDS)):
        writer.write(block)
    return sink.getvalue()
