"""The manifest directory: manifest lists, manifests and index manifests, read and written."""

import io
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa

from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.threads import submit
from paimon_core.format.avro_container import ContainerWriter
from paimon_core.format.codec import avro_codec
from paimon_core.manifest.bucket_filter import EntryFilter
from paimon_core.manifest.counters import check_row_ids
from paimon_core.manifest.decode import (
    decode_column_batches,
    decode_entries,
    decode_entry_batches,
    decode_records,
    filtered,
)
from paimon_core.manifest.decoded import MAX_ENTRIES, DecodedFiles
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.partition_stats import partition_stats
from paimon_core.manifest.remembered import RememberedFiles
from paimon_core.manifest.serializers import ENTRY, INDEX_ENTRY, MANIFEST_FILE, RecordType
from paimon_core.manifest.vectorized_decode import EntryColumns
from paimon_core.options.option import Options
from paimon_core.options.snapshot import (
    MANIFEST_COMPRESSION,
    MANIFEST_DELETE_FILE_DROP_STATS,
    MANIFEST_TARGET_FILE_SIZE,
)

T = TypeVar("T")

_BLOCK_RECORDS: Final = 128
_COMPRESSION_LEVEL: Final = 1
_AT_ONCE: Final = 4
"""Files that are written at the same time, whose bytes are in memory."""
_SMALL: Final = 1 << 14
"""Bytes of a manifest that is decoded as a whole: some hundred entries."""


def _kilobytes(entry: ManifestEntry) -> int:
    """Return the size of an entry: about one kilobyte, and its statistics, which grow with the columns."""
    stats = (entry.file.key_stats, entry.file.value_stats)
    return 1 + sum(len(s.min_values) + len(s.max_values) + 8 * len(s.null_counts) for s in stats) // 1024


_DECODED: Final = DecodedFiles[ManifestEntry](kilobytes=_kilobytes)
_DECODED_LISTS: Final = DecodedFiles[ManifestFileMeta]()


