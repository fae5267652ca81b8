"""Changes and reads a table with pypaimon: runs in that library's own environment.

Usage: ``python evolve.py WAREHOUSE TABLE``. Each line of standard input is a JSON object: ``{"do": "create"}``,
``{"do": "append", "rows": [[id, v, n], ...]}``, ``{"do": "update", "ids": [...], "columns": {"v": [...]}}``,
``{"do": "delete", "ids": [...]}`` or ``{"do": "read"}``. Each answer is a line of standard output.
"""

import json
import sys
from importlib import import_module
from typing import Any

import pyarrow as pa

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())])
OPTIONS = {
    "bucket": "-1",
    "row-tracking.enabled": "true",
    "data-evolution.enabled": "true",
    "deletion-vectors.enabled": "true",
}


def answer(catalog: Any, name: str, order: dict[str, Any]) -> object:
    """Run one order; only a read has an answer, its rows."""
    if order["do"] == "create":
        schema = import_module("pypaimon").Schema.from_pyarrow_schema(COLUMNS, options=OPTIONS)
        catalog.create_table(name, schema, False)
        return None
    table = catalog.get_table(name)
    if order["do"] == "read":
        builder = table.new_read_builder()
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        return [list(row.values()) for row in rows.to_pylist()]
    builder = table.new_batch_write_builder()
    if order["do"] == "append":
        writer = builder.new_write()
        rows = [dict(zip(COLUMNS.names, row, strict=True)) for row in order["rows"]]
        writer.write_arrow(pa.Table.from_pylist(rows, schema=COLUMNS))
        messages = writer.prepare_commit()
    elif order["do"] == "delete":
        messages = builder.new_update().delete_by_row_id(order["ids"])
    else:
        update = builder.new_update().with_update_type(list(order["columns"]))
        columns = {c: pa.array(values, COLUMNS.field(c).type) for c, values in order["columns"].items()}
        ids = pa.array(order["ids"], pa.int64())
        messages = update.update_by_arrow_with_row_id(pa.table({"_ROW_ID": ids, **columns}))
    commit = builder.new_commit()
    commit.commit(messages)
    commit.close()
    return None


def main() -> None:
    """Answer every order."""
    warehouse, name = sys.argv[1:]
    catalog = import_module("pypaimon").CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("db", True)
    for line in sys.stdin:
        print(json.dumps({"answer": answer(catalog, name, json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
