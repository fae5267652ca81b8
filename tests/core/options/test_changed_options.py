"""A changed option of a table with data is refused, or the table keeps its rows and can be written."""

import datetime
import shutil
from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pytest

from paimon_core import InvalidInputError, MissingDependencyError, Schema, SetOption, Table, UnsupportedError
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.option import Option, Options

VALUES = (
    "true", "false", "0", "2147483647", "1", "3", "1 b", "1 kb", "64 mb", "1 h", "1 s", "parquet", "orc", "avro",
    "none", "full", "lookup", "input", "zstd", "lz4", "id", "c", "p", "x", "mod", "hive", "order", "zorder", "hilbert",
    "first-row", "partial-update", "aggregation", "descending", "user-defined", "value", "uncompressed",
)  # fmt: skip
"""Texts of which some are values of each option."""
MOST = 3
"""The number of values tried for an option."""
OF_READS = ("scan.", "incremental-", "consumer-id", "partition.expiration-", "partition.timestamp-", "record-level.")
"""Options that choose rows, by their first letters."""
OTHERS = frozenset({"bucket", "lookup.cache-max-memory-size", "query-auth.enabled"})
"""Options after which a write needs an overwrite first, has too little memory, or reads need a server."""
KEYS = sorted(key for key in ALL_OPTIONS if not key.startswith(OF_READS) and key not in OTHERS)
OF_FILES = ("parquet.compression", "parquet.enable.dictionary")
"""Options without declaration, which take some of the values."""
COLUMNS = pa.schema([("id", pa.int32()), ("p", pa.date32()), ("q", pa.string()), ("c", pa.int32())])
TABLES = {
    "append": Schema(COLUMNS, partition_keys=["p", "q"]),
    "bucketed": Schema(COLUMNS, options={"bucket": "2", "bucket-key": "id"}),
    "keyed": Schema(COLUMNS, partition_keys=["p"], primary_keys=["id", "p"], options={"bucket": "2"}),
    "dynamic": Schema(COLUMNS, primary_keys=["id"], options={"bucket": "-1"}),
}


def rows(ids: list[int], value: int) -> pa.Table:
    days = [datetime.date(2024, 1, 1 + i % 2) for i in ids]
    texts = ["", None, "x"]
    columns = {"id": ids, "p": days, "q": [texts[i % 3] for i in ids], "c": [value if i % 4 else None for i in ids]}
    return pa.table(columns, schema=COLUMNS)


def values_of(key: str) -> list[str]:
    """Return texts of values other than the default."""
    if key in OF_FILES:
        return ["true", "false", "x", "zstd"]
    option: Option = ALL_OPTIONS[key]
    chosen: dict[str, str] = {}
    for text in VALUES:
        try:
            value = Options({option.key: text}).value(option)
        except InvalidInputError:
            continue
        if value != option.default:
            chosen.setdefault(repr(value), text)
    return list(chosen.values())[:MOST]


def states(path: str) -> list[list[dict]]:
    """Return the rows of a table now, after a write, and after a compaction."""
    found = [sorted(Table.open(path).to_arrow().to_pylist(), key=repr)]
    for change in (lambda table: table.write(rows([2, 4, 5, 8], 30)), lambda table: table.compact(full=True)):
        change(Table.open(path))
        found.append(sorted(Table.open(path).to_arrow().to_pylist(), key=repr))
    return found


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Callable[[str], str]:
    """Return a function that makes a table with rows of two commits, and returns its path."""
    directory = tmp_path_factory.mktemp("tables")

    @cache
    def made(name: str) -> str:
        table = Table.create(str(directory / name), TABLES[name])
        table.write(rows([1, 2, 3, 4], 10))
        table.write(rows([2, 3, 6], 20))
        return table.path

    def copied(name: str) -> str:
        path = str(directory / "copy")
        shutil.rmtree(path, ignore_errors=True)
        return shutil.copytree(made(name), path)

    return copied


@pytest.fixture(scope="module")
def expected(tables) -> dict[str, list[list[dict]]]:
    return {name: states(tables(name)) for name in TABLES}


@pytest.mark.cases(20)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", [*KEYS, *OF_FILES])
def test_rows_stay(tables, expected, key):
    for text in values_of(key):
        for name in TABLES:
            path = tables(name)
            try:
                Table.open(path).alter([SetOption(key, text)])
            except (InvalidInputError, UnsupportedError, MissingDependencyError):
                found = sorted(Table.open(path).to_arrow().to_pylist(), key=repr)
                assert found == expected[name][0], (key, text, name)
                continue
            assert states(path) == expected[name], (key, text, name)