class Manifests:
    """A reader and writer of the manifest files of one table. Each file is written once, under a unique name.

    Names are ``<kind>-<uuid>-<n>``. An object calls ``new_name`` for its uuid once, before its first write.
    ``partition_schema`` has the partition columns only. Reads raise CorruptedError for a missing or damaged file.
    ``remembered``: the files that are not read again; `None`: every call reads its file.
    """

    def __init__(
        self,
        io: FileIO,
        directory: str,
        options: Options,
        partition_schema: pa.Schema,
        new_name: Callable[[], str],
        remembered: RememberedFiles | None = None,
    ) -> None:
        self.io, self.directory, self.options, self.partition_schema = io, directory, options, partition_schema
        self._remembered = remembered
        self._new_name = new_name
        self._uuid: str | None = None
        self._written: Counter[str] = Counter()
        self._unfinished: dict[str, Future[None]] | None = None  # by path; `None`: a write returns when it is done

    def path(self, name: str) -> str:
        """Return the path of the file ``name``."""
        return join(self.directory, name)

    def read_list(self, name: str, size: int | None = None) -> list[ManifestFileMeta]:
        """Return the manifests of a manifest list, oldest first. ``size``: its bytes, checked; `None`: unknown."""
        path = self.path(name)
        data = self._load(path, size)
        return _DECODED_LISTS.get(data, True, lambda: decode_records(data, path, MANIFEST_FILE))

    def read(
        self,
        name: str,
        size: int | None = None,
        *,
        with_stats: bool = True,
        lossless: bool = False,
        only: EntryFilter | None = None,
    ) -> list[ManifestEntry]:
        """Return the entries of a manifest, in order.

        Args:
            name: the name of the file.
            size: the bytes of the file in the manifest list, checked; `None`: unknown.
            with_stats: False to leave out key and value statistics, which is faster and smaller.
            lossless: True to raise `decode.UnknownFieldsError` if a rewrite of the entries would lose fields.
            only: a filter of the entries to return; most other entries are not decoded. `None`: all.
        """
        return self.decode(name, self.load(name, size), with_stats=with_stats, lossless=lossless, only=only)

    def load(self, name: str, size: int | None = None) -> bytes:
        """Return the bytes of a manifest as it is stored."""
        return self._load(self.path(name), size)

    def decode(
        self,
        name: str,
        data: bytes,
        *,
        with_stats: bool = True,
        lossless: bool = False,
        only: EntryFilter | None = None,
    ) -> list[ManifestEntry]:
        """Return the entries in the bytes ``data`` of the manifest ``name``. Other arguments as in :meth:`read`.

        A small manifest is decoded as a whole, because the next commits read it again, for these or other buckets.
        """
        if lossless or (only is not None and len(data) > _SMALL):
            return decode_entries(data, self.path(name), with_stats=with_stats, lossless=lossless, only=only)
        entries = _DECODED.get(data, with_stats, lambda: decode_entries(data, self.path(name), with_stats=with_stats))
        return entries if only is None else filtered(entries, only)

    def decode_batches(
        self, meta: ManifestFileMeta, data: bytes, *, with_stats: bool = True, only: EntryFilter | None = None
    ) -> Iterator[list[ManifestEntry]]:
        """Yield the entries in the bytes ``data`` of a manifest, in order. A large manifest is decoded part by part.

        ``only``: a filter of the entries to return; `None`: all.
        """
        if meta.num_added_files + meta.num_deleted_files <= MAX_ENTRIES:
            yield self.decode(meta.file_name, data, with_stats=with_stats, only=only)
            return
        yield from decode_entry_batches(data, self.path(meta.file_name), with_stats=with_stats, only=only)

    def decode_column_batches(
        self,
        meta: ManifestFileMeta,
        data: bytes,
        attributes: Collection[str],
        *,
        with_stats: bool,
        only: EntryFilter | None = None,
        without: Set[str] = frozenset(),
    ) -> Iterator[EntryColumns | list[ManifestEntry]]:
        """Yield the same as :meth:`decode_batches`, as columns of a large manifest where that is possible.

        ``attributes``: the attributes of files that the columns must have. ``without``: the names of files that columns
        must not have.
        """
        if meta.num_added_files + meta.num_deleted_files <= MAX_ENTRIES:
            yield self.decode(meta.file_name, data, with_stats=with_stats, only=only)
            return
        yield from self.decode_columns(
            meta.file_name, data, attributes, with_stats=with_stats, only=only, without=without
        )

    def decode_columns(
        self,
        name: str,
        data: bytes,
        attributes: Collection[str],
        *,
        with_stats: bool = False,
        only: EntryFilter | None = None,
        without: Set[str] = frozenset(),
    ) -> Iterator[EntryColumns | list[ManifestEntry]]:
        """Yield the entries in the bytes ``data`` of a manifest, in order, as columns where that is possible.

        Arguments as in :meth:`decode_column_batches`. Nothing is cached.
        """
        path = self.path(name)
        yield from decode_column_batches(data, path, attributes, with_stats=with_stats, only=only, without=without)

    def read_index(self, name: str) -> list[IndexManifestEntry]:
        """Return the entries of all index files of a snapshot."""
        path = self.path(name)
        return decode_records(self._load(path), path, INDEX_ENTRY)

    def _load(self, path: str, size: int | None = None) -> bytes:
        """Return all bytes of a file. Checks the size: a file that is cut between two blocks would still decode."""
        known = None if self._remembered is None else self._remembered.get(path)
        try:
            data = self.io.read(path) if known is None else known
        except FileNotFoundError as missing:
            raise CorruptedError(
                f"{path} is missing: its snapshot expired while it was read, or the file was deleted"
            ) from missing
        if known is None and self._remembered is not None:
            self._remembered.put(path, data)
        if size is not None and len(data) != size:
            raise CorruptedError(f"{path} has {len(data)} bytes, but {size} were written: it was cut or replaced")
        return data

    def write(self, entries: Iterable[ManifestEntry]) -> list[ManifestFileMeta]:
        """Write entries, in order, to manifests of about the target size. Return the metadata of these manifests.

        Memory: the bytes of one manifest. After an error the written manifests are deleted.
        """
        target = self.options.value(MANIFEST_TARGET_FILE_SIZE)
        written: list[ManifestFileMeta] = []
        source = iter(entries)
        if self.options.value(MANIFEST_DELETE_FILE_DROP_STATS):
            source = map(_deletion_without_stats, source)
        try:
            while block := list(itertools.islice(source, _BLOCK_RECORDS)):
                written.append(self._write_one(block, source, target))
        except BaseException:
            self.delete(meta.file_name for meta in written)
            raise
        return written

    def write_list(self, metas: Sequence[ManifestFileMeta]) -> tuple[str, int]:
        """Write a manifest list. Return its name and its size in bytes."""
        data = self._encode(MANIFEST_FILE, metas)
        return self._store("manifest-list", data), len(data)

    def write_index(self, entries: Sequence[IndexManifestEntry]) -> str:
        """Write an index manifest (all index files of a snapshot). Return its name."""
        return self._store("index-manifest", self._encode(INDEX_ENTRY, entries))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write the files of the block at the same time, if each of them waits for a network: HDFS and object stores.

        At the end of the block all files are complete. Raises the first error of a write, there or at a later write.
        REQUIRES: nothing in the block reads a file that it has written. Memory: `_AT_ONCE` files.
        """
        if not self.io.high_latency:
            yield
            return
        unfinished = self._unfinished = {}
        try:
            yield
            for path in list(unfinished):
                self._finish(path)
        finally:
            self._unfinished = None
            for future in unfinished.values():  # after an error
                future.exception()

    def delete(self, names: Iterable[str]) -> None:
        """Delete files of this directory. Missing files are ignored."""
        for path in map(self.path, names):
            if self._unfinished is not None and path in self._unfinished:
                self._unfinished[path].exception()  # a file that is deleted first would come back
                del self._unfinished[path]
            if self._remembered is not None:
                self._remembered.forget(path)
            self.io.delete(path)

    def _write_one(self, block: list[ManifestEntry], source: Iterator[ManifestEntry], target: int) -> ManifestFileMeta:
        sink = io.BytesIO()
        writer = self._writer(sink, ENTRY)
        summary = _Summary()
        while block:
            writer.write([ENTRY.to_record(entry) for entry in block])
            summary.add(block)
            if writer.written >= target:
                break
            block = list(itertools.islice(source, _BLOCK_RECORDS))
        data = sink.getvalue()
        return summary.meta(self._store("manifest", data), len(data), self.partition_schema)

    def _encode(self, kind: RecordType[T], values: Iterable[T]) -> bytes:
        sink = io.BytesIO()
        writer = self._writer(sink, kind)
        records = map(kind.to_record, values)
        while block := list(itertools.islice(records, _BLOCK_RECORDS)):
            writer.write(block)
        return sink.getvalue()

    def _writer(self, sink: io.BytesIO, kind: RecordType[Any]) -> ContainerWriter:
        codec = avro_codec(self.options.value(MANIFEST_COMPRESSION))
        return ContainerWriter(sink, kind.schema, codec, _COMPRESSION_LEVEL)

    def _store(self, kind: str, data: bytes) -> str:
        if self._uuid is None:
            self._uuid = self._new_name()
        name = f"{kind}-{self._uuid}-{self._written[kind]}"
        self._written[kind] += 1
        path = self.path(name)
        if self._unfinished is None:
            self._put(path, data)
            return name
        if len(self._unfinished) == _AT_ONCE:
            self._finish(next(iter(self._unfinished)))
        self._unfinished[path] = submit(partial(copy_context().run, self._put, path, data))
        return name

    def _put(self, path: str, data: bytes) -> None:
        self.io.write(path, data)
        if self._remembered is not None:
            self._remembered.put(path, data)

    def _finish(self, path: str) -> None:
        """Wait for a file that is being written. Raises the error of the write."""
        assert self._unfinished is not None
        self._unfinished[path].result()
        del self._unfinished[path]


def _deletion_without_stats(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, file=entry.file.without_stats()) if entry.kind == DELETE else entry


class _Summary:
    """The metadata of a manifest, collected while the manifest is written."""

    def __init__(self) -> None:
        self.added = self.deleted = 0
        self.schema_id = 0
        self.partitions: Counter[bytes] = Counter()
        self.buckets: set[int] = set()
        self.levels: set[int] = set()
        self.row_ids: tuple[int, int] | None = None
        self.every_row_has_id = True

    def add(self, block: Sequence[ManifestEntry]) -> None:
        added = sum(entry.kind == ADD for entry in block)
        self.added += added
        self.deleted += len(block) - added
        self.schema_id = max(self.schema_id, max(entry.file.schema_id for entry in block))
        self.partitions.update([entry.partition for entry in block])
        self.buckets.update([entry.bucket for entry in block])
        self.levels.update([entry.file.level for entry in block])
        for entry in block:
            first = entry.file.first_row_id
            if first is None:
                self.every_row_has_id = False
            else:
                check_row_ids(first, entry.file.row_count, entry.file.file_name)
                low, high = self.row_ids or (first, first)
                self.row_ids = min(low, first), max(high, first + entry.file.row_count - 1)

    def meta(self, name: str, size: int, partition_schema: pa.Schema) -> ManifestFileMeta:
        low, high = self.row_ids if self.row_ids and self.every_row_has_id else (None, None)
        return ManifestFileMeta(
            name,
            size,
            self.added,
            self.deleted,
            partition_stats(self.partitions, partition_schema),
            self.schema_id,
            min(self.buckets),
            max(self.buckets),
            min(self.levels),
            max(self.levels),
            low,
            high,
        )
