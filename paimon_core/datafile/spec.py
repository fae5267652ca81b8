"""What the data files of a table look like: their columns, statistics, format and size, as its options have it."""

from dataclasses import dataclass, replace

from paimon_core.fileindex.columns import IndexedColumn, indexed_columns
from paimon_core.format.blob_records import BLOB
from paimon_core.format.stats import StatsMode, parse_mode
from paimon_core.manifest.data_file import FileSource
from paimon_core.options.file import (
    BLOB_TARGET_FILE_SIZE,
    CHANGELOG_FILE_COMPRESSION,
    CHANGELOG_FILE_FORMAT,
    CHANGELOG_FILE_PREFIX,
    CHANGELOG_FILE_STATS_MODE,
    DATA_FILE_PREFIX,
    DATA_FILE_THIN_MODE,
    FILE_COMPRESSION,
    FILE_COMPRESSION_PER_LEVEL,
    FILE_FORMAT,
    FILE_FORMAT_PER_LEVEL,
    METADATA_STATS_DENSE_STORE,
    METADATA_STATS_KEEP_FIRST_N_COLUMNS,
    METADATA_STATS_MODE,
    METADATA_STATS_MODE_PER_LEVEL,
    ROW_TRACKING_ENABLED,
    TARGET_FILE_ROW_NUM,
    TARGET_FILE_SIZE,
)
from paimon_core.options.file_index import index_column
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import AtomicType, DataField, is_blob_type
from paimon_core.types.system_fields import SEQUENCE_NUMBER, TRACKING_FIELDS, VALUE_KIND, key_field

__all__ = ["KEY_STATS", "TARGET_SIZE_APPEND", "DataFileSpec", "target_size"]

KEY_STATS = "truncate(128)"  # keys are kept long enough to prune well, whatever the table's mode
TARGET_SIZE_KEYED, TARGET_SIZE_APPEND = 128 << 20, 256 << 20
_WITHOUT_STATS = ("VARIANT", "BLOB")


