"""The data file spec: columns, statistics, format and size of new data files, which the table's options define."""

from dataclasses import dataclass, replace

from paimon_core.fileindex.indexed_columns import IndexedColumn, indexed_columns
from paimon_core.format.blob_records import BLOB
from paimon_core.format.parquet_writer import rows_within_footer
from paimon_core.format.stats import StatsMode, parse_mode
from paimon_core.manifest.data_file import FileSource
from paimon_core.memory import MemoryShares
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
from paimon_core.schema.blob_columns import in_blob_files, in_managed_files
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import AtomicType, DataField, is_blob_type
from paimon_core.types.system_fields import SEQUENCE_NUMBER, TRACKING_FIELDS, VALUE_KIND, key_field

KEY_STATS = "truncate(128)"  # keys have bounds long enough to prune well, in every mode of the table
TARGET_SIZE_KEYED, TARGET_SIZE_APPEND = 128 << 20, 256 << 20
_WITHOUT_STATS = ("VARIANT",)


@dataclass(frozen=True, slots=True)
class DataFileSpec:
    """Columns, statistics modes, format and target size of the files of one schema version and level."""

    fields: tuple[DataField, ...]  # every column in the file, in order
    value_fields: tuple[DataField, ...]
    key_fields: tuple[DataField, ...]  # as columns of the table; empty for an append table
    modes: tuple[StatsMode, ...]  # one per value field
    dense: bool
    format: str
    compression: str
    target_size: int
    target_rows: int = TARGET_FILE_ROW_NUM.default
    """A file with this number of rows is full, even if it is small."""
    footer_bytes: int | None = None
    """A file is full if its footer takes this memory, even if the file is small. `None`: not limited."""
    level: int = 0
    source: int = FileSource.APPEND
    stores_key_columns: bool = True
    """True if files have copies of the key columns; False in thin mode."""
    indexes: tuple[IndexedColumn, ...] = ()
    """The file indexes of the columns, stored in the metadata or in an index file."""
    row_tracking: bool = False
    """True if rows have ids. The commit assigns ids to new rows."""
    stores_tracking: bool = False
    """True if files store the row ids and the snapshots that last changed the rows, because the rows are not new."""
    prefix: str = DATA_FILE_PREFIX.default
    writes_column_names: bool = False
    """True if a file has only some of the table's columns; its metadata then names them."""
    ordered: bool = False
    """True if rows of a table without a primary key are sorted by columns."""
    blobs: tuple["DataFileSpec", ...] = ()
    """The specs of the blob files of the same rows, one for each column of blobs."""
    managed_blobs: tuple[str, ...] = ()
    """The columns whose values describe managed blobs: a file beside the data file lists the files of these blobs."""

    @staticmethod
    def of(
        store: FileStore, level: int = 0, source: int = FileSource.APPEND, *, keeps_row_ids: bool = False
    ) -> "DataFileSpec":
        """Return the spec of new files at this level that ``source`` (a `FileSource`) writes.

        ``keeps_row_ids``: rows may already have ids; in a compaction they always may.
        Columns of blobs are not in ``fields`` but in ``blobs``.
        """
        schema, options = store.schema, store.options
        keys = tuple(schema.field(k) for k in schema.trimmed_primary_keys)
        stores_key_columns = not options.value(DATA_FILE_THIN_MODE)
        copies = (key_field(k) for k in keys) if stores_key_columns else ()
        system = (*copies, SEQUENCE_NUMBER, VALUE_KIND) if keys else ()
        row_tracking = options.value(ROW_TRACKING_ENABLED)
        stores_tracking = row_tracking and (keeps_row_ids or source == FileSource.COMPACT)
        tracking = TRACKING_FIELDS if stores_tracking else ()
        spec = DataFileSpec(
            fields=(*system, *schema.fields, *tracking),
            value_fields=schema.fields,
            key_fields=keys,
            modes=_stats_modes(store, level),
            dense=options.value(METADATA_STATS_DENSE_STORE),
            format=options.value(FILE_FORMAT_PER_LEVEL).get(level, options.value(FILE_FORMAT)).lower(),
            compression=options.value(FILE_COMPRESSION_PER_LEVEL).get(level, options.value(FILE_COMPRESSION)).lower(),
            target_size=target_size(store),
            target_rows=target_rows(store),
            footer_bytes=MemoryShares.of(options).footer,
            level=level,
            source=source,
            stores_key_columns=stores_key_columns,
            indexes=indexed_columns(options, schema.fields),
            row_tracking=row_tracking,
            stores_tracking=stores_tracking,
            prefix=options.value(DATA_FILE_PREFIX),
            managed_blobs=tuple(sorted(in_managed_files(schema))),
        )
        blobs = in_blob_files(schema)
        if not blobs:
            return spec
        blob_size = options.value(BLOB_TARGET_FILE_SIZE) or spec.target_size
        blob_specs = tuple(spec.of_blobs(f, blob_size) for f in schema.fields if f.name in blobs)
        rest = tuple(f for f in schema.fields if f.name not in blobs)
        return replace(spec.of_columns(rest, spec.target_size), blobs=blob_specs)

    @staticmethod
    def changelog(store: FileStore, level: int = 0) -> "DataFileSpec":
        """Return the spec of changelog files at this level: rows sorted by key, with several rows per key."""
        options, data = store.options, DataFileSpec.of(store, level)
        stats = options.value(CHANGELOG_FILE_STATS_MODE)
        return replace(
            data,
            modes=data.modes if stats is None else _stats_modes(store, level, stats),
            format=(options.value(CHANGELOG_FILE_FORMAT) or data.format).lower(),
            compression=(options.value(CHANGELOG_FILE_COMPRESSION) or data.compression).lower(),
            prefix=options.value(CHANGELOG_FILE_PREFIX),
            managed_blobs=(),
        )

    def of_columns(self, columns: tuple[DataField, ...], target_size: int) -> "DataFileSpec":
        """Return the spec of files with only these columns: one of a blob file, or others (append tables only)."""
        if columns in (spec.fields for spec in self.blobs):
            return self.of_blobs(columns[0], target_size)
        specs = (self, *self.blobs)
        modes = {f.name: m for spec in specs for f, m in zip(spec.value_fields, spec.modes, strict=True)}
        names = {f.name for f in columns}
        return replace(
            self,
            fields=columns,
            value_fields=columns,
            modes=tuple(modes[f.name] for f in columns),
            indexes=tuple(i for i in self.indexes if index_column(i.item) in names),
            target_size=target_size,
            writes_column_names=True,
            blobs=(),
        )

    def of_blobs(self, column: DataField, target_size: int) -> "DataFileSpec":
        """Return the spec of blob files with the values of one column."""
        return replace(
            self,
            fields=(column,),
            value_fields=(column,),
            modes=(parse_mode("none"),),
            indexes=(),
            format=BLOB,
            compression="none",
            target_size=target_size,
            writes_column_names=True,
            blobs=(),
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """The name of the row column that fills each column of the file."""
        copies = self.key_fields if self.stores_key_columns else ()
        system = (*copies, SEQUENCE_NUMBER, VALUE_KIND) if self.key_fields else ()
        tracking = TRACKING_FIELDS if self.stores_tracking else ()
        return tuple(f.name for f in (*system, *self.value_fields, *tracking))


def target_size(store: FileStore) -> int:
    """Return the size in bytes at which a file is full."""
    default = TARGET_SIZE_KEYED if store.schema.primary_keys else TARGET_SIZE_APPEND
    return int(store.options.value(TARGET_FILE_SIZE) or default)


def target_rows(store: FileStore) -> int:
    """Return the number of rows at which a file is full: ``target-file-row-num``, or fewer for the footer's memory."""
    rows = int(store.options.value(TARGET_FILE_ROW_NUM))
    if store.options.value(FILE_FORMAT).lower() != "parquet":
        return rows
    return min(rows, rows_within_footer(store.schema.fields, store.options))


def _stats_modes(store: FileStore, level: int, override: str | None = None) -> tuple[StatsMode, ...]:
    """Return the statistics mode of each column of a file at this level.

    ``override``: a mode that replaces the table's mode for all columns.
    """
    options = store.options
    default = override or options.value(METADATA_STATS_MODE_PER_LEVEL).get(level, options.value(METADATA_STATS_MODE))
    first_n = options.value(METADATA_STATS_KEEP_FIRST_N_COLUMNS)
    only_copies = store.schema.trimmed_primary_keys if options.value(DATA_FILE_THIN_MODE) else ()
    modes = []
    for i, field in enumerate(store.schema.fields):
        mode = options.get(f"fields.{field.name}.stats-mode")
        if is_blob_type(field.type) or (isinstance(field.type, AtomicType) and field.type.root in _WITHOUT_STATS):
            mode = "none"
        elif mode is None:
            mode = KEY_STATS if field.name in only_copies else "none" if 0 <= first_n <= i else default
        modes.append(parse_mode(mode))
    return tuple(modes)
