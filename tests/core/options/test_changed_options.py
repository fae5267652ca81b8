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
LEVELS = {
    "bucket": "1",
    "num-sorted-run.compaction-trigger": "3",
    "compaction.max-size-amplification-percent": "10000",
    "deletion-vectors.modifiable": "true",
}
SUM = LEVELS | {"merge-engine": "aggregation", "fields.c.aggregate-function": "sum"}
IN_LEVELS = {
    "rows in levels": LEVELS,
    "parts in levels": SUM,
    "looked up": SUM | {"changelog-producer": "lookup"},
    "vectors": LEVELS | {"deletion-vectors.enabled": "true"},
}
"""Options of tables with keys in several levels."""
TABLES = {
    "append": Schema(COLUMNS, partition_keys=["p", "q"]),
    "bucketed": Schema(COLUMNS, options={"bucket": "2", "bucket-key": "id"}),
    "keyed": Schema(COLUMNS, partition_keys=["p"], primary_keys=["id", "p"], options={"bucket": "2"}),
    "dynamic": Schema(COLUMNS, primary_keys=["id"], options={"bucket": "-1"}),
    **{name: Schema(COLUMNS, primary_keys=["id"], options=options) for name, options in IN_LEVELS.items()},
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


def stored(path: str, **at: str) -> pa.Table:
    """Return the rows of a table in a fixed order."""
    return Table.open(path).to_arrow(**at).sort_by([(name, "ascending") for name in COLUMNS.names])


def states(path: str) -> list[pa.Table]:
    """Return the rows of a table now, after a write, after a compaction, and at its tag."""
    found = [stored(path)]
    for change in (lambda table: table.write(rows([2, 4, 5, 8], 30)), lambda table: table.compact(full=True)):
        change(Table.open(path))
        found.append(stored(path))
    return [*found, stored(path, tag="made")]


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Callable[[str], str]:
    """Return a function that makes a table with rows and a tag, and returns its path."""
    directory = tmp_path_factory.mktemp("tables")

    @cache
    def made(name: str) -> str:
        table = Table.create(str(directory / name), TABLES[name])
        if name in IN_LEVELS:
            table.write(rows([*range(1000)], 10))
            table.compact(full=True)
        for number in range(7 if name in IN_LEVELS else 2):
            table.write(rows([number + 1, number + 2, 6], number))
        if "merge-engine" not in TABLES[name].options and name in IN_LEVELS:
            table.delete("id = 3")
        assert len({row["level"] for row in table.system_table("files").to_arrow().to_pylist()}) > (name in IN_LEVELS)
        table.tags.create("made")
        return table.path

    def copied(name: str) -> str:
        path = str(directory / "copy")
        shutil.rmtree(path, ignore_errors=True)
        return shutil.copytree(made(name), path)

    return copied


@pytest.fixture(scope="module")
def expected(tables) -> dict[str, list[pa.Table]]:
    return {name: states(tables(name)) for name in TABLES}


@pytest.mark.cases(20)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", [*KEYS, *OF_FILES])
def test_rows_stay(tables, expected, key):
    for text in values_of(key):
        for name in TABLES:
            if text == "1" and name in IN_LEVELS:  # a file or a batch for each row takes too long
                continue
            path = tables(name)
            try:
                Table.open(path).alter([SetOption(key, text)])
            except (InvalidInputError, UnsupportedError, MissingDependencyError):
                assert stored(path).equals(expected[name][0]), (key, text, name)
                continue
            same = [now.equals(then) for now, then in zip(states(path), expected[name], strict=True)]
            if (key, name) == ("write-only", "vectors"):  # rows of level 0 are hidden until a compaction
                del same[1]
            assert all(same), (key, text, name, same)
