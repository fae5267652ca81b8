"""The decoding of metadata files: bytes to entries and other values, or an error that names the file."""

import io
import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeVar

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format.avro_columns import NotVectorizableError
from paimon_core.format.avro_container import MAGIC, BlockDecoder, Container, check_bounded
from paimon_core.manifest.bucket_filter import EntryFilter
from paimon_core.manifest.columnar_formats import read_columnar_records
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.serializers import ENTRY, RecordType, plain, unknown_fields
from paimon_core.manifest.vectorized_decode import EntryColumns, decode_entry_blocks, decode_entry_columns

_BLOCKS_AT_ONCE: Final = 192  # fewer blocks are slower to decode, more blocks take more memory
_MIN_SIZE_BOUND: Final = 256 << 20  # bytes
_MAX_COMPRESSION: Final = 4000  # statistics of 10 000 columns that are all NULL: 200 kB in 73 bytes of the file
_MIN_RECORDS_BOUND: Final = 1000
_MAX_RECORDS_PER_BYTE: Final = 1  # names that differ in a counter only take three bytes, and their entries 1 kB
_MIN_ENTRIES: Final = 64  # entries from which decoding them at once is faster, if their starts can be guessed
_MIN_BLOCKS: Final = 16  # blocks of full size from which decoding them side by side is faster

T = TypeVar("T")
Record = Mapping[str, Any]
Block = tuple[int, bytes]


class UnknownFieldsError(UnsupportedError):
    """An error for a file with fields of a newer version: a rewrite by this engine would lose these fields."""


def decode_records(data: bytes, path: str, kind: RecordType[T]) -> list[T]:
    """Return the value of every record of the file.

    Raises CorruptedError for bytes that cannot be decoded, UnsupportedError for records of another version.
    """
    records = read_columnar_records(data, path)
    if records is not None:
        return _columnar(records, path, kind)
    container = _container(data, path)
    return _one_by_one(container, list(container.blocks()), path, kind)


def decode_entries(
    data: bytes, path: str, *, with_stats: bool = True, lossless: bool = False, only: EntryFilter | None = None
) -> list[ManifestEntry]:
    """Return the entries of a manifest, in order. The arguments are the same as for `decode_entry_batches`."""
    batches = decode_entry_batches(data, path, with_stats=with_stats, lossless=lossless, only=only)
    return list(itertools.chain.from_iterable(batches))


def decode_entry_batches(
    data: bytes,
    path: str,
    *,
    with_stats: bool = True,
    lossless: bool = False,
    only: EntryFilter | None = None,
) -> Iterator[list[ManifestEntry]]:
    """Yield the entries of a manifest, in order, some thousands at a time.

    Args:
        data: the bytes of the file.
        path: the path of the file, for error messages.
        with_stats: False to leave out key and value statistics, which is faster.
        lossless: True to raise UnknownFieldsError if the file has fields that entries cannot hold.
        only: a filter of the entries to return; `None`: all. Blocks without one of its byte patterns are decompressed,
            but not decoded.
    """
    records = read_columnar_records(data, path)
    if records is not None:
        if lossless:
            raise UnknownFieldsError(f"{path} is not an Avro file; it can only be read")
        yield _filtered(_columnar(records, path, ENTRY), with_stats, only)
        return
    container, schema, batches = _block_batches(data, path, lossless, only)
    for batch in batches:
        yield _entries(container, batch, path, schema, with_stats, only)


def decode_column_batches(
    data: bytes,
    path: str,
    attributes: Collection[str],
    *,
    with_stats: bool,
    only: EntryFilter | None = None,
    without: Set[str] = frozenset(),
) -> Iterator[EntryColumns | list[ManifestEntry]]:
    """Yield the entries of a manifest as columns where that is possible, and as entries elsewhere.

    Args:
        data: the bytes of the file.
        path: the path of the file, for error messages.
        attributes: the attributes of files that the columns must have; see `decode_entry_columns`.
        with_stats: False to leave out statistics of entries.
        only: a filter of the entries to return; `None`: all.
        without: the names of files that columns must not have.
    """
    if not data.startswith(MAGIC):
        yield from decode_entry_batches(data, path, with_stats=with_stats, only=only)
        return
    container, schema, batches = _block_batches(data, path, False, only)
    for batch in batches:
        columns: EntryColumns | None = None
        if _are_many(batch):
            with suppress(NotVectorizableError, KeyError, TypeError, ValueError):
                columns = decode_entry_columns(schema, batch, attributes, only, in_steps=_in_steps(batch))
                if without and not without.isdisjoint(columns.values("file_name")):
                    columns = None
        yield _entries(container, batch, path, schema, with_stats, only) if columns is None else columns


