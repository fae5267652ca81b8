"""File indexes: the bytes Java writes and ours are the same, each reads the other's, and rows come out as without."""

import pyarrow as pa
import pytest

from paimon_core.datafile.reader import read_file
from paimon_core.fileindex.columns import FileIndexes, indexed_columns
from paimon_core.fileindex.container import unpack
from paimon_core.fileio.fileio import join
from paimon_core.scan.entries import live_entries
from paimon_core.types.parse import parse_type
from tests.conformance.compare import same
from tests.conformance.domain import value
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
TIMES = ("TIMESTAMP(0)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(6) WITH LOCAL TIME ZONE")
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIME(3)")
TYPES = {
    "bloom-filter": (*INTEGERS, *TIMES, "FLOAT", "DOUBLE", "STRING", "CHAR(5)", "BYTES", "BINARY(4)"),
    "bitmap": (*INTEGERS, *TIMES, "FLOAT", "DOUBLE", "STRING", "CHAR(5)", "BOOLEAN"),
    "bsi": (*INTEGERS, *TIMES, "DECIMAL(4, 2)", "DECIMAL(18, 5)"),
    "range-bitmap": (
        *INTEGERS, "TIMESTAMP(0)", "TIMESTAMP(6)", "FLOAT", "DOUBLE", "STRING", "BOOLEAN", "DECIMAL(18, 5)",
    ),
}  # fmt: skip
SETTINGS = {
    "bloom-filter": ({"items": "700"}, {"items": "50", "fpp": "0.01"}),
    "bitmap": ({}, {"version": "1"}, {"index-block-size": "80 b"}),
    "bsi": ({},),
    "range-bitmap": ({}, {"chunk-size": "30 b"}),
}
CASES = [(kind, settings) for kind in TYPES for settings in SETTINGS[kind]]


def columns(kind):
    return [["k", "INT NOT NULL"], *([f"c{i}", t] for i, t in enumerate(TYPES[kind])), ["m", "MAP<STRING, INT>"]]


def options(kind, settings, threshold="1 b"):
    names = [*(f"c{i}" for i in range(len(TYPES[kind]))), "m[a]", "m[none]"]
    said = {f"file-index.{kind}.{n.partition('[')[0]}.{key}": v for n in names for key, v in settings.items()}
    return {
        f"file-index.{kind}.columns": ",".join(names), "file-index.in-manifest-threshold": threshold, **said
    }  # fmt: skip


def random_rows(rng, kind, count, few=False):
    """Rows of the columns; the least BIGINT left out, whose opposite Java's bit slices do not have."""
    types = [parse_type(t) for _, t in columns(kind)]
    pools = [[value(rng, t) for _ in range(6 if few else count)] for t in types]
    names = [n for n, _ in columns(kind)]
    rows = [{n: rng.choice(pool) for n, pool in zip(names, pools, strict=True)} for _ in range(count)]
    for row in rows:
        keys = rng.sample(["a", "b", "é"], rng.randrange(3))
        row |= {
            "k": rng.randrange(1000),
            "m": rng.choice([None, sorted([key, rng.choice([None, 1, 2, 300])] for key in keys)]),
        }
        row |= {n: v + 1 for n, v in row.items() if v == -(2**63)}
    return rows


def live(table):
    store = table.store
    return [(e, join(store.bucket_path(e.partition, e.bucket), "")) for e in live_entries(store, table.snapshot()).live]


def stored_indexes(table):
    """By data file the bytes of its indexes."""
    found = {}
    for entry, directory in live(table):
        beside = [name for name in entry.file.extra_files if name.endswith(".index")]
        assert len(beside) + (entry.file.embedded_index is not None) == 1
        found[entry.file.file_name] = (
            table.store.io.read(join(directory, beside[0])) if beside else entry.file.embedded_index
        )
    return found


def rows_of_files(table):
    store = table.store
    for entry, _ in live(table):
        batches = read_file(store, entry.partition, entry.bucket, entry.file, store.schema.fields)
        yield entry.file.file_name, pa.Table.from_batches(batches)


def bodies(container):
    """[column, kind, bytes] of every index."""
    found = unpack(container, "an index")
    return [[column, kind, body.hex()] for column, kinds in found.items() for kind, body in kinds.items()]


@pytest.mark.parametrize(("kind", "settings"), CASES)
@pytest.mark.parametrize("few", [True, False], ids=["few-values", "many-values"])
def test_bytes_are_those_of_java(judge, name, rng, kind, settings, few):
    table = SharedTable(judge, name)
    table.java("create_table", fields=columns(kind), options=options(kind, settings))
    for count in (1, 400):
        table.java("write", rows=[["+I", row] for row in random_rows(rng, kind, count, few)])
    ours = table.ours()
    theirs = stored_indexes(ours)
    assert len(theirs) == 2
    for file, rows in rows_of_files(ours):
        made = FileIndexes(indexed_columns(ours.schema.options, ours.schema.fields))
        made.add(rows)
        mine = made.finish()
        same(bodies(mine), bodies(theirs[file]), f"{name}: indexes of {file}")
        assert mine == theirs[file]
