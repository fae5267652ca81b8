"""Reads tables with another library and leaves each as an Arrow IPC file: runs in that library's own environment.

Usage: ``python read.py pypaimon|rust WAREHOUSE ORDERS`` where the file ORDERS holds one JSON object per line:
``{"table": "db.t", "into": "rows.arrow"}``. Answers one line per order on standard output: ``{"ok": true}`` or the error.
"""

import json
import sys
from collections.abc import Callable

import pyarrow as pa


def by_pypaimon(warehouse: str) -> Callable[[str], pa.Table]:
    """Apache Paimon's own Python library."""
    from pypaimon import CatalogFactory

    catalog = CatalogFactory.create({"warehouse": warehouse})

    def read(name: str) -> pa.Table:
        builder = catalog.get_table(name).new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    return read


def by_rust(warehouse: str) -> Callable[[str], pa.Table]:
    """Apache Paimon's Rust library, through its Python package."""
    from pypaimon_rust.datafusion import PaimonCatalog

    catalog = PaimonCatalog({"warehouse": warehouse})

    def read(name: str) -> pa.Table:
        builder = catalog.get_table(name).new_read_builder()
        return pa.Table.from_batches(list(builder.new_read().read_arrow(builder.new_scan().plan().splits())))

    return read


def main() -> None:
    """Answer every order; one that fails does not keep the others from being answered."""
    library, warehouse, orders = sys.argv[1:]
    read = {"pypaimon": by_pypaimon, "rust": by_rust}[library](warehouse)
    with open(orders, encoding="utf-8") as lines:
        for order in map(json.loads, lines):
            try:
                rows = read(order["table"])
                with pa.OSFile(order["into"], "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
                    writer.write_table(rows)
                print(json.dumps({"ok": True}))
            except BaseException as error:
                print(json.dumps({"ok": False, "error": f"{type(error).__name__}: {error}"}))


if __name__ == "__main__":
    main()
