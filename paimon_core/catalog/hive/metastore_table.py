"""A Paimon table as a Hive metastore stores it: what Java's HiveCatalog writes, so that either engine reads it.

The schema of a table is in its files. The columns in the metastore are for Hive and for other engines.
"""

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from paimon_core.catalog.hive.hive_types import column_comment, hive_type, paimon_type
from paimon_core.catalog.hive.settings import HiveSettings
from paimon_core.catalog.view import View
from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.fileio.paths import scheme_of
from paimon_core.options.file import METASTORE_PARTITIONED_TABLE
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import DataField
from paimon_core.types.json_text import parse_json
from paimon_core.types.parse import field_from_json

_INPUT: Final = "org.apache.paimon.hive.mapred.PaimonInputFormat"
_OUTPUT: Final = "org.apache.paimon.hive.mapred.PaimonOutputFormat"
_SERDE: Final = "org.apache.paimon.hive.PaimonSerDe"
_HANDLER: Final = "org.apache.paimon.hive.PaimonStorageHandler"
_TYPE: Final = "table_type"
_STORAGE: Final = "storage_handler"
_EXTERNAL_FLAG: Final = "EXTERNAL"
_EXTERNAL: Final = "EXTERNAL_TABLE"
_MANAGED: Final = "MANAGED_TABLE"
_VIEW: Final = "VIRTUAL_VIEW"
_COMMENT: Final = "comment"
_FIELDS: Final = "paimon.view.fields"
"""The columns of a view, as JSON, if the types of Hive do not say all of them."""
_DDL_TIME: Final = "transient_lastDdlTime"
"""A parameter that the metastore sets itself."""
_LOCATION: Final = "paimon_location"
_HIVE_PREFIX: Final = "hive."
_ALWAYS_SYNCED: Final = ("partition.expiration-time", "data-file.path-directory")
_FOREVER: Final = 2**31 - 1


def is_paimon(table: Any) -> bool:
    """Return True if a table of the metastore is a Paimon table: its format classes decide, as in Java."""
    storage = table.sd
    return storage is not None and storage.inputFormat == _INPUT and storage.outputFormat == _OUTPUT


def is_external(table: Any) -> bool:
    """Return True if the files of a table outlive it. Version 4 turns a managed table into one that does not."""
    parameters = table.parameters or {}
    return bool(table.tableType == _EXTERNAL) and parameters.get("TRANSLATED_TO_EXTERNAL", "").upper() != "TRUE"


def described(table: Any) -> str:
    """Return what a table of another engine is, for a message."""
    if table.tableType == _VIEW:
        return "a view"
    provider = (table.parameters or {}).get(_TYPE) or (table.parameters or {}).get("spark.sql.sources.provider")
    return f"a table of {provider}" if provider else "a Hive table"


def is_view(table: Any) -> bool:
    """Return True for a view."""
    return bool(table.tableType == _VIEW)


