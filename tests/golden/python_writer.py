"""Writes and reads tables with pypaimon or pypaimon_rust: runs in an environment that has these libraries.

Usage: ``python python_writer.py pypaimon|rust WAREHOUSE``. Each line of standard input is a JSON object with ``do`` and
``table``, and each answer is a line of standard output: ``{"ok": true}`` or the error. Rows are in Arrow IPC files.
pypaimon creates the tables, tags and branches of both libraries, because pypaimon_rust has no functions for this.
"""

import json
import sys
from importlib import import_module
from typing import Any

import pyarrow as pa


class Library:
    """One library over one warehouse. The methods are the orders."""

    def __init__(self, name: str, warehouse: str) -> None:
        self._paimon = import_module("pypaimon")
        self._catalog = self._paimon.CatalogFactory.create({"warehouse": warehouse})
        self._catalog.create_database("db", True)
        self._rust = None if name == "pypaimon" else import_module("pypaimon_rust.datafusion").PaimonCatalog
        self._warehouse = warehouse

    def create(self, table: str, rows: str, keys: list[str], partitions: list[str], options: dict[str, str]) -> None:
        """Create a table with the columns of a file of rows."""
        schema = self._paimon.Schema.from_pyarrow_schema(
            _read(rows).schema, primary_keys=keys, partition_keys=partitions, options=options
        )
        self._catalog.create_table(table, schema, False)

    def write(self, table: str, rows: str) -> None:
        """Append or upsert rows in one commit."""
        builder = self._open(table).new_batch_write_builder()
        writer, data = builder.new_write(), _read(rows)
        for batch in data.combine_chunks().to_batches():
            writer.write_arrow(batch) if self._rust else writer.write_arrow_batch(batch)
        self._commit(builder, writer.prepare_commit())
        writer.close()

    def delete(self, table: str, ids: list[int]) -> None:
        """Delete rows by their row ids."""
        builder = self._open(table).new_batch_write_builder()
        update = builder.new_update()
        self._commit(builder, update.delete_by_row_id(ids))

    def tag(self, table: str, name: str, snapshot: int) -> None:
        """Create a tag."""
        self._catalog.get_table(table).create_tag(name, snapshot)

    def branch(self, table: str, name: str, tag: str) -> None:
        """Create a branch of a tag."""
        self._catalog.get_table(table).branch_manager().create_branch(name, tag)

    def alter(self, table: str, rename: list[str], add: list[str]) -> None:
        """Rename a column, and add one: a name and a type."""
        change = import_module("pypaimon.schema.schema_change").SchemaChange
        kind = import_module("pypaimon.schema.data_types").AtomicType(add[1])
        self._catalog.alter_table(table, [change.rename_column(*rename), change.add_column(add[0], kind)], False)

    def read(self, table: str, options: dict[str, str], into: str) -> None:
        """Store the rows of a table, at a snapshot or tag, in a file."""
        opened = self._open(table)
        if self._rust:
            builder = opened.new_read_builder(options)
            read, splits = builder.new_read(), builder.new_scan().plan().splits()
            batches = list(read.read_arrow(splits))
            found = pa.Table.from_batches(batches) if batches else None
        else:
            builder = (opened.copy(options) if options else opened).new_read_builder()
            found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        assert found is not None, "no rows"
        with pa.OSFile(into, "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
            writer.write_table(found)

    def _open(self, table: str) -> Any:
        if self._rust:
            return self._rust({"warehouse": self._warehouse}).get_table(table)  # a new one sees new schemas
        return self._catalog.get_table(table)

    def _commit(self, builder: Any, messages: Any) -> None:
        commit = builder.new_commit()
        commit.commit(messages)
        commit.close()


def _read(path: str) -> pa.Table:
    with pa.memory_map(path) as source:
        return pa.ipc.open_file(source).read_all()


def main() -> None:
    """Carry out every order; one that fails does not keep the others from being carried out."""
    library = Library(*sys.argv[1:])
    for line in sys.stdin:
        order = json.loads(line)
        try:
            getattr(library, order.pop("do"))(**order)
            print(json.dumps({"ok": True}), flush=True)
        except BaseException as error:  # a panic of Rust, too
            print(json.dumps({"ok": False, "error": f"{type(error).__name__}: {error}"}), flush=True)


if __name__ == "__main__":
    main()
