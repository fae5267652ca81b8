"""A user's program under ``mypy --strict``: the shipped types are complete, and wrong calls are errors."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("polars")
pytest.importorskip("duckdb")

ROOT = Path(__file__).parents[3]
PROGRAM = """
import datetime as dt
from collections.abc import Iterator

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
from typing_extensions import assert_type

from paimon_core import AddColumn, FileSystemCatalog, PaimonError, Schema, SetOption, SystemTable, Table, col

catalog = FileSystemCatalog("/warehouse", options={"table-default.bucket": "2"})
table = catalog.create_table("shop.orders", Schema(pa.schema([("id", pa.int64())]), primary_keys=["id"]))
assert_type(table, Table)
made = table.write(pa.table({"id": [1]}))
if made is not None:
    assert_type(made.id, int)
    assert_type(made.total_record_count, int | None)
table.write(pd.DataFrame({"id": [1]}))
table.write(pl.DataFrame({"id": [1]}), ["+I"])
table.write(duckdb.sql("SELECT 1 AS id"))
table.overwrite(Table.open("/warehouse/shop.db/other"), {"dt": "2026-01-31"})
table.write([{"id": 1}])  # error
table.write("id")  # error
table.overwrite({"id": [1]})  # error
assert_type(table.to_polars(["id"], col("id") > 1, snapshot_id=3), pl.DataFrame)
assert_type(table.to_duckdb(connection=duckdb.connect()), duckdb.DuckDBPyRelation)
table.to_duckdb(connection="memory")  # error
table.to_pandas(dtype_backend=1)  # error
table.to_arrow(tag="v1", timestamp=dt.datetime(2026, 1, 31))
table.to_arrow(snapshot=7)  # error
table.to_polars(snapshot_id="seven")  # error
table.snapshot(tags="v1")  # error
files = table.system_table("files")
assert_type(files, SystemTable)
assert_type(SystemTable.open("/warehouse/shop.db/orders$files"), SystemTable)
assert_type(files.to_pandas(limit=3, snapshot_id=1), pd.DataFrame)
files.to_batches(snapshots=1)  # error
files.write(pa.table({"id": [1]}))  # error
assert_type(table.get({"id": 1}), dict[str, object] | None)
table.get([{"id": 1}]).num_rows
table.get(1)  # error
table.to_arrow(columns="id", filter=3)  # error
table.alter([AddColumn("note", "STRING"), SetOption("bucket", "4")])
table.delete("id = 1")
table.compact(full=True, partitions=[{"dt": "d"}])
table.compact(full="yes")  # error
assert_type([tag.name for tag in table.tags.list()], list[str])
table.rollback_to(timestamp=dt.datetime(2026, 1, 31))
table.missing  # error


def notes(source: Table) -> Iterator[object]:
    for batch in source.to_batches(["note"], limit=5):
        yield from batch.column(0).to_pylist()


try:
    print(*notes(table))
except PaimonError as error:
    print(error)
"""


@pytest.mark.more
def test_program_is_checked_strictly(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", program.name],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""},
        capture_output=True,
        text=True,
    )
    actual = {int(line) for line in re.findall(r"^program\.py:(\d+): error", done.stdout, re.MULTILINE)}
    expected = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# error")}
    assert actual == expected, done.stdout + done.stderr
    assert len(expected) == 14


def test_each_package_ships_its_types():
    for package in ("paimon_core", "paimon_spark", "paimon_command"):
        assert (ROOT / package / "py.typed").is_file()
        assert f'{package} = ["py.typed"]' in (ROOT / "pyproject.toml").read_text()
