"""docs/spec/format.md is enough: a reader and a writer made of the page alone get along with the engine."""

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.fileindex import FILE_INDEXES
from paimon_core.fileindex.index_file import pack
from paimon_core.format import format_of
from paimon_core.options.option import Options
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.golden.reading import CASES
from tests.support.plain_index import bitmap, blobs, bsi, container, range_bitmap
from tests.support.plain_paimon import PlainTable, append, create

COLUMNS = pa.schema([("p", pa.string()), ("k", pa.int32()), ("v", pa.string())])
VALUES = ("", "short", "longer than a slot", None)


def rows_of(table):
    return texts(tuple(row.values()) for row in table.to_arrow().to_pylist())


def texts(rows):
    """In one order, and so that NaN equals itself."""
    return sorted(map(repr, rows))


def batch(*rows):
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS)


def numbered(count, text, first=0):
    return [
        ("ab"[k % 2] * (1 + 8 * (k % 2)), k, VALUES[k % 4] and f"{text} {VALUES[k % 4]}") for k in range(first, count)
    ]


@pytest.mark.parametrize("thin", ["true", "false"])
def test_upserts_of_engine_are_read(tmp_path, thin):
    options = {"bucket": "3", "data-file.thin-mode": thin, "manifest.merge-min-count": "2"}
    table = Table.create(str(tmp_path), Schema(COLUMNS, ["p", "k"], ["p"], options))
    table.write(batch(*numbered(60, "one")))
    table.write(batch(*numbered(40, "two", 20)))
    table.write(batch(*numbered(10, "gone")), row_kinds=["-D"] * 10)
    assert texts(PlainTable(tmp_path).rows()) == rows_of(table)
    table.compact(full=True)
    assert len(rows_of(table)) == 50
    assert texts(PlainTable(tmp_path).rows()) == rows_of(table)


@pytest.mark.parametrize("bitmap64", ["true", "false"])
def test_marked_deletes_of_engine_are_read(tmp_path, bitmap64):
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": bitmap64}
    table = Table.create(str(tmp_path), Schema(COLUMNS, options=options))
    table.write(batch(*numbered(500, "one")))
    table.write(batch(*numbered(700, "two", 500)))
    table.delete("k >= 100 and k < 300")
    table.delete("k in (3, 17, 350, 401, 640)")
    assert len(rows_of(table)) == 495
    assert texts(PlainTable(tmp_path).rows()) == rows_of(table)


@pytest.mark.parametrize("case", ["keys_parquet", "thin"])
def test_tables_of_java_are_read(case):
    root = CASES / case / "table"
    assert texts(PlainTable(root).rows()) == rows_of(Table.open(str(root)))


def test_tables_written_by_page_are_read_and_continued(tmp_path):
    create(tmp_path, 3)
    append(tmp_path, 3, [(0, *row) for row in numbered(60, "one")], 0)
    append(tmp_path, 3, [(3 if row[1] < 10 else 2, *row) for row in numbered(40, "two")], 60)
    table = Table.open(str(tmp_path))
    assert len(rows_of(table)) == 50
    assert rows_of(table) == texts(PlainTable(tmp_path).rows())
    assert table.to_arrow(filter="p = 'a' and k = 38").to_pylist() == [
        {"p": "a", "k": 38, "v": "two longer than a slot"}
    ]
    table.write(batch(*numbered(30, "three")))
    table.compact(full=True)
    assert len(rows_of(table)) == 60
    assert rows_of(table) == texts(PlainTable(tmp_path).rows())


# ---- file indexes and blobs

KINDS = {
    "STRING": (None, [b"", b"a", b"bb", "müller".encode(), b"x" * 40]),
    "TINYINT": (1, [-128, -1, 0, 1, 127]),
    "INT": (4, [-(2**31), -7, 0, 3, 2**31 - 1]),
    "BIGINT": (8, [-(2**63) + 1, -7, 0, 3, 2**63 - 1]),
}


def column_of(kind, seed, rows=3000):
    """Values as an Arrow column, and as an index keeps them: few and many of a kind, with NULL."""
    drawn = np.random.default_rng(seed)
    width, known = KINDS[kind]
    more = [b"%d" % n for n in drawn.integers(0, 500, 300)] if width is None else drawn.integers(-99, 99, 300).tolist()
    expected = [None, *known, *more]
    values = [expected[i] for i in drawn.integers(0, len(expected), rows)]
    column = pa.array(values, pa.binary()).cast(pa.string()) if width is None else pa.array(values, f"int{8 * width}")
    return column, values


def built(kind, index, options, column):
    builder = FILE_INDEXES[index].builder(parse_type(kind), options)
    builder.add(column.slice(0, 1000))
    builder.add(column.slice(1000))
    body = builder.finish()
    read = container(pack({"über": {index: body}, "m[k]": {"bitmap": b""}}))
    assert read["m[k]"] == {"bitmap": b""}
    return read["über"][index]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{"version": "1"}, {"version": "2", "index-block-size": "256 b"}], ids=str)
def test_bitmaps_are_read(kind, options):
    column, values = column_of(kind, 1)
    assert bitmap(built(kind, "bitmap", options, column), KINDS[kind][0]) == values


@pytest.mark.parametrize("kind", ["TINYINT", "INT", "BIGINT"])
def test_bit_sliced_numbers_are_read(kind):
    column, values = column_of(kind, 2)
    assert bsi(built(kind, "bsi", {}, column)) == values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", ["0 b", "64 b", "16 kb"])
def test_range_bitmaps_are_read(kind, chunk):
    column, values = column_of(kind, 3)
    assert range_bitmap(built(kind, "range-bitmap", {"chunk-size": chunk}, column), KINDS[kind][0]) == values


def test_blob_files_are_read():
    values = [b"", None, b"x" * 70_000, b"abc", None, b"y"]
    column, sink = DataField(0, "b", parse_type("BLOB")), pa.BufferOutputStream()
    writer = format_of("data.blob", [column]).open_writer(sink, [column], Options({}), "none")
    writer.write(pa.table({"b": pa.array(values, pa.binary())}))
    writer.close()
    assert blobs(sink.getvalue().to_pybytes()) == values
