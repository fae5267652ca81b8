"""Two readers of Iceberg tables, pyiceberg and DuckDB: what each sees of a table by its hint, and what is on disk."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import fastavro
import pyarrow as pa
from pyiceberg.table import StaticTable

Rows = list[dict[str, Any]]


def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for module in (duckdb_extension_avro, duckdb_extension_iceberg):
        pattern = f"{Path(module.__file__).parent}/extensions/*/*.duckdb_extension"
        connection.execute(f"LOAD '{glob.glob(pattern)[0]}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


_DUCKDB = _connection()


def static_table(directory: str) -> StaticTable:
    """The table whose ``metadata`` is in a directory, as pyiceberg opens it by the hint."""
    return StaticTable.from_metadata(directory)


def pyiceberg_rows(directory: str, snapshot_id: int | None = None, where: str | None = None) -> pa.Table:
    """Return the rows that pyiceberg reads."""
    scan = static_table(directory).scan(**({} if where is None else {"row_filter": where}), snapshot_id=snapshot_id)
    return scan.to_arrow()


def duckdb_rows(directory: str, snapshot_id: int | None = None, where: str | None = None) -> pa.Table:
    """Return the rows that DuckDB reads."""
    at = "" if snapshot_id is None else f", snapshot_from_id => {snapshot_id}::UBIGINT"
    found = _DUCKDB.sql(f"SELECT * FROM iceberg_scan('{directory}'{at}) WHERE {where or 'true'}")
    return found.to_arrow_table()


def rows(table: pa.Table) -> Rows:
    """Rows in one order, for a comparison."""
    return sorted(table.to_pylist(), key=repr)


def avro_records(path: str) -> list[dict[str, Any]]:
    """The records of a manifest or a manifest list."""
    with open(path, "rb") as file:
        return list(fastavro.reader(file))


def unneeded_files(directory: str) -> set[str]:
    """Return the metadata files that neither the hint nor a version names, directly or through manifest lists.

    Older versions list snapshots that have expired since.
    """
    metadata = f"{directory}/metadata"
    named = {"version-hint.text"}
    for path in glob.glob(f"{metadata}/v*.metadata.json"):
        named |= {os.path.basename(path), *_named(StaticTable.from_metadata(path))}
    return set(os.listdir(metadata)) - named


def _named(table: StaticTable) -> Iterable[str]:
    for snapshot in table.metadata.snapshots:
        yield os.path.basename(snapshot.manifest_list)
        if not os.path.exists(snapshot.manifest_list):
            continue
        for record in avro_records(snapshot.manifest_list):
            yield os.path.basename(record["manifest_path"])
