"""Bytes of a metadata file -> records of this engine; anything else is refused, naming the file."""

import io
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeVar

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format.avro_columns import NotVectorizableError
from paimon_core.format.avro_container import BlockDecoder, Container
from paimon_core.manifest.bucket_filter import BucketFilter
from paimon_core.manifest.columnar_formats import read_columnar_records
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.serializers import ENTRY, RecordType, plain, unknown_fields
from paimon_core.manifest.vectorized_decode import decode_entry_blocks

_LANES: Final = 256  # blocks decoded at once: fewer are slower, more take more memory
_LEAST_BOUND: Final = 256 << 20
_MOST_PACKED: Final = 200  # names of files are random: metadata never become so much smaller, but when made to
_MIN_LANES: Final = 24  # mean number of blocks in step from which decoding them side by side is faster

T = TypeVar("T")
Record = Mapping[str, Any]
Block = tuple[int, bytes]


class UnknownFieldsError(UnsupportedError):
    """The file has fields of a newer version: it can be read, but not rewritten without losing them."""


def decode_records(data: bytes, path: str, kind: RecordType[T]) -> list[T]:
    """Return the value of every record of the file.

    Raises CorruptedError for bytes that are no such file, UnsupportedError for records of another version.
    """
    records = read_columnar_records(data, path)
    if records is not None:
        return _columnar(records, path, kind)
    container = _container(data, path)
    return _one_by_one(container, list(container.blocks()), path, kind)


def decode_entries(
    data: bytes, path: str, *, with_stats: bool = True, lossless: bool = False, only: BucketFilter | None = None
) -> list[ManifestEntry]:
    """Return the entries of a manifest, in order: all, or those of the places in ``only``.

    Without statistics decoding is faster and the entries say that they have none. ``lossless`` raises
    UnknownFieldsError when the file says more than entries can hold. Blocks that hold no entry of ``only`` are
    decompressed and not decoded.
    """
    records = read_columnar_records(data, path)
    if records is not None:
        if lossless:
            raise UnknownFieldsError(f"{path} is no Avro file; it can only be read")
        return _chosen(_columnar(records, path, ENTRY), with_stats, only)
    container = _container(data, path)
    try:
        schema = _schema(container.header.text)
    except Exception as cause:
        raise container.corrupted(cause) from cause
    if lossless and (lost := unknown_fields(schema, ENTRY.schema)):
        raise UnknownFieldsError(f"{path} has fields unknown to this engine: {', '.join(lost)}; it can only be read")
    entries: list[ManifestEntry] = []
    blocks = container.blocks()
    if only is not None:
        blocks = _holding(blocks, only.marks(schema))
    while some := list(itertools.islice(blocks, _LANES)):
        entries += _entries(container, some, path, schema, with_stats, only)
    return entries


def _holding(blocks: Iterator[Block], marks: Sequence[bytes] | None) -> Iterator[Block]:
    """Return the blocks that contain one of the marks; all where there are no marks to look for."""
    if marks is None:
        return blocks
    return (block for block in blocks if any(mark in block[1] for mark in marks))


def _container(data: bytes, path: str) -> Container:
    """The file, which must not decompress to much more than metadata do."""
    return Container(io.BytesIO(data), path, max(_LEAST_BOUND, _MOST_PACKED * len(data)))


def _entries(
    container: Container, blocks: Sequence[Block], path: str, schema: Any, with_stats: bool, only: BucketFilter | None
) -> list[ManifestEntry]:
    if sum(count for count, _ in blocks) >= _MIN_LANES * max(count for count, _ in blocks):
        try:
            return decode_entry_blocks(schema, blocks, with_stats=with_stats, only=only)
        except (NotVectorizableError, KeyError, TypeError, ValueError):
            pass  # whatever is wrong, if anything, the plain way finds out
    return _chosen(_one_by_one(container, blocks, path, ENTRY), with_stats, only)


def _chosen(entries: list[ManifestEntry], with_stats: bool, only: BucketFilter | None) -> list[ManifestEntry]:
    if only is not None:
        entries = [entry for entry in entries if only.holds(entry.partition, entry.bucket)]
    return entries if with_stats else list(map(_bare, entries))


def _bare(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, file=entry.file.without_stats())


def _columnar(records: Sequence[Record], path: str, kind: RecordType[T]) -> list[T]:
    try:
        _check_version(records, path, kind.version)
        return list(map(kind.from_record, records))
    except (KeyError, TypeError) as cause:
        raise CorruptedError(f"{path} lacks a field of every metadata file: {cause}") from cause
    except ValueError as cause:
        raise CorruptedError(f"{path} is damaged: {cause}") from cause


def _check_version(records: Sequence[Record], path: str, version: int | None) -> None:
    found = {record["_VERSION"] for record in records} - {version}
    if found:
        raise UnsupportedError(f"{path} has version {min(found)}; this engine reads version {version} only")


@lru_cache(maxsize=64)
def _schema(text: bytes) -> Any:
    """A file's schema without logical types; of a small file making sense of it is most of the work.

    Raises ValueError for one whose records have no end: they hold themselves, or lists of items without bytes.
    """
    schema = plain(json.loads(text))
    _has_bytes(schema, {})
    return schema


def _has_bytes(schema: Any, known: dict[str, bool | None]) -> bool:
    """Return True if every value of this schema takes at least a byte; ``known``: the answers by name of a type."""
    if isinstance(schema, list):
        for branch in schema:
            _has_bytes(branch, known)
        return True
    if isinstance(schema, str):
        schema = schema.rpartition(".")[2]
        if schema in known and known[schema] is None:
            raise ValueError(f"a record {schema!r} that holds itself")
        return schema != "null" and bool(known.get(schema, True))
    match schema.get("type"):
        case "record":
            name = schema["name"].rpartition(".")[2]
            known[name] = None
            fields = [_has_bytes(field["type"], known) for field in schema["fields"]]
            known[name] = any(fields)
            return any(fields)
        case "array" | "map" as kind:
            if not _has_bytes(schema["items" if kind == "array" else "values"], known) and kind == "array":
                raise ValueError("a list of items without bytes")
            return True
        case "fixed":
            return bool(schema["size"])
        case "enum":
            return True
        case inner:
            return _has_bytes(inner, known)


@lru_cache(maxsize=64)
def _decoder(text: bytes) -> BlockDecoder:
    return BlockDecoder(_schema(text))


def _one_by_one(container: Container, blocks: Sequence[Block], path: str, kind: RecordType[T]) -> list[T]:
    try:
        decoder = _decoder(container.header.text)
        values: list[T] = []
        for count, content in blocks:
            records = decoder.decode(count, content)
            _check_version(records, path, kind.version)
            values += map(kind.from_record, records)
    except UnsupportedError:
        raise
    except Exception as cause:
        raise container.corrupted(cause) from cause
    return values
