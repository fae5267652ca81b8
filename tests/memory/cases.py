"""Operations on tables larger than ``memory-limit``, and the rows that each must leave.

Values are long texts that files store in few bytes, so a table of many gigabytes of rows is small on disk.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.read.merge_masks import merge_masks, merged_sections
from paimon_core.schema.schema import Schema
from paimon_core.table import Table

MIB = 1 << 20
BATCH_BYTES = 4 * MIB
_ID = pa.field("id", pa.int64(), nullable=False)
_PLAIN = pa.schema([_ID, ("n", pa.int64()), ("v", pa.string())])
_WIDE = pa.schema([_ID, ("n", pa.int64()), *((f"c{i}", pa.int64()) for i in range(2_000))])


@dataclass(frozen=True)
class Rows:
    """Rows ``(id, n = 1, values)`` of one kind. ``width``: bytes of the value; `None`: 2 000 columns of numbers."""

    width: int | None = 1_200

    @property
    def schema(self) -> pa.Schema:
        return _WIDE if self.width is None else _PLAIN

    @property
    def row_bytes(self) -> int:
        return 8 * 2_002 if self.width is None else self.width + 20

    def batches(self, first: int, count: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``count`` consecutive ids in batches of a few megabytes."""
        step = max(1, BATCH_BYTES // self.row_bytes)
        for start in range(first, first + count, step):
            yield self.batch(np.arange(start, min(start + step, first + count)))

    def batch(self, ids: np.ndarray) -> pa.RecordBatch:
        ones = np.ones(len(ids), np.int64)
        if self.width is None:
            columns = [pa.array(ids * 7 + i if i % 10 == 0 else ones) for i in range(2_000)]
        else:
            raw = np.full((len(ids), self.width), ord("x"), np.uint8)
            raw[:, :16] = ord("a") + (ids[:, None] * 2654435761 >> np.arange(0, 64, 4)) % 16
            offsets = np.arange(0, (len(ids) + 1) * self.width, self.width, dtype=np.int32)
            columns = [pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(raw))]
        return pa.RecordBatch.from_arrays([pa.array(ids), pa.array(ones), *columns], schema=self.schema)


