"""What the indexes of a data file, in its metadata or beside it, say of a predicate."""

import io

from paimon_core.errors import CorruptedError
from paimon_core.fileindex.index import Found
from paimon_core.fileindex.index_file import read
from paimon_core.fileindex.search import search
from paimon_core.fileio.fileio import join
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.scan import FILE_INDEX_READ_ENABLED
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns
from paimon_core.store.file_store import FileStore

_SUFFIX = ".index"
_WAY_OUT = f"; with option {FILE_INDEX_READ_ENABLED.key!r} = 'false' rows are read without it"


def embedded_rows(store: FileStore, meta: DataFileMeta, p: Predicate) -> Found:
    """Which rows of a data file may match ``p`` (on the columns of the file), by the indexes in its metadata alone."""
    if meta.embedded_index is None or not store.options.value(FILE_INDEX_READ_ENABLED):
        return True
    return _search(store, meta, p, io.BytesIO(meta.embedded_index), f"the index in the metadata of {meta.file_name}")


def indexed_rows(store: FileStore, path: str, meta: DataFileMeta, p: Predicate) -> Found:
    """Which rows of the data file at ``path`` may match ``p`` (on the columns of the file), by all its indexes.

    Reads of a file beside what concerns the columns of ``p``. Raises CorruptedError naming an index that is damaged or
    missing; no index has a checksum, so what still looks like one is believed.
    """
    beside = [name for name in meta.extra_files if name.endswith(_SUFFIX)]
    if meta.embedded_index is not None or not beside or not store.options.value(FILE_INDEX_READ_ENABLED):
        return embedded_rows(store, meta, p)
    where = join(path.rpartition("/")[0], beside[0])
    if len(beside) > 1:
        raise CorruptedError(f"data file {path} has several indexes, {' and '.join(beside)}{_WAY_OUT}")
    try:
        source = store.io.open(where)
    except FileNotFoundError as missing:
        raise CorruptedError(f"file index {where} is missing{_WAY_OUT}") from missing
    with source:
        return _search(store, meta, p, source, f"file index {where}")


def _search(store: FileStore, meta: DataFileMeta, p: Predicate, source: io.BytesIO, where: str) -> Found:
    fields = store.schemas.get(meta.schema_id).fields
    try:
        return search(read(source, columns(p), where), p, fields, meta.row_count, where)
    except CorruptedError as error:
        raise CorruptedError(f"{error}{_WAY_OUT}") from error
