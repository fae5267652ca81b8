"""The system tables of a table's definition: schemas, options and aggregate functions."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.system_tables.kind import (
    SOME_LONG,
    SOME_TEXT,
    SOME_TIME,
    Fixed,
    Part,
    Request,
    SystemTableKind,
    batch_of,
    columns,
)
from paimon_core.inspect.system_tables.value_text import shown_options
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import STRING
from paimon_core.types.human_text import wall_millis
from paimon_core.types.parse import field_to_json

_SCHEMAS = columns(
    ("schema_id", SOME_LONG),
    ("fields", SOME_TEXT),
    ("partition_keys", SOME_TEXT),
    ("primary_keys", SOME_TEXT),
    ("options", SOME_TEXT),
    ("comment", STRING),
    ("update_time", SOME_TIME),
)
_OPTIONS = columns(("key", SOME_TEXT), ("value", SOME_TEXT))
_AGGREGATION_FIELDS = columns(
    ("field_name", SOME_TEXT),
    ("field_type", SOME_TEXT),
    ("function", STRING),
    ("function_options", STRING),
    ("comment", STRING),
)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _read_schemas(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each version of the schema; a filter on ``schema_id`` limits the files that are read."""
    schemas, requested_ids = request.store.schemas, request.pinned("schema_id")
    ids = [i for i in schemas.ids() if requested_ids is None or i in requested_ids]
    versions = list(parallel_map(schemas.get, ids))
    yield batch_of(
        _SCHEMAS,
        request.columns,
        {
            "schema_id": [s.id for s in versions],
            "fields": lambda: [_json([field_to_json(field) for field in s.fields]) for s in versions],
            "partition_keys": [_json(s.partition_keys) for s in versions],
            "primary_keys": [_json(s.primary_keys) for s in versions],
            "options": lambda: [_json(shown_options(s.options)) for s in versions],
            "comment": [s.comment for s in versions],
            "update_time": [wall_millis(s.time_millis) for s in versions],
        },
    )


def _newest(request: Request) -> TableSchema:
    """Return the stored schema, without dynamic options."""
    schemas = request.store.schemas
    return schemas.latest() or request.store.schema


def _read_options(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each option of the newest schema."""
    options = shown_options(_newest(request).options)
    yield batch_of(_OPTIONS, request.columns, {"key": list(options), "value": list(options.values())})


def _read_aggregation_fields(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each column, with the options ``fields.<column>.*`` of the newest schema."""
    schema = _newest(request)
    keys_by_column = _options_of_fields(schema)
    yield batch_of(
        _AGGREGATION_FIELDS,
        request.columns,
        {
            "field_name": list(schema.names),
            "field_type": [str(field.type) for field in schema.fields],
            "function": [
                f"[{', '.join(schema.options[key] for key in keys_by_column[name])}]" for name in schema.names
            ],
            "function_options": [f"[{', '.join(keys_by_column[name])}]" for name in schema.names],
            "comment": [field.description for field in schema.fields],
        },
    )


def _options_of_fields(schema: TableSchema) -> dict[str, list[str]]:
    """Return the option keys of each column; the longest matching name wins, because a name may contain dots."""
    keys_by_column: dict[str, list[str]] = {name: [] for name in schema.names}
    longest_first = sorted(schema.names, key=len, reverse=True)
    for key in schema.options:
        name = next((n for n in longest_first if key.startswith(f"fields.{n}.")), None)
        if name is not None:
            keys_by_column[name].append(key)
    return keys_by_column


SCHEMAS = SystemTableKind("schemas", Fixed(_SCHEMAS), _read_schemas)
OPTIONS = SystemTableKind("options", Fixed(_OPTIONS), _read_options)
AGGREGATION_FIELDS = SystemTableKind("aggregation_fields", Fixed(_AGGREGATION_FIELDS), _read_aggregation_fields)
