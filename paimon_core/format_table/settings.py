"""The options of a format table: its format, the layout of its directories, and the form of its files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final, TypeAlias

from paimon_core.errors import InvalidInputError, UnsupportedError, listed_names
from paimon_core.format import FORMATS
from paimon_core.format.csv_lines import CsvFormat
from paimon_core.format.file_format import FileFormat
from paimon_core.format.json_lines import JsonFormat
from paimon_core.format.plain_text import TextFormat
from paimon_core.format.text_lines import compression_suffix
from paimon_core.options import is_known
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME
from paimon_core.options.file import DATA_FILE_PREFIX, FILE_FORMAT, METASTORE_PARTITIONED_TABLE, TARGET_FILE_SIZE
from paimon_core.options.option import Options
from paimon_core.options.per_field import split_list
from paimon_core.options.snapshot import DYNAMIC_PARTITION_OVERWRITE
from paimon_core.schema.properties import check_table_options
from paimon_core.schema.schema import Schema
from paimon_core.schema.support import QUERY_AUTH
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import check_case
from paimon_core.types.arrow import assign_ids
from paimon_core.types.datatype import DataField

FORMAT_TABLE: Final = "format-table"
"""The value of the option ``type`` of a format table."""
FORMAT_TABLE_FORMATS: Final = ("csv", "json", "orc", "parquet", "text")
"""The formats of format tables."""
_TextFormats: TypeAlias = type[CsvFormat] | type[JsonFormat]
_TEXTS: Final[Mapping[str, _TextFormats]] = {"csv": CsvFormat, "json": JsonFormat}
_ONLY_VALUES: Final = "format-table.partition-path-only-value"
_IMPLEMENTATION: Final = "format-table.implementation"
_COMPRESSIONS: Final = ("file.compression", "format-table.file.compression", "compression")
_DEFAULT_COMPRESSION: Final = {"parquet": "snappy", "orc": "zstd"}
_TARGET_SIZE: Final = 256 << 20  # bytes
_OTHER_NAMES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "csv": {
        "csv.field-delimiter": ("field-delimiter", "seq", "delimiter"),
        "csv.line-delimiter": ("lineSep",),
        "csv.quote-character": ("quote",),
        "csv.escape-character": ("escape",),
        "csv.include-header": ("header",),
        "csv.null-literal": ("nullvalue",),
        "csv.mode": ("mode",),
    },
    "json": {
        "json.line-delimiter": (),
        "json.ignore-parse-errors": (),
        "json.map-null-key-mode": (),
        "json.map-null-key-literal": (),
    },
    "text": {"text.line-delimiter": ("lineSep",)},
}
"""The options of the text formats, with the other names that Paimon accepts, the first found first."""
_OF_SPEED: Final = ("format-table.scan.list-parallelism", "format-table.statistics.parallelism")
_GENERAL: Final = frozenset(
    {
        "type", "path", "file.compression.zstd-level", "file.block-size", "parquet.enable.dictionary",
        _ONLY_VALUES, _IMPLEMENTATION, *_COMPRESSIONS, *_OF_SPEED,
        *(o.key for o in (FILE_FORMAT, PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME, DATA_FILE_PREFIX)),
        TARGET_FILE_SIZE.key, METASTORE_PARTITIONED_TABLE.key, DYNAMIC_PARTITION_OVERWRITE.key,
    }
)  # fmt: skip
_FAMILIES: Final = ("csv.", "json.", "text.", "format-table.")


def is_format_table(options: Mapping[str, str]) -> bool:
    """Return True if the option ``type`` says that a table is a format table."""
    return options.get("type", "table").strip().lower() == FORMAT_TABLE


@dataclass(frozen=True, slots=True)
class FormatTableSettings:
    """The settings of a format table, parsed from its options."""

    format: str
    options: Options
    """All options. Options of the text formats have their first names."""
    only_values: bool
    """True if a directory of a partition is named by its value alone, False for ``column=value``."""
    null_name: str
    """The name of the directory of NULL."""
    legacy_names: bool
    """True if a DATE is named by its day number, as ``partition.legacy-name`` defines it."""
    compression: str
    prefix: str
    target_size: int
    """The size in bytes at which a new file begins."""
    in_catalog: bool = False
    """True if the catalog lists the partitions, False if each directory is one."""

    @staticmethod
    def of(schema: TableSchema, table: str) -> "FormatTableSettings":
        """Parse the options of a table; ``table``: its name, for messages.

        Raises UnsupportedError for another format, and for an option of format tables that this engine does not know;
        InvalidInputError for a value that cannot be parsed.
        """
        given = schema.options
        name = given.value(FILE_FORMAT)
        if name not in FORMAT_TABLE_FORMATS:
            raise UnsupportedError(
                f"format table {table} has the format {name!r}, but this engine knows {', '.join(FORMAT_TABLE_FORMATS)}"
            )
        names = _OTHER_NAMES.get(name, {})
        _check_names(given, name, table)
        options = dict(given)
        for key, others in names.items():
            found = next((given[other] for other in (key, *others) if other in given), None)
            if found is not None:
                options[key] = found
        if Options(given).flag(QUERY_AUTH):
            raise UnsupportedError(
                f"format table {table} has {QUERY_AUTH!r} = 'true': rows and columns that a server hides are not "
                "supported in format tables"
            )
        only_values, implementation = Options(given).flag(_ONLY_VALUES), given.get(_IMPLEMENTATION, "paimon").lower()
        if implementation != "paimon" and not (implementation == "engine" and name in FORMATS):
            raise UnsupportedError(
                f"format table {table} has {_IMPLEMENTATION!r} = {implementation!r}: Spark's own form of {name} files "
                "differs from Paimon's; remove the option, or read the files with spark.read"
            )
        in_catalog = given.value(METASTORE_PARTITIONED_TABLE) and bool(schema.partition_keys)
        if in_catalog and implementation != "paimon":
            raise InvalidInputError(
                f"format table {table} has {METASTORE_PARTITIONED_TABLE.key!r} = 'true' and {_IMPLEMENTATION!r} = "
                f"{implementation!r}, which reads the directories instead of the catalog: remove one of the options"
            )
        compression = next(
            (given[key] for key in _COMPRESSIONS if key in given), _DEFAULT_COMPRESSION.get(name, "none")
        )
        return FormatTableSettings(
            name,
            Options(options),
            only_values,
            given.value(PARTITION_DEFAULT_NAME),
            given.value(PARTITION_LEGACY_NAME),
            compression,
            given.value(DATA_FILE_PREFIX),
            given.value(TARGET_FILE_SIZE) or _TARGET_SIZE,
            in_catalog,
        )

    def file_format(self, columns: Sequence[DataField]) -> FileFormat:
        """Return the format of the files. ``columns``: the columns in the files, without the partition columns."""
        if self.format in FORMATS:
            return FORMATS[self.format]
        if self.format == "text":
            return TextFormat.of(columns, self.options)
        return _TEXTS[self.format].of_any_tool(columns, self.options)

    @property
    def extension(self) -> str:
        """The end of the names of new files, with its dot."""
        suffix = "" if self.format in FORMATS else compression_suffix(self.compression)
        return f".{self.format}" + (f".{suffix}" if suffix else "")


def new_format_schema(schema: Schema, table: str) -> TableSchema:
    """Return the schema of a new format table, with ids of its columns and its ``type`` as an option.

    ``table``: its name, for messages. Raises InvalidInputError for a primary key, for partition columns that the table
    lacks, for a table with partition columns only, and for an option that has no effect on a format table;
    UnsupportedError as `FormatTableSettings.of`, and for a column that the files cannot hold.
    """
    options = {**schema.options, "type": FORMAT_TABLE}
    keys = tuple(schema.partition_keys) or split_list(options.pop("partition", ""))
    if schema.primary_keys or options.get("primary-key"):
        raise InvalidInputError(f"format table {table} cannot have a primary key: remove it")
    fields, highest = assign_ids(schema.data_fields, 0)
    names = [field.name for field in fields]
    check_case(names)
    for key in keys:
        if key not in names:
            raise InvalidInputError(f"partition column {key!r} is not a column of {table}: {listed_names(key, names)}")
    if len(set(names)) < len(names) or len(set(keys)) < len(keys):
        raise InvalidInputError(f"format table {table} has a column twice: {', '.join(names)}")
    created = TableSchema(0, fields, highest, tuple(keys), (), Options(options), schema.comment)
    check_format_schema(created, table)
    return created


def check_format_schema(schema: TableSchema, table: str) -> None:
    """Raise an error for options and columns of a format table that cannot be; as `new_format_schema`."""
    settings = FormatTableSettings.of(schema, table)
    _check_options(schema.options, settings, table)
    columns = [field for field in schema.fields if field.name not in schema.partition_keys]
    if not columns:
        raise InvalidInputError(f"format table {table} needs a column besides its partition columns")
    with BytesIO() as sink:  # a writer refuses the types and the codecs that its files cannot hold
        settings.file_format(columns).open_writer(sink, columns, settings.options, settings.compression)


def check_registry(schema: TableSchema, table: str, *, has_registry: bool, is_external: bool) -> None:
    """Raise UnsupportedError if the options ask for partitions in the catalog, which does not list them.

    Args:
        schema: the schema of the table.
        table: its name, for messages.
        has_registry: True if the catalog can list the partitions of format tables.
        is_external: True if the files outlive the table; Java's catalogs then do not list its partitions.
    """
    if not FormatTableSettings.of(schema, table).in_catalog or (has_registry and not is_external):
        return
    reason = "its option 'path' makes it external" if is_external else "only REST catalogs list partitions"
    raise UnsupportedError(
        f"format table {table} has {METASTORE_PARTITIONED_TABLE.key!r} = 'true', but {reason}: remove the option, then "
        "each directory is a partition"
    )


def _check_options(options: Options, settings: FormatTableSettings, table: str) -> None:
    """Raise InvalidInputError for an option that has no effect on a format table; properties of users are kept."""
    known = _GENERAL.union(*((key, *others) for key, others in _OTHER_NAMES.get(settings.format, {}).items()))
    unknown = {key: value for key, value in options.items() if key not in known}
    for key in unknown:
        if is_known(key) or key.startswith(_FAMILIES):
            raise InvalidInputError(
                f"option {key!r} has no effect on a format table of {settings.format} files: leave it out of {table}"
            )
    check_table_options(unknown, f"format table {table}")


def _check_names(options: Mapping[str, str], format: str, table: str) -> None:
    """Raise UnsupportedError for an option of the families of format tables that has an unknown meaning."""
    known = _GENERAL.union(*_OTHER_NAMES.values())
    for key in options:
        if key.startswith(_FAMILIES) and key not in known:
            raise UnsupportedError(
                f"option {key!r} of format table {table} is not supported: remove it, or use another engine"
            )
