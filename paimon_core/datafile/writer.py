"""Batches into rolling data files, each described by its metadata."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone

import pyarrow as pa

from paimon_core.datafile.spec import KEY_STATS, DataFileSpec
from paimon_core.fileindex.columns import FileIndexes
from paimon_core.fileio.fileio import join
from paimon_core.format import TEXT_FORMATS, format_named
from paimon_core.format.blob_records import BLOB, values_to_reach
from paimon_core.format.file_format import FormatWriter
from paimon_core.format.stats import StatsCollector, StatsMode, parse_mode
from paimon_core.format.text_lines import compression_suffix
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.stats import EMPTY_STATS, SimpleStats, stats_schema
from paimon_core.options.file import (
    FILE_INDEX_IN_MANIFEST_THRESHOLD,
    FILE_SUFFIX_INCLUDE_COMPRESSION,
)
from paimon_core.row.binary_row import EMPTY_ROW, serialize
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import is_retract
from paimon_core.types.system_fields import ROW_SEQUENCE, VALUE_KIND

_MIN_SLICE, _MAX_SLICE = 1_000, 1 << 17
_LARGEST_EXPANSION = 4  # one byte of an int8 column becomes four
_INDEX_SUFFIX = ".index"
_COMPRESSION_SUFFIX = {"zstd": "zst", "gzip": "gz", "snappy": "snappy", "lz4": "lz4"}


class DataFileWriter:
    """Rows of one (partition, bucket) into one or more files of about the target size.

    Rows come in the order they are to be stored: sorted by key, one row per key, for a table with a primary key (then
    with ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` columns); in arrival order for an append table, with the columns of
    `TRACKING_FIELDS` where the shape stores them. Columns of blobs go to files beside, which are full by themselves but
    end where a file of the others ends, so that each lies beside one.
    """

    def __init__(
        self, store: FileStore, partition: bytes, bucket: int, shape: DataFileSpec, first_sequence: int = 0
    ) -> None:
        self._store, self._partition, self._bucket, self._shape = store, partition, bucket, shape
        self._next_sequence = first_sequence  # append tables number their rows by counting
        self._open: _OpenFile | None = None
        self._done: list[DataFileMeta] = []
        self._paths: list[str] = []
        self._blobs = [DataFileWriter(store, partition, bucket, beside) for beside in shape.blobs]

    @property
    def format(self) -> str:
        """The format of the files, by which their names end."""
        return self._shape.format

    def write(self, rows: pa.Table) -> None:
        """Append rows; rolls to a new file whenever the current one has the target size or number of rows."""
        own = rows.drop_columns([f.name for b in self._shape.blobs for f in b.fields]) if self._blobs else rows
        at, step = 0, self._slice_rows(own)
        while at < rows.num_rows:
            if self._open is None:
                self._open = self._start()
            piece = self._open.fitting(own.slice(at, min(step, self._shape.target_rows - self._open.rows)))
            self._open.write(piece)
            for writer in self._blobs:
                writer.write(rows.slice(at, piece.num_rows))
            at += piece.num_rows
            if self._open.rows >= self._shape.target_rows or self._open.reaches(self._shape.target_size):
                self._finish()

    @property
    def held_bytes(self) -> int:
        """Arrow bytes of the rows that the open files hold in memory."""
        return (self._open.held_bytes if self._open is not None else 0) + sum(w.held_bytes for w in self._blobs)

    def let_go(self) -> None:
        """Write all rows that are held. A format that must hold rows while its file is open ends the file."""
        if self._open is not None:
            self._open.flush()
            if self._open.held_bytes:
                self._finish()

    def finish(self) -> None:
        """End the open files; the next rows go to a new one."""
        if self._open is not None:
            self._finish()

    def close(self) -> list[DataFileMeta]:
        """Finish the open files; returns the metadata of every file written since the last call.

        Files of blobs come after the file whose rows they share, one column after the other.
        """
        self.finish()
        done, self._done = self._done, []
        return done

    def number_behind(self, sequence_number: int) -> None:
        """Number the rows of an append table behind this number, and behind those numbered already."""
        self._next_sequence = max(self._next_sequence, sequence_number + 1)

    def release(self) -> None:
        """The files finished so far belong to the caller now: an abort leaves them alone."""
        self._paths = []
        for writer in self._blobs:
            writer.release()

    def abort(self) -> None:
        """Delete every file made since the last hand-over."""
        if self._open is not None:
            with suppress(Exception):  # the file is thrown away: how its closing fails does not matter
                self._open.discard()
            self._open = None
        for path in self._paths:
            self._store.io.delete(path)
        self._paths, self._done = [], []
        for writer in self._blobs:
            writer.abort()

    def _slice_rows(self, rows: pa.Table) -> int:
        row_bytes = max(1, rows.nbytes // max(1, rows.num_rows))
        return int(min(_MAX_SLICE, max(_MIN_SLICE, self._shape.target_size // 4 // row_bytes)))

    def _start(self) -> "_OpenFile":
        shape = self._shape
        name = f"{shape.prefix}{self._store.new_name()}-0{_extension(self._store, shape)}"
        path = join(self._store.bucket_path(self._partition, self._bucket), name)
        self._paths += [path, path + _INDEX_SUFFIX] if shape.indexes else [path]
        return _OpenFile(self._store, path, name, shape)

    def _finish(self) -> None:
        assert self._open is not None
        meta = self._open.finish(self._next_sequence)
        self._open = None
        self._next_sequence += meta.row_count
        self._done.append(meta)
        for writer in self._blobs:
            self._done += writer.close()


def _extension(store: FileStore, shape: DataFileSpec) -> str:
    if shape.format in TEXT_FORMATS:
        suffix = compression_suffix(shape.compression)
        return f".{shape.format}" + (f".{suffix}" if suffix else "")
    if store.options.value(FILE_SUFFIX_INCLUDE_COMPRESSION) and shape.format != BLOB:
        return f".{_COMPRESSION_SUFFIX.get(shape.compression, shape.compression)}.{shape.format}"
    return f".{shape.format}"


class _OpenFile:
    """A file being written, and what its metadata will say."""

    def __init__(self, store: FileStore, path: str, name: str, shape: DataFileSpec) -> None:
        self._store, self._path, self._name, self._shape = store, path, name, shape
        self._sink = store.io.create(path)
        self._writer: FormatWriter = format_named(shape.format, shape.fields, store.options).open_writer(
            self._sink, shape.fields, store.options, shape.compression, ordered=shape.ordered
        )
        self._arrow = arrow_schema(shape.fields)
        self._values = StatsCollector(shape.value_fields, shape.modes)
        self._keys = StatsCollector(shape.key_fields, [parse_mode(KEY_STATS)] * len(shape.key_fields))
        self._indexes = FileIndexes(shape.indexes) if shape.indexes else None
        self.rows = self._retracts = self._bytes = 0  # rows: so far
        self._min_sequence = self._max_sequence = 0
        self._first: pa.Table | None = None
        self._last: pa.Table | None = None

    def write(self, rows: pa.Table) -> None:
        shape = self._shape
        if shape.key_fields:
            self._track_keyed(rows, [f.name for f in shape.key_fields])
        elif shape.stores_tracking:
            self._track_sequence(rows)
        stored = pa.Table.from_arrays([rows.column(n) for n in shape.sources], schema=self._arrow)
        self._writer.write(stored)
        self._values.update(rows)
        if self._indexes is not None:
            self._indexes.add(rows)
        self.rows += rows.num_rows
        self._bytes += stored.nbytes

    def _track_sequence(self, rows: pa.Table) -> None:
        sequence = rows.column(ROW_SEQUENCE.name).to_numpy()
        low, high = int(sequence.min()), int(sequence.max())
        self._min_sequence = min(low, self._min_sequence) if self.rows else low
        self._max_sequence = max(high, self._max_sequence) if self.rows else high

    def _track_keyed(self, rows: pa.Table, key_names: Sequence[str]) -> None:
        self._track_sequence(rows)
        if self._first is None:
            self._first = rows.select(key_names).slice(0, 1)
        self._last = rows.select(key_names).slice(rows.num_rows - 1, 1)
        self._retracts += int(is_retract(rows.column(VALUE_KIND.name).to_numpy()).sum())
        self._keys.update(rows.select(key_names))

    def fitting(self, rows: pa.Table) -> pa.Table:
        """As many of the rows as go to this file before its size is looked at: of blobs, until one has filled it."""
        if self._shape.format != BLOB:
            return rows
        left = self._shape.target_size - self._writer.tell()
        return rows.slice(0, values_to_reach(rows.column(self._shape.fields[0].name), left))

    def reaches(self, size: int) -> bool:
        """Whether the file has about this size. Looked at in earnest only when the rows in memory come near it:
        no encoding takes more than four times their bytes."""
        return self._bytes * _LARGEST_EXPANSION >= size and int(self._writer.tell()) >= size

    @property
    def held_bytes(self) -> int:
        return self._writer.held_bytes

    def flush(self) -> None:
        self._writer.flush()

    def discard(self) -> None:
        try:
            self._writer.close()
        finally:
            self._sink.close()

    def finish(self, first_sequence: int) -> DataFileMeta:
        """Close the file; ``first_sequence`` numbers the rows of an append table."""
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        shape = self._shape
        value_stats, stats_columns = _simple_stats(self._values, shape.value_fields, shape.modes, dense=shape.dense)
        if stats_columns is None and shape.stores_tracking:
            stats_columns = tuple(f.name for f in shape.value_fields)
        embedded, beside = self._finish_indexes()
        keyed = bool(shape.key_fields)
        if not keyed and not shape.row_tracking:  # rows that are tracked get the number of their snapshot, or hold it
            self._min_sequence, self._max_sequence = first_sequence, first_sequence + self.rows - 1
        return DataFileMeta(
            file_name=self._name,
            file_size=size,
            row_count=self.rows,
            min_key=_key_row(self._first, shape.key_fields),
            max_key=_key_row(self._last, shape.key_fields),
            key_stats=_simple_stats(self._keys, shape.key_fields, (), dense=False)[0] if keyed else EMPTY_STATS,
            value_stats=value_stats,
            min_sequence_number=self._min_sequence,
            max_sequence_number=self._max_sequence,
            schema_id=self._store.schema.id,
            level=shape.level,
            extra_files=beside,
            creation_time=local_millis(self._store.now()),
            delete_row_count=self._retracts,
            embedded_index=embedded,
            file_source=shape.source,
            value_stats_cols=stats_columns,
            write_cols=tuple(f.name for f in shape.fields)
            if shape.stores_tracking or shape.writes_column_names
            else None,
        )

    def _finish_indexes(self) -> tuple[bytes | None, tuple[str, ...]]:
        """The indexes where they are small, and the name of the file beside that has them where they are not."""
        if self._indexes is None:
            return None, ()
        data = self._indexes.finish()
        if len(data) <= self._store.options.value(FILE_INDEX_IN_MANIFEST_THRESHOLD):
            return data, ()
        self._store.io.write(self._path + _INDEX_SUFFIX, data)
        return None, (self._name + _INDEX_SUFFIX,)


def local_millis(epoch_millis: int) -> int:
    """The machine's wall clock at that instant, counted as if it were UTC: how data files keep their creation time."""
    offset = datetime.fromtimestamp(epoch_millis / 1000, timezone.utc).astimezone().utcoffset()
    return epoch_millis + int(offset.total_seconds() * 1000) if offset else epoch_millis


def _key_row(row: pa.Table | None, fields: Sequence[DataField]) -> bytes:
    if row is None:
        return EMPTY_ROW
    values = tuple(_internal(row.column(f.name)) for f in fields)
    return serialize(values, arrow_schema(fields))


def _internal(one: pa.ChunkedArray) -> object:
    """The single value of a column as an internal value: times as integers."""
    kind = one.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return one.cast(pa.int32())[0].as_py()
    return (one.cast(pa.int64()) if pa.types.is_timestamp(kind) else one)[0].as_py()


def _simple_stats(
    collector: StatsCollector, fields: Sequence[DataField], modes: Sequence[StatsMode], *, dense: bool
) -> tuple[SimpleStats, tuple[str, ...] | None]:
    bounds = list(zip(fields, collector.result(), strict=True))
    columns = None
    if dense:
        kept = [i for i, mode in enumerate(modes) if mode.kind != "none"]
        if len(kept) < len(fields):
            bounds = [bounds[i] for i in kept]
            columns = tuple(fields[i].name for i in kept)
            if not kept:
                return EMPTY_STATS, ()
    elif modes and all(mode.kind == "none" for mode in modes):
        return EMPTY_STATS, ()  # a reader would trip over bounds that are promised and not there
    schema = stats_schema([f for f, _ in bounds])
    return SimpleStats(
        serialize(tuple(b.min for _, b in bounds), schema),
        serialize(tuple(b.max for _, b in bounds), schema),
        tuple(b.null_count for _, b in bounds),
    ), columns