@dataclass(frozen=True)
class Content:
    """The rows of a table: ``rows`` ids from 0, in ``runs`` writes that each hold all of them, or disjoint parts."""

    rows: int
    runs: int = 1
    disjoint: bool = False

    def parts(self) -> list[tuple[int, int]]:
        if not self.disjoint:
            return [(0, self.rows)] * self.runs
        bounds = [self.rows * i // self.runs for i in range(self.runs + 1)]
        return [(low, high - low) for low, high in itertools.pairwise(bounds)]


Run = Callable[[Table, Rows, Content], None]


@dataclass(frozen=True)
class Case:
    """An operation on a table of many times the limit.

    Args:
        what: what it shows.
        run: the operation. It raises AssertionError if rows are wrong.
        options: options of the table.
        keyed: True for a table with a primary key.
        runs: the number of writes that fill the table; 0: the operation writes the rows.
        disjoint: True if these writes have different keys.
        rows: the rows.
        share: the part of the full number of rows: less for rows that are slow to make.
    """

    what: str
    run: Run
    options: Mapping[str, str] = field(default_factory=dict)
    keyed: bool = True
    runs: int = 1
    disjoint: bool = False
    rows: Rows = field(default_factory=Rows)
    share: float = 1.0

    def content(self, size: int) -> Content:
        """Return the content of a table with ``size`` bytes of rows in all writes."""
        runs = max(1, self.runs)
        rows = int(size * self.share) // self.rows.row_bytes
        return Content(max(20, rows if self.disjoint else rows // runs), runs, self.disjoint)

    def make(self, path: str, size: int) -> None:
        """Create the table, and fill it unless the operation writes the rows."""
        content, keys = self.content(size), ["id"] if self.keyed else []
        Table.create(path, Schema(self.rows.schema, primary_keys=keys, options=dict(self.options)))
        table = Table.open(path, options={"write-only": "true"})
        for first, count in content.parts() if self.runs else []:
            table.write(_stream(self.rows, first, count))


def _stream(rows: Rows, first: int, count: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, rows.batches(first, count))


def _check(table: Table, rows: int, total: int | None = None) -> None:
    """Read the table, and compare the number of rows, the sum of the ids, and the sum of the column n with the rows."""
    found = ids = ones = 0
    for batch in table.to_batches():
        found += batch.num_rows
        ids += pc.sum(batch["id"]).as_py()
        ones += pc.sum(batch["n"]).as_py()
    expected = (rows, rows * (rows - 1) // 2, rows if total is None else total)
    assert (found, ids, ones) == expected, ((found, ids, ones), expected)


def _read(table: Table, rows: Rows, content: Content) -> None:
    _check(table, content.rows)


def _read_sums(table: Table, rows: Rows, content: Content) -> None:
    _check(table, content.rows, content.rows * content.runs)


def _write(table: Table, rows: Rows, content: Content) -> None:
    table.write(_stream(rows, 0, content.rows))
    assert table.snapshot().total_record_count >= content.rows


def _upsert(table: Table, rows: Rows, content: Content) -> None:
    """Write all rows again over the rows of the table, and compact what the writer must."""
    table.write(_stream(rows, 0, content.rows))
    _check(table, content.rows)


def _compact(table: Table, rows: Rows, content: Content) -> None:
    table.compact(full=True)
    _check(table, content.rows)


def _compact_sums(table: Table, rows: Rows, content: Content) -> None:
    table.compact(full=True)
    _check(table, content.rows, content.rows * content.runs)


def _sort(table: Table, rows: Rows, content: Content) -> None:
    table.compact(order_by=["v"])
    _check(table, content.rows)


def _rescale(table: Table, rows: Rows, content: Content) -> None:
    table.maintenance.rescale(4)
    _check(Table.open(table.path, options={"memory-limit": table.store.options["memory-limit"]}), content.rows)


def _delete(table: Table, rows: Rows, content: Content) -> None:
    table.delete(f"id >= {content.rows // 2}")
    _check(table, content.rows // 2)


def _update(table: Table, rows: Rows, content: Content) -> None:
    """Change every second row."""
    table.update({"n": pc.add(pc.field("n"), 1)}, f"id < {content.rows // 2}")
    _check(table, content.rows, content.rows + content.rows // 2)


def _merge(table: Table, rows: Rows, content: Content) -> None:
    """Match all rows of the table with a source of keys."""
    source = pa.table({"id": np.arange(0, content.rows, 2)})
    table.merge(source, on=["id"]).when_matched_update(set={"n": 3}).execute()
    _check(table, content.rows, content.rows + 2 * source.num_rows)


def _masks(table: Table, rows: Rows, content: Content) -> None:
    live = 0
    for split in table.scan().plan().splits:
        for section in merged_sections(table.store, split):
            live += sum(int(mask.sum()) for mask in merge_masks(table.store, section).values())
    assert live == content.rows


def _get(table: Table, rows: Rows, content: Content) -> None:
    for start in range(0, 1_000, 100):
        keys = pa.table({"id": np.arange(start, start + 100) * (content.rows // 1_000)})
        assert table.get(keys).num_rows == 100


_ONE = {"bucket": "1"}
_SUMS = {**_ONE, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
_LOOKUPS = {**_ONE, "changelog-producer": "lookup"}
_ORC, _AVRO = {**_ONE, "file.format": "orc"}, {**_ONE, "file.format": "avro"}
_LONG, _COLUMNS, _SHORT = Rows(MIB), Rows(None), Rows(16)

CASES: dict[str, Case] = {
    "read": Case("read an append table", _read, keyed=False, runs=4, disjoint=True),
    "merge": Case("read 8 overlapping runs", _read, _ONE, runs=8),
    "merge-100": Case("read 100 overlapping runs", _read, _ONE, runs=100),
    "merge-sums": Case("read 100 runs with the engine aggregation", _read_sums, _SUMS, runs=100),
    "merge-orc": Case("read 8 overlapping runs of ORC files", _read, _ORC, runs=8),
    "merge-avro": Case("read 8 overlapping runs of Avro files", _read, _AVRO, runs=8, share=0.3),
    "append": Case("write an append table", _write, keyed=False, runs=0),
    "write": Case("write a table with a primary key", _write, {"bucket": "4"}, runs=0),
    "write-orc": Case("write ORC files", _write, _ORC, runs=0),
    "upsert": Case("write all rows again", _upsert, {"bucket": "2"}, share=0.5),
    "dynamic": Case("write all rows again, with dynamic buckets", _upsert, {"bucket": "-1"}, share=0.5),
    "compact": Case("compact 8 overlapping runs", _compact, _ONE, runs=8),
    "compact-sums": Case("compact 30 runs with the engine aggregation", _compact_sums, _SUMS, runs=30),
    "compact-lookup": Case("compact with a lookup changelog", _compact, _LOOKUPS, runs=4),
    "compact-append": Case("compact 12 files of an append table", _compact, keyed=False, runs=12, disjoint=True),
    "sort": Case("sort an append table", _sort, keyed=False, runs=2, disjoint=True),
    "rescale": Case("rewrite a bucket into 4", _rescale, _ONE),
    "delete": Case("DELETE half of a table with a primary key", _delete, _ONE),
    "delete-append": Case("DELETE half of an append table", _delete, keyed=False, runs=2, disjoint=True),
    "update": Case("UPDATE half of an append table", _update, keyed=False, runs=2, disjoint=True),
    "merge-into": Case("MERGE INTO a table with a primary key", _merge, _ONE, share=0.5),
    "masks": Case("the masks of 8 overlapping runs", _masks, _ONE, runs=8),
    "get": Case("look up keys", _get, _ONE, runs=8),
    "long-write": Case("write values of 1 MB", _write, _ONE, runs=0, rows=_LONG),
    "long-merge": Case("read 8 runs with values of 1 MB", _read, _ONE, runs=8, rows=_LONG),
    "long-merge-100": Case("read 100 runs with values of 1 MB", _read, _ONE, runs=100, rows=_LONG),
    "long-compact": Case("compact 8 runs with values of 1 MB", _compact, _ONE, runs=8, rows=_LONG),
    "long-orc": Case("read 8 runs of ORC with values of 1 MB", _read, _ORC, runs=8, rows=_LONG),
    "long-sort": Case("sort values of 1 MB", _sort, keyed=False, runs=2, disjoint=True, rows=_LONG),
    "short-upsert": Case("write 36 bytes for each key again", _upsert, _ONE, rows=_SHORT, share=0.5),
    "short-merge": Case("read 2 runs of rows of 36 bytes", _read, _ONE, runs=2, rows=_SHORT),
    "short-compact": Case("compact 2 runs of rows of 36 bytes", _compact, _ONE, runs=2, rows=_SHORT),
    "wide-write": Case("write 2 000 columns", _write, _ONE, runs=0, rows=_COLUMNS, share=0.4),
    "wide-merge": Case("read 8 runs of 2 000 columns", _read, _ONE, runs=8, rows=_COLUMNS, share=0.4),
    "wide-compact": Case("compact 8 runs of 2 000 columns", _compact, _ONE, runs=8, rows=_COLUMNS, share=0.4),
}
