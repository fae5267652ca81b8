"""The managed blobs of one bucket of a table with a primary key: rows get descriptors in place of their blobs.

Blobs are written before rows are sorted and merged, so merges and compactions move only descriptors. The files of blobs
are never rewritten. The removal of orphan files deletes a file that no row needs (`blobs_in_use`).
"""

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.datafile.blob_references import MANAGED_BLOB
from paimon_core.datafile.spec import target_size
from paimon_core.fileio.fileio import join
from paimon_core.format.blob_descriptor import begins_as_descriptor, described, descriptors
from paimon_core.format.blob_records import FRAME, HEAD, BlobFileWriter, values_to_reach
from paimon_core.manifest.bucket import BucketRef
from paimon_core.options.file import BLOB_TARGET_FILE_SIZE, DATA_FILE_PREFIX
from paimon_core.read.blobs import elements, read_parts, with_elements
from paimon_core.schema.blob_columns import in_managed_files
from paimon_core.store.external_paths import is_inside
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import AtomicType, DataField
from paimon_core.types.row_kind import is_retract

_BLOB = DataField(0, "blob", AtomicType("BLOB"))


class ManagedBlobs:
    """A writer of the blobs of one bucket. Each column has files of its own, which end at ``blob.target-file-size``.

    Memory: the blobs of the rows given, and a few bytes for each blob of the open files.

    Args:
        store: the table to write.
        bucket: the bucket to write to.
    """

    def __init__(self, store: FileStore, bucket: BucketRef) -> None:
        self._store, self._bucket = store, bucket
        self._packs = {name: _Packs(store, bucket) for name in sorted(in_managed_files(store.schema))}

    def stored(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.RecordBatch:
        """Return the rows with descriptors of their blobs, which are written; rows that delete get NULL.

        A value that is a descriptor is copied, unless it describes a managed blob of this table.

        Args:
            rows: rows with all columns of the table.
            kinds: their kinds (int8); `None`: all are inserts.

        Raises as `read_parts` for a descriptor of a blob that cannot be read.
        """
        if not self._packs:
            return rows
        retracts = np.zeros(rows.num_rows, bool) if kinds is None else is_retract(kinds.to_numpy())
        columns = []
        for field, column in zip(self._store.schema.fields, rows.columns, strict=True):
            packs = self._packs.get(field.name)
            if packs is not None:
                if retracts.any() and field.type.nullable:
                    column = column.take(pa.array(np.arange(len(column)), mask=retracts))
                items, counts, keys = elements(column)
                column = with_elements(column, self._written(packs, field.name, items), counts, keys)
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    def _written(self, packs: "_Packs", name: str, items: pa.Array) -> pa.Array:
        """Return descriptors of blobs (binary), which are written, unless they are descriptors of this table."""
        valid = items.is_valid().to_numpy(zero_copy_only=False)
        blobs = items.drop_null()
        given = begins_as_descriptor(blobs)
        parts, numbers = [pa.array([], pa.binary())], np.full(len(blobs), -1)
        count = 0

        def add(part: pa.Array, at: np.ndarray) -> None:
            nonlocal count
            numbers[at] = np.arange(count, count + len(part))
            parts.append(part)
            count += len(part)

        if not given.all():
            add(packs.write(blobs if not given.any() else blobs.filter(pa.array(~given))), np.flatnonzero(~given))
        if given.any():
            at = np.flatnonzero(given)
            pointers = blobs.take(pa.array(at))
            found = described(pointers, f"column {name!r}")
            own = np.array([self._is_own(path) for path in found.files])[found.file_of]
            add(pointers.filter(pa.array(own)), at[own])
            other = at[~own]
            for first, copied in read_parts(self._store, blobs.take(pa.array(other)), name):
                add(packs.write(copied), other[first : first + len(copied)])
        in_order = np.full(len(items), -1)
        in_order[valid] = numbers
        return pa.concat_arrays(parts).take(pa.array(in_order, mask=in_order < 0))

    def _is_own(self, path: str) -> bool:
        return path.endswith(MANAGED_BLOB) and is_inside(path, (self._store.root,))

    def finish(self) -> None:
        """End the open files. Rows that refer to them can be committed then."""
        for packs in self._packs.values():
            packs.finish()

    def release(self) -> tuple[str, ...]:
        """Release the files finished so far to the caller: an abort no longer deletes them. Return their names."""
        return tuple(name for packs in self._packs.values() for name in packs.release())

    def abort(self) -> None:
        """Delete every file created since the last `release`."""
        for packs in self._packs.values():
            packs.abort()


class _Packs:
    """The files of the blobs of one column."""

    def __init__(self, store: FileStore, bucket: BucketRef) -> None:
        self._store, self._bucket = store, bucket
        self._target = store.options.value(BLOB_TARGET_FILE_SIZE) or target_size(store)
        self._paths: list[str] = []
        self._sink: Any = None
        self._writer: BlobFileWriter | None = None

    def write(self, blobs: pa.Array) -> pa.Array:
        """Write blobs without NULL, and return their descriptors."""
        parts: list[pa.Array] = [pa.array([], pa.binary())]
        at = 0
        while at < len(blobs):
            writer = self._opened()
            rest = blobs.slice(at)
            part = rest.slice(0, values_to_reach(pa.chunked_array([rest]), self._target - writer.tell()))
            lengths = _lengths(part)
            ends = writer.tell() + (lengths + FRAME).cumsum()
            writer.write(pa.table({_BLOB.name: part}))
            parts.append(descriptors(self._paths[-1], ends - lengths - FRAME + HEAD, lengths))
            at += len(part)
            if writer.tell() >= self._target:
                self.finish()
        return pa.concat_arrays(parts)

    def _opened(self) -> BlobFileWriter:
        if self._writer is None:
            store = self._store
            name = f"{store.options.value(DATA_FILE_PREFIX)}{store.new_name()}-0{MANAGED_BLOB}"
            self._paths.append(join(store.bucket_path(self._bucket), name))
            self._sink = store.io.create(self._paths[-1])
            self._writer = BlobFileWriter(self._sink, [_BLOB])
        return self._writer

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._sink.close()
            self._writer = None
            self._store.sync(self._paths[-1:])

    def release(self) -> list[str]:
        released, self._paths = self._paths, []
        return [path.rpartition("/")[2] for path in released]

    def abort(self) -> None:
        if self._writer is not None:
            self._writer = None
            with suppress(Exception):  # the file is deleted, so an error on close does not matter
                self._sink.close()
        for path in self._paths:
            self._store.io.delete(path)
        self._paths = []


def _lengths(values: pa.Array) -> np.ndarray:
    bounds = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    lengths: np.ndarray = np.diff(bounds).astype(np.int64)
    return lengths