def _block_batches(
    data: bytes, path: str, lossless: bool, only: EntryFilter | None
) -> tuple[Container, Any, Iterator[list[Block]]]:
    """Return the container of a manifest, the schema of its entries, and its blocks in lists to decode together."""
    container = _container(data, path)
    try:
        schema = _schema(container.header.text)
    except Exception as cause:
        raise container.corrupted(cause) from cause
    if lossless and (lost := unknown_fields(schema, ENTRY.schema)):
        raise UnknownFieldsError(f"{path} has fields unknown to this engine: {', '.join(lost)}; it can only be read")
    blocks = container.blocks()
    if only is not None:
        blocks = _blocks_with(blocks, only.byte_patterns(schema))
    return container, schema, _batches(blocks, _BLOCKS_AT_ONCE)


def _are_many(blocks: Sequence[Block]) -> bool:
    """Return True if blocks have enough entries for the vectorised decoder."""
    return sum(count for count, _ in blocks) >= _MIN_ENTRIES or _in_steps(blocks)


def _in_steps(blocks: Sequence[Block]) -> bool:
    """Return True if there are enough blocks for the vectorised decoder, should it not guess where entries start."""
    return sum(count for count, _ in blocks) >= _MIN_BLOCKS * max(count for count, _ in blocks)


def _batches(blocks: Iterator[Block], size: int) -> Iterator[list[Block]]:
    """Yield the blocks in lists of ``size``. The last blocks join the list before them if they are few."""
    batch = list(itertools.islice(blocks, size))
    while batch:
        following = list(itertools.islice(blocks, _MIN_BLOCKS))
        if len(following) < _MIN_BLOCKS:
            yield [*batch, *following]
            return
        yield batch
        batch = [*following, *itertools.islice(blocks, size - _MIN_BLOCKS)]


def _blocks_with(blocks: Iterator[Block], patterns: Sequence[bytes] | None) -> Iterator[Block]:
    """Return the blocks that contain one of the byte patterns. ``patterns``: `None`: all blocks."""
    if patterns is None:
        return blocks
    return (block for block in blocks if any(pattern in block[1] for pattern in patterns))


def _container(data: bytes, path: str) -> Container:
    """Return the Avro container of a file, with bounds that only a forged file exceeds.

    They limit its decompressed bytes, and its records: an entry of few bytes is an object of many.
    """
    size, records = max(_MIN_SIZE_BOUND, _MAX_COMPRESSION * len(data)), _MAX_RECORDS_PER_BYTE * len(data)
    return Container(io.BytesIO(data), path, size, max(_MIN_RECORDS_BOUND, records))


def _entries(
    container: Container, blocks: Sequence[Block], path: str, schema: Any, with_stats: bool, only: EntryFilter | None
) -> list[ManifestEntry]:
    if _are_many(blocks):
        try:
            steps = _in_steps(blocks)
            return decode_entry_blocks(schema, blocks, with_stats=with_stats, only=only, in_steps=steps)
        except (NotVectorizableError, KeyError, TypeError, ValueError):
            pass  # decoding one by one finds the error, if there is one
    return _filtered(_one_by_one(container, blocks, path, ENTRY), with_stats, only)


def filtered(entries: list[ManifestEntry], only: EntryFilter) -> list[ManifestEntry]:
    """Return the entries that a filter accepts, in order."""
    accepted = only.accepted({entry.bucket_ref for entry in entries})
    return [entry for entry in entries if (entry.partition, entry.bucket) in accepted]


def _filtered(entries: list[ManifestEntry], with_stats: bool, only: EntryFilter | None) -> list[ManifestEntry]:
    if only is not None:
        entries = filtered(entries, only)
    return entries if with_stats else [replace(entry, file=entry.file.without_stats()) for entry in entries]


def _columnar(records: Sequence[Record], path: str, kind: RecordType[T]) -> list[T]:
    try:
        _check_version(records, path, kind.version)
        return list(map(kind.from_record, records))
    except (KeyError, TypeError) as cause:
        raise CorruptedError(f"{path} lacks a field of every metadata file: {cause}") from cause
    except ValueError as cause:
        raise CorruptedError(f"{path} is damaged: {cause}") from cause


def _check_version(records: Sequence[Record], path: str, version: int | None) -> None:
    versions = {record["_VERSION"] for record in records} - {version}
    if versions:
        raise UnsupportedError(f"{path} has version {min(versions)}; this engine reads version {version} only")


@lru_cache(maxsize=64)
def _schema(text: bytes) -> Any:
    """Return the schema of a file without logical types. For a small file, parsing the schema is most of the work.

    Raises ValueError for unbounded records: records that contain themselves, or lists of items without bytes.
    """
    schema = plain(json.loads(text))
    check_bounded(schema)
    return schema


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
