"""Search the indexes of a data file, in its metadata or in an index file, for rows that match a predicate."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from paimon_core.errors import CorruptedError
from paimon_core.fileindex.index import Found
from paimon_core.fileindex.index_file import read, read_sizes
from paimon_core.fileindex.search import search
from paimon_core.fileio.fileio import join
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.scan import FILE_INDEX_READ_ENABLED
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns
from paimon_core.store.file_store import FileStore

INDEX_SUFFIX = ".index"
_HINT = f"; with option {FILE_INDEX_READ_ENABLED.key!r} = 'false' rows are read without it"


def embedded_rows(store: FileStore, meta: DataFileMeta, p: Predicate) -> Found:
    """Return the rows that may match ``p`` (on the file's columns), by the indexes in the file's metadata only."""
    if meta.embedded_index is None or not store.options.value(FILE_INDEX_READ_ENABLED):
        return True
    return _search(store, meta, p, io.BytesIO(meta.embedded_index), f"the index in the metadata of {meta.file_name}")


def indexed_rows(store: FileStore, path: str, meta: DataFileMeta, p: Predicate) -> Found:
    """Return the rows of the data file at ``path`` that may match ``p`` (on the file's columns), by all its indexes.

    Only the parts of an index file for the columns of ``p`` are read. Raises CorruptedError naming an index that is
    corrupt or missing. Indexes have no checksum: corruption that keeps the structure intact is not detected.
    """
    index_files = index_names(meta)
    if meta.embedded_index is not None or not index_files or not store.options.value(FILE_INDEX_READ_ENABLED):
        return embedded_rows(store, meta, p)
    with _opened(store, path, index_files) as (source, where):
        return _search(store, meta, p, source, where)


def index_names(meta: DataFileMeta) -> list[str]:
    """Return the names of the index files of a data file; the format allows one file, or an index in the metadata."""
    return [name for name in meta.extra_files if name.endswith(INDEX_SUFFIX)]


def index_sizes(store: FileStore, path: str, meta: DataFileMeta) -> tuple[int, dict[str, dict[str, int]]]:
    """Return the bytes of the container of a data file's indexes, and of each index by column and kind (`read_sizes`).

    ``path``: path of the data file. Both are empty if it has no index. Raises CorruptedError naming an index that is
    corrupt or missing.
    """
    if meta.embedded_index is not None:
        where = f"the index in the metadata of {meta.file_name}"
        return len(meta.embedded_index), read_sizes(io.BytesIO(meta.embedded_index), where)
    index_files = index_names(meta)
    if not index_files:
        return 0, {}
    with _opened(store, path, index_files) as (source, where):
        return source.seek(0, 2), read_sizes(source, where)


@contextmanager
def _opened(store: FileStore, path: str, index_files: Sequence[str]) -> Iterator[tuple[BinaryIO, str]]:
    """Open the only index file of the data file at ``path``; yield it with its name for errors."""
    where = join(path.rpartition("/")[0], index_files[0])
    if len(index_files) > 1:
        raise CorruptedError(f"data file {path} has several indexes, {' and '.join(index_files)}{_HINT}")
    try:
        source = store.io.open(where)
    except FileNotFoundError as missing:
        raise CorruptedError(f"file index {where} is missing{_HINT}") from missing
    with source:
        yield source, f"file index {where}"


def _search(store: FileStore, meta: DataFileMeta, p: Predicate, source: BinaryIO, where: str) -> Found:
    fields = store.schemas.get(meta.schema_id).fields
    try:
        return search(read(source, columns(p), where), p, fields, meta.row_count, where)
    except CorruptedError as error:
        raise CorruptedError(f"{error}{_HINT}") from error