@dataclass(frozen=True, slots=True)
class DataFileSpec:
    """What the files of one table version and level hold: their columns, statistics modes, format and roll size."""

    fields: tuple[DataField, ...]  # every column in the file, in order
    value_fields: tuple[DataField, ...]
    key_fields: tuple[DataField, ...]  # as columns of the table; empty for an append table
    modes: tuple[StatsMode, ...]  # one per value field
    dense: bool
    format: str
    compression: str
    target_size: int
    target_rows: int = TARGET_FILE_ROW_NUM.default
    """Rows with which a file is full, however small it is."""
    level: int = 0
    source: int = FileSource.APPEND
    stores_key_columns: bool = True
    """Whether keys stand in columns of their own as well, as Paimon has it unless the table is in thin mode."""
    indexes: tuple[IndexedColumn, ...] = ()
    """What is kept of the rows to skip files by, in the metadata or in a file beside."""
    row_tracking: bool = False
    """Whether rows have ids. New rows get theirs by the commit; compaction stores them, for rows then lie anywhere."""
    prefix: str = DATA_FILE_PREFIX.default
    writes_column_names: bool = False
    """Whether the metadata name the columns of a file, which are not all that the table has."""
    ordered: bool = False
    """Whether rows of a table without keys come sorted by columns all the same."""
    blobs: tuple["DataFileSpec", ...] = ()
    """Of the files beside these that hold a column of blobs each, of the same rows."""

    @staticmethod
    def of(store: FileStore, level: int = 0, source: int = FileSource.APPEND) -> "DataFileSpec":
        """The shape new files of this level take, made by ``source``.

        Columns of blobs are not among theirs but in ``blobs``.
        """
        schema, options = store.schema, store.options
        keys = tuple(schema.field(k) for k in schema.trimmed_primary_keys)
        stores_key_columns = not options.value(DATA_FILE_THIN_MODE)
        copies = (key_field(k) for k in keys) if stores_key_columns else ()
        system = (*copies, SEQUENCE_NUMBER, VALUE_KIND) if keys else ()
        row_tracking = options.value(ROW_TRACKING_ENABLED)
        tracking = TRACKING_FIELDS if row_tracking and source == FileSource.COMPACT else ()
        shape = DataFileSpec(
            fields=(*system, *schema.fields, *tracking),
            value_fields=schema.fields,
            key_fields=keys,
            modes=_stats_modes(store, level),
            dense=options.value(METADATA_STATS_DENSE_STORE),
            format=options.value(FILE_FORMAT_PER_LEVEL).get(level, options.value(FILE_FORMAT)).lower(),
            compression=options.value(FILE_COMPRESSION_PER_LEVEL).get(level, options.value(FILE_COMPRESSION)).lower(),
            target_size=target_size(store),
            target_rows=options.value(TARGET_FILE_ROW_NUM),
            level=level,
            source=source,
            stores_key_columns=stores_key_columns,
            indexes=indexed_columns(options, schema.fields),
            row_tracking=row_tracking,
            prefix=options.value(DATA_FILE_PREFIX),
        )
        blobs = [f for f in schema.fields if is_blob_type(f.type)]
        if not blobs:
            return shape
        blob_size = options.value(BLOB_TARGET_FILE_SIZE) or shape.target_size
        beside = tuple(shape.of_columns((field,), blob_size) for field in blobs)
        rest = tuple(f for f in schema.fields if not is_blob_type(f.type))
        return replace(shape.of_columns(rest, shape.target_size), blobs=beside)

    @staticmethod
    def changelog(store: FileStore, level: int = 0) -> "DataFileSpec":
        """The shape of files that tell what has changed by writing to this level: sorted by key, a key often twice."""
        options, data = store.options, DataFileSpec.of(store, level)
        stats = options.value(CHANGELOG_FILE_STATS_MODE)
        return replace(
            data,
            modes=data.modes if stats is None else _stats_modes(store, level, stats),
            format=(options.value(CHANGELOG_FILE_FORMAT) or data.format).lower(),
            compression=(options.value(CHANGELOG_FILE_COMPRESSION) or data.compression).lower(),
            prefix=options.value(CHANGELOG_FILE_PREFIX),
        )

    def of_columns(self, columns: tuple[DataField, ...], target_size: int) -> "DataFileSpec":
        """The shape of files that hold nothing but these columns of a table without a key: one of blobs, or others."""
        shapes = (self, *self.blobs)
        modes = {f.name: m for shape in shapes for f, m in zip(shape.value_fields, shape.modes, strict=True)}
        names = {f.name for f in columns}
        of_blobs = any(is_blob_type(f.type) for f in columns)
        return replace(
            self,
            fields=columns,
            value_fields=columns,
            modes=tuple(modes[f.name] for f in columns),
            indexes=tuple(i for i in self.indexes if index_column(i.item) in names),
            format=BLOB if of_blobs else self.format,
            compression="none" if of_blobs else self.compression,
            target_size=target_size,
            writes_column_names=True,
            blobs=(),
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """The column of a table's rows that each column of the file is filled from."""
        copies = self.key_fields if self.stores_key_columns else ()
        system = (*copies, SEQUENCE_NUMBER, VALUE_KIND) if self.key_fields else ()
        tracking = TRACKING_FIELDS if self.stores_tracking else ()
        return tuple(f.name for f in (*system, *self.value_fields, *tracking))

    @property
    def stores_tracking(self) -> bool:
        """Whether the files hold the ids of their rows, and the snapshots that changed them last."""
        return self.row_tracking and self.source == FileSource.COMPACT


def target_size(store: FileStore) -> int:
    """Bytes at which a file is full."""
    default = TARGET_SIZE_KEYED if store.schema.primary_keys else TARGET_SIZE_APPEND
    return int(store.options.value(TARGET_FILE_SIZE) or default)


def _stats_modes(store: FileStore, level: int, instead: str | None = None) -> tuple[StatsMode, ...]:
    """Of the columns of a file of this level; ``instead`` of the mode the table has for all columns."""
    options = store.options
    default = instead or options.value(METADATA_STATS_MODE_PER_LEVEL).get(level, options.value(METADATA_STATS_MODE))
    first_n = options.value(METADATA_STATS_KEEP_FIRST_N_COLUMNS)
    only_there = store.schema.trimmed_primary_keys if options.value(DATA_FILE_THIN_MODE) else ()
    modes = []
    for i, field in enumerate(store.schema.fields):
        mode = options.get(f"fields.{field.name}.stats-mode")
        if isinstance(field.type, AtomicType) and field.type.root in _WITHOUT_STATS:
            mode = "none"
        elif mode is None:
            mode = KEY_STATS if field.name in only_there else "none" if 0 <= first_n <= i else default
        modes.append(parse_mode(mode))
    return tuple(modes)
