"""Rows as Python dicts, for the formats that encode row by row."""

from typing import Any

import pyarrow as pa


def python_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return one dict for each row; maps become dicts too, at any depth.

    pyarrow before 20 can only return maps as lists of pairs. Raises KeyError for a map with a duplicate key.
    """
    rows: list[dict[str, Any]] = batch.to_pylist()
    for name, kind in zip(batch.schema.names, batch.schema.types, strict=True):
        if _holds_map(kind):
            for row in rows:
                row[name] = _with_dicts(row[name], kind)
    return rows


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_holds_map(kind.field(i).type) for i in range(kind.num_fields))


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    if value is None or not _holds_map(kind):
        return value
    if pa.types.is_map(kind):
        items = {key: _with_dicts(item, kind.item_type) for key, item in value}
        if len(items) != len(value):
            raise KeyError(f"a map has a key twice: {[key for key, _ in value]}")
        return items
    if pa.types.is_struct(kind):
        return {name: _with_dicts(item, kind.field(name).type) for name, item in value.items()}
    return [_with_dicts(item, kind.value_type) for item in value]
