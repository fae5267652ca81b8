"""A filter for a few values decodes its columns first: it skips row groups, and returns the rows of a whole read."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import CorruptedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.format import parquet, parquet_probe
from paimon_core.format.conform import conform_batch
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.parquet import ParquetFormat
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import BIGINT, STRING, DataField
from paimon_core.types.parse import parse_type
from paimon_core.types.system_fields import ROW_POSITION

ROWS, GROUP_ROWS = 20_000, 2_000
FIELDS = [
    DataField(0, "k", BIGINT),
    DataField(1, "s", STRING),
    DataField(2, "d", parse_type("DOUBLE")),
    DataField(3, "few", BIGINT),
    DataField(4, "wide", STRING),
]
DOUBLES = [0.0, -0.0, float("nan"), 1.5, 2.5]


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    ids = rng.permutation(ROWS)
    columns = [
        pa.array(ids, mask=ids % 50 == 0),
        pa.array([None if i % 60 == 0 else f"text-{i:06d}" for i in ids]),
        pa.array([DOUBLES[i % 5] if i in (3, 5, 6, 7) else float(i) for i in ids]),
        pa.array(ids % 4),
        pa.array([f"{'x' * 30}-{i}" for i in rng.permutation(ROWS)]),
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema(FIELDS))


@pytest.fixture
def source(rows):
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=GROUP_ROWS, use_dictionary=["few"])
    return sink.getvalue()


@pytest.fixture(autouse=True)
def small_probes(monkeypatch):
    monkeypatch.setattr(parquet, "_WORTH_PROBE", 1)


def read(source, text, fields=FIELDS, **arguments):
    """Return the rows of a read with a filter, before the filter is applied, and the encoded bytes."""
    sizes: list[int] = []
    stored = [field for field in fields if field.id != ROW_POSITION.id]
    predicate = None if text is None else bind(parse_predicate(text), stored)
    request = ReadRequest(fields, 700, predicate=predicate, path="f", count_bytes=sizes.append, **arguments)
    batches = list(ParquetFormat().read(pa.BufferReader(source), request))
    table = pa.Table.from_batches(batches, arrow_schema(fields))
    return table if predicate is None else table.filter(evaluate(predicate, table)), table.num_rows, sum(sizes)


@pytest.mark.parametrize(
    ("text", "most_rows"),
    [
        ("k = 4711", GROUP_ROWS),
        ("k = 4711 AND few = 3", GROUP_ROWS),
        ("k IN (4711, 11, 12)", 3 * GROUP_ROWS),
        ("k = 4711 OR s = 'text-000011'", ROWS),
        ("k = 50", 0),  # NULL in its row
        ("k = 4711 AND s IS NULL", ROWS),  # the columns of the filter have half of the bytes
        ("s = 'text-000123'", GROUP_ROWS),
        ("s = 'text-000060'", 0),
        ("d = 0.0", 3 * GROUP_ROWS),
        ("d IN (7.0, 1.5)", 2 * GROUP_ROWS),
        ("few = 1", ROWS),
        ("k > 10", ROWS),
        ("k = 4711 OR few = 1", ROWS),
        ("k IS NULL", ROWS),
    ],
)
def test_probe_returns_rows_of_whole_read(rows, source, text, most_rows):
    matching, decoded, _ = read(source, text)
    predicate = bind(parse_predicate(text), FIELDS)
    expected = rows.filter(evaluate(predicate, rows))
    assert str(matching.to_pylist()) == str(expected.to_pylist())  # NaN and the sign of zero
    assert decoded <= most_rows


def test_positions_of_rows_after_probe(source):
    whole = read(source, None, [*FIELDS, ROW_POSITION])[0]
    matching, decoded, _ = read(source, "k IN (4711, 9000)", [*FIELDS, ROW_POSITION])
    at = {row["k"]: row[ROW_POSITION.name] for row in whole.to_pylist()}
    assert {row["k"]: row[ROW_POSITION.name] for row in matching.to_pylist()} == {4711: at[4711]} | (
        {9000: at[9000]} if 9000 in at else {}
    )
    assert decoded < ROWS


def test_probe_decodes_fewer_bytes(source, monkeypatch):
    few = read(source, "k = 4711")[2]
    monkeypatch.setattr(parquet, "_WORTH_PROBE", 1 << 30)
    assert few < read(source, "k = 4711")[2] / 3


def test_part_of_file_is_probed(source):
    found = [read(source, "k = 4711", part=part) for part in (range(ROWS // 2), range(ROWS // 2, ROWS))]
    assert sorted(rows.num_rows for rows, _, _ in found) == [0, 1]
    assert sum(decoded for _, decoded, _ in found) == GROUP_ROWS


def test_column_that_file_lacks_is_null(source):
    fields = [*FIELDS, DataField(9, "added", BIGINT)]
    assert read(source, "k = 4711 AND added IS NULL", fields)[0].num_rows == 1
    assert read(source, "k = 4711 AND added = 1", fields)[0].num_rows == 0


def test_damaged_page_of_filter_is_corruption(source):
    data = bytearray(source.to_pybytes())
    start = pq.read_metadata(pa.BufferReader(source)).row_group(3).column(0).data_page_offset
    data[start + 40 : start + 400] = bytes(360)
    with pytest.raises(CorruptedError, match="f"):
        read(pa.py_buffer(bytes(data)), "k = 4711")


@pytest.mark.parametrize("threads", [None, 1])
def test_probes_keep_limits_of_threads_and_bytes(source, monkeypatch, threads):
    batches: list[int] = []

    def conform(batch, fields, path):
        batches.append(batch.num_rows)
        return conform_batch(batch, fields, path)

    def in_threads(function, items, most):
        assert most == (threads or os.cpu_count())
        return parallel_map(function, items, most)

    monkeypatch.setattr(parquet_probe, "conform_batch", conform)
    monkeypatch.setattr(parquet_probe, "parallel_map", in_threads)
    text = "s = 'text-000123'"
    matching, decoded, _ = read(source, text, batch_bytes=4_000, threads=threads)
    assert (matching.num_rows, decoded) == (1, GROUP_ROWS)
    assert sum(batches) >= ROWS - GROUP_ROWS
    least, most = (700, 700) if threads is None else (4_000 // 20, 4_000 // len("text-000123"))
    assert least <= max(batches) <= most
