"""Reads tables with another library and leaves each as an Arrow IPC file: runs in that library's own environment.

Usage: ``python read.py pypaimon|rust WAREHOUSE ORDERS`` where the file ORDERS holds one JSON object per line:
``{"table": "db.t", "into": "rows.arrow"}``. Answers a line per order on standard output: ``{"ok": true}`` or the error.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module

import pyarrow as pa


def by_pypaimon(warehouse: str) -> Callable[[str], pa.Table]:
    """Apache Paimon's own Python library."""
    catalog = import_module("pypaimon").CatalogFactory.create({"warehouse": warehouse})

    def read(name: str) -> pa.Table:
        builder = catalog.get_table(name).new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    return read


def by_rust(warehouse: str) -> Callable[[str], pa.Table]:
    """Apache Paimon's Rust library, through its Python package."""
    catalog = import_module("pypaimon_rust.datafusion").PaimonCatalog({"warehouse": warehouse})

    def read(name: str) -> pa.Table:
        builder = catalog.get_table(name).new_read_builder()
        return pa.Table.from_batches(list(builder.new_read().read_arrow(builder.new_scan().plan().splits())))

    return read


def answer(read: Callable[[str], pa.Table], order: dict[str, str]) -> dict[str, object]:
    """Run one order; an exception of the library (a Rust panic too) is its answer."""
    try:
        rows = read(order["table"])
        with pa.OSFile(order["into"], "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
    except BaseException as error:
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}
    return {"ok": True}


def main() -> None:
    """Answer every order; one that fails does not keep the others from being answered."""
    library, warehouse, orders = sys.argv[1:]
    read = {"pypaimon": by_pypaimon, "rust": by_rust}[library](warehouse)
    with open(orders, encoding="utf-8") as lines:
        for order in map(json.loads, lines):
            print(json.dumps(answer(read, order)))


if __name__ == "__main__":
    main()
