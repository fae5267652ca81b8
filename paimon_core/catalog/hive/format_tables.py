"""Format tables as a Hive metastore stores them: Hive tables of the usual classes, which Hive reads, too.

The metastore alone has their columns and options. Only tables that Paimon has created are format tables here: text
files of other Hive tables have another form of NULL and of quotes.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from paimon_core.catalog.hive.client import LostAnswerError, MetastoreError, client_of
from paimon_core.catalog.hive.hive_types import column_comment, hive_type, paimon_type
from paimon_core.catalog.hive.metastore_table import engine_path, is_paimon, location_of, set_location
from paimon_core.catalog.hive.settings import HiveSettings
from paimon_core.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import absolute
from paimon_core.options.option import Options
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import DataField, with_nullable

_TEXT_INPUT: Final = "org.apache.hadoop.mapred.TextInputFormat"
_TEXT_OUTPUT: Final = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
_SIMPLE: Final = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_CLASSES: Final = {
    "csv": (_SIMPLE, _TEXT_INPUT, _TEXT_OUTPUT),
    "text": (_SIMPLE, _TEXT_INPUT, _TEXT_OUTPUT),
    "json": ("org.apache.hive.hcatalog.data.JsonSerDe", _TEXT_INPUT, _TEXT_OUTPUT),
    "parquet": (
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    ),
    "orc": (
        "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
        "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
    ),
}
"""The class of rows, the input class and the output class of each format."""
_FORMAT: Final = "file.format"
_DELIMITER: Final = "csv.field-delimiter"
_OF_HIVE: Final = {
    "table_type", "EXTERNAL", "comment", "transient_lastDdlTime", "numFiles", "numPartitions", "numRows",
    "rawDataSize", "totalSize", "last_modified_by", "last_modified_time", "COLUMN_STATS_ACCURATE",
    "TRANSLATED_TO_EXTERNAL", "external.table.purge", "bucketing_version", "paimon_location", "numFilesErasureCoded",
    "DO_NOT_UPDATE_STATS", "STATS_GENERATED_VIA_STATS_TASK", "STATS_GENERATED",
}  # fmt: skip
"""The parameters of a table that are not its options."""
_FOREVER: Final = 2**31 - 1


def is_listed(table: Any) -> bool:
    """Return True if a catalog lists a table of the metastore: a Paimon table or a format table."""
    return is_paimon(table) or is_format_table(table)


def is_format_table(table: Any) -> bool:
    """Return True if a table of the metastore is a format table that Paimon has created."""
    parameters = table.parameters or {}
    return bool(parameters.get("type") == "format-table" and parameters.get(_FORMAT) and table.sd is not None)


def format_schema_of(table: Any) -> TableSchema:
    """Return the columns and the options of a format table.

    Raises UnsupportedError for a type that Paimon does not have.
    """
    parameters = dict(table.parameters or {})
    keys = tuple(key.name for key in table.partitionKeys or ())
    columns = [*table.sd.cols, *(table.partitionKeys or ())]
    fields = tuple(DataField(i, c.name, paimon_type(c.type, c.name), c.comment) for i, c in enumerate(columns))
    options = {key: value for key, value in parameters.items() if key not in _OF_HIVE}
    delimiter = ((table.sd.serdeInfo and table.sd.serdeInfo.parameters) or {}).get("field.delim")
    if parameters[_FORMAT] == "csv" and delimiter is not None:
        options[_DELIMITER] = delimiter
    return TableSchema(0, fields, len(fields), keys, (), Options(options), parameters.get("comment"))


def register_format_table(settings: HiveSettings, database: str, name: str, schema: TableSchema, path: str) -> None:
    """Create a format table in the metastore, which makes its directory.

    Args:
        settings: the settings of the catalog.
        database: the name of the database.
        name: the name of the table.
        schema: its columns, partition columns and options; with the option ``path``, its files outlive it.
        path: its directory without that option.

    Raises AlreadyExistsError if the name is taken, UnsupportedError for a column that Hive would change.
    """
    client = client_of(settings)
    options = dict(schema.options)
    given = options.pop("path", None)
    directory = path if given is None else engine_path(absolute(given))
    external = given is not None or settings.external
    planned = _described(client.types, database, name, replace(schema, options=Options(options)), settings, external)
    set_location(planned, directory, settings)
    taken = AlreadyExistsError(f"table '{database}.{name}' exists already in {settings.shown}")
    if client.table(database, name) is not None:
        raise taken
    try:
        client.call("create_table", planned, repeat=False)
    except MetastoreError as error:
        found = client.table(database, name)
        if found is None:
            raise
        if not isinstance(error, LostAnswerError) or not is_format_table(found) or location_of(found) != directory:
            raise taken from error


def _described(
    types: Any, database: str, name: str, schema: TableSchema, settings: HiveSettings, external: bool
) -> Any:
    """Return the description of a new format table, without its directory."""
    seconds, format = int(time.time()), schema.options.get(_FORMAT, "parquet").lower()
    rows, reads, writes = _CLASSES[format]
    parameters: Mapping[str, str] = {
        **schema.options,
        "table_type": format.upper(),
        _FORMAT: format,
        **({"EXTERNAL": "TRUE"} if external else {}),
        **({} if schema.comment is None else {"comment": schema.comment}),
    }
    keys = schema.partition_keys
    columns = {f.name: _column(types, f, partition=f.name in keys) for f in schema.fields}
    delimiter = {"field.delim": schema.options.get(_DELIMITER, ",")} if format == "csv" else {}
    return types.Table(
        tableName=name,
        dbName=database,
        owner=settings.user,
        createTime=seconds,
        lastAccessTime=seconds,
        retention=_FOREVER,
        partitionKeys=[columns[key] for key in keys],
        parameters=dict(parameters),
        tableType="EXTERNAL_TABLE" if external else "MANAGED_TABLE",
        sd=types.StorageDescriptor(
            cols=[column for name, column in columns.items() if name not in keys],
            location=None,
            inputFormat=reads,
            outputFormat=writes,
            compressed=False,
            numBuckets=0,
            serdeInfo=types.SerDeInfo(serializationLib=rows, parameters=delimiter),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
    )


def _column(types: Any, field: DataField, *, partition: bool) -> Any:
    """Return a column as Hive stores it. Raises UnsupportedError for a column that would come back as another one."""
    stored = hive_type(field.type, field.name)
    if field.name != field.name.lower():
        raise InvalidInputError(
            f"{field.name!r} cannot name a column of a format table: a Hive metastore stores names in lower case"
        )
    returned = paimon_type(stored, field.name)
    if not field.type.nullable or field.default is not None or returned != with_nullable(field.type, True):
        default = "" if field.default is None else f" DEFAULT {field.default}"
        raise UnsupportedError(
            f"column {field.name!r} of a format table cannot be {field.type}{default}: a Hive metastore would store "
            f"it as {returned}"
        )
    comment = field.description if partition else column_comment(field)
    return types.FieldSchema(name=field.name, type=stored, comment=comment)