def new_view(types: Any, database: str, name: str, view: View, settings: HiveSettings) -> Any:
    """Return the description of a view, as Java stores it. Raises UnsupportedError for what a metastore cannot store.

    Arguments as for `new_table`.
    """
    if any(text != view.query for text in view.dialects.values()):
        raise UnsupportedError(
            f"view '{database}.{name}' cannot have queries in several dialects: a Hive metastore stores one "
            "text for all engines; JDBC and REST catalogs store several"
        )
    seconds = int(time.time())
    comment = {} if view.comment is None else {_COMMENT: view.comment}
    columns = [_column(types, f, column_comment(f)) for f in view.fields]
    exact = [f.type for f in view.fields] == [paimon_type(c.type, c.name) for c in columns]
    fields = {} if exact else {_FIELDS: json.dumps(view.to_json()["fields"], ensure_ascii=False)}
    return types.Table(
        tableName=name,
        dbName=database,
        owner=settings.user,
        createTime=seconds,
        lastAccessTime=seconds,
        retention=0,
        partitionKeys=[],
        parameters={**view.options, **comment, **fields},
        tableType=_VIEW,
        viewOriginalText=view.query,
        viewExpandedText=view.query,
        sd=types.StorageDescriptor(
            cols=columns,
            compressed=False,
            numBuckets=-1,
            serdeInfo=types.SerDeInfo(parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
    )


def view_of(table: Any) -> View:
    """Return a view of the metastore, of any engine. Raises UnsupportedError for a type that Paimon does not have."""
    parameters = dict(table.parameters or {})
    comment = parameters.pop(_COMMENT, None)
    parameters.pop(_DDL_TIME, None)
    stored = parameters.pop(_FIELDS, None)
    columns = (table.sd and table.sd.cols) or ()
    try:
        fields = () if stored is None else tuple(map(field_from_json, parse_json(stored)))
    except (ValueError, TypeError) as error:
        raise CorruptedError(
            f"the Hive metastore describes the columns of view '{table.dbName}.{table.tableName}' wrongly: {error}"
        ) from error
    if [f.name for f in fields] != [c.name for c in columns]:
        fields = tuple(DataField(i, c.name, paimon_type(c.type, c.name), c.comment) for i, c in enumerate(columns))
    return View(fields, table.viewExpandedText or table.viewOriginalText, {}, comment, parameters)


def location_of(described: Any) -> str | None:
    """Return the path of a table or a partition, as this engine writes paths; `None`: no path is stored."""
    stated = (described.parameters or {}).get(_LOCATION) or (described.sd and described.sd.location)
    return engine_path(stated) if stated else None


def database_location_of(database: Any) -> str | None:
    """Return the path of a database, as this engine writes paths; `None`: no path is stored."""
    stated = (database.parameters or {}).get(_LOCATION) or database.locationUri
    return engine_path(stated) if stated else None


def set_database_location(database: Any, path: str, settings: HiveSettings) -> None:
    """Store the path of a database."""
    if settings.location_in_properties:
        database.parameters = {**(database.parameters or {}), _LOCATION: hive_path(path)}
        database.locationUri = None
    else:
        database.locationUri = hive_path(path)


def without_location(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a database without the path that `set_database_location` stores."""
    return {key: value for key, value in properties.items() if key != _LOCATION}


def engine_path(path: str) -> str:
    """Return a path of Hadoop as this engine writes it: a local path without ``file:``."""
    if not path.lower().startswith("file:/"):
        return path.rstrip("/")
    return "/" + path[len("file:") :].lstrip("/").rstrip("/")


def hive_path(path: str) -> str:
    """Return a path of this engine as Hadoop writes it: a local path as ``file:/...``."""
    return f"file:{path}" if scheme_of(path) == "file" and path.startswith("/") else path


def new_table(
    types: Any, database: str, name: str, schema: TableSchema, path: str, settings: HiveSettings, *, external: bool
) -> Any:
    """Return the description of a new table. Raises UnsupportedError for a type that Hive does not have.

    Args:
        types: the module with the structures of the metastore.
        database: the name of the database.
        name: the name of the table.
        schema: the newest schema of the table.
        path: its directory.
        settings: the catalog's settings.
        external: True if its files outlive it.
    """
    seconds, keys = int(time.time()), schema.partition_keys if has_partitions(schema) else ()
    parameters = _parameters(schema, settings)
    parameters |= {key: schema.options[key] for key in _ALWAYS_SYNCED if key in schema.options}
    parameters |= {_TYPE: "PAIMON", _STORAGE: _HANDLER, **({_EXTERNAL_FLAG: "TRUE"} if external else {})}
    table = types.Table(
        tableName=name,
        dbName=database,
        owner=settings.user,
        createTime=seconds,
        lastAccessTime=seconds,
        retention=_FOREVER,
        partitionKeys=[_column(types, schema.field(key), schema.field(key).description) for key in keys],
        parameters=parameters,
        tableType=_EXTERNAL if external else _MANAGED,
        sd=types.StorageDescriptor(
            cols=[],
            location=None,
            compressed=False,
            numBuckets=0,
            serdeInfo=types.SerDeInfo(),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
    )
    _describe(types, table, schema)
    set_location(table, path, settings)
    return table


def update_table(types: Any, table: Any, schema: TableSchema, removed: Iterable[str], settings: HiveSettings) -> None:
    """Change the description of a table to a newer schema. ``removed``: the options that the schema has lost."""
    parameters = table.parameters = {**(table.parameters or {}), **_parameters(schema, settings)}
    for key in removed:
        parameters.pop(key if settings.sync_all else key.removeprefix(_HIVE_PREFIX), None)
    if schema.comment is None:
        parameters.pop(_COMMENT, None)
    _describe(types, table, schema)


def same_description(table: Any, other: Any) -> bool:
    """Return True if two descriptions show Hive the same columns and options."""
    names = set(other.parameters or {})
    return (
        [(c.name, c.type, c.comment) for c in table.sd.cols] == [(c.name, c.type, c.comment) for c in other.sd.cols]
        and {k: v for k, v in (table.parameters or {}).items() if k in names} == dict(other.parameters or {})
        and is_paimon(table)
    )


def new_partition(types: Any, table: Any, values: list[str], directory: str, settings: HiveSettings) -> Any:
    """Return the description of a partition. ``directory``: its ``k1=v1/k2=v2`` below the table's data files."""
    seconds, storage = int(time.time()), table.sd
    parameters = dict(table.parameters or {})
    base = hive_path(location_of(table) or "")
    if "data-file.path-directory" in parameters:
        base = f"{base}/{parameters['data-file.path-directory'].strip('/')}"
    path = f"{base}/{directory}"
    in_properties = settings.location_in_properties
    return types.Partition(
        values=values,
        dbName=table.dbName,
        tableName=table.tableName,
        createTime=seconds,
        lastAccessTime=seconds,
        parameters={_LOCATION: path} if in_properties else {},
        sd=types.StorageDescriptor(
            cols=storage.cols,
            location=storage.location if in_properties else path,
            inputFormat=storage.inputFormat,
            outputFormat=storage.outputFormat,
            compressed=storage.compressed,
            numBuckets=storage.numBuckets,
            serdeInfo=storage.serdeInfo,
            bucketCols=storage.bucketCols,
            sortCols=storage.sortCols,
            parameters=storage.parameters,
        ),
    )


def has_partitions(schema: TableSchema) -> bool:
    """Return True if the metastore lists the partitions of a table."""
    return bool(schema.partition_keys) and schema.options.value(METASTORE_PARTITIONED_TABLE)


def _describe(types: Any, table: Any, schema: TableSchema) -> None:
    """Set format classes, columns and comment. Partition keys stay: no metastore changes them."""
    storage = table.sd
    storage.inputFormat, storage.outputFormat = _INPUT, _OUTPUT
    storage.serdeInfo = storage.serdeInfo or types.SerDeInfo()
    storage.serdeInfo.serializationLib, storage.serdeInfo.parameters = _SERDE, {}
    keys = {key.name for key in table.partitionKeys}
    storage.cols = [_column(types, f, column_comment(f)) for f in schema.fields if f.name not in keys]
    if schema.comment is not None:
        table.parameters[_COMMENT] = schema.comment


def _column(types: Any, field: DataField, comment: str | None) -> Any:
    return types.FieldSchema(name=field.name, type=hive_type(field.type, field.name), comment=comment)


def set_location(table: Any, path: str, settings: HiveSettings) -> None:
    """Store the directory of a table."""
    if settings.location_in_properties:
        table.parameters[_LOCATION] = hive_path(path)
    else:
        table.sd.location = hive_path(path)


def _parameters(schema: TableSchema, settings: HiveSettings) -> dict[str, str]:
    """Return the options of a schema, and its keys, that the metastore stores."""
    if not settings.sync_all:
        named = schema.options.items()
        return {key.removeprefix(_HIVE_PREFIX): value for key, value in named if key.startswith(_HIVE_PREFIX)}
    keys = {
        "primary-key": schema.primary_keys,
        "partition": schema.partition_keys,
        "bucket-key": schema.bucket_keys,
    }
    return {**schema.options, **{key: ",".join(names) for key, names in keys.items() if names}}
