"""Targets of files with rows and of indexes: data files, blobs, variants, deletion vectors, file indexes, bitmaps."""

import functools
import io
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.deletion.vector import DeletionVector
from paimon_core.deletion.vector_files import read_vectors
from paimon_core.errors import PaimonError
from paimon_core.fileindex import FILE_INDEXES
from paimon_core.fileindex.index_file import pack, read_sizes
from paimon_core.fileindex.roaring import bitmap, decode_mask
from paimon_core.fileindex.search import search
from paimon_core.format import FORMATS, format_of
from paimon_core.format.blob_descriptor import described, descriptors
from paimon_core.format.blob_view import blob_views, views
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.thrift import decode as decode_thrift
from paimon_core.manifest.index_entry import DeletionRange
from paimon_core.merge.aggregate.bitmap64 import Bitmap64, _Container
from paimon_core.options.option import Options
from paimon_core.predicate.filter import bound_filter
from paimon_core.types.arrow import arrow_schema, assign_ids
from paimon_core.types.datatype import NO_ID, AtomicType, DataField
from paimon_core.types.parse import parse_type
from paimon_core.variant.paths import variant_get, variant_set
from tests.fuzz.target import Target
from tests.support.faulty_io import MemoryIO
from tests.support.index_files import unpack


def _fields(*kinds: str) -> tuple[DataField, ...]:
    return assign_ids([DataField(NO_ID, f"c{i}", parse_type(kind)) for i, kind in enumerate(kinds)], 0)[0]


# ---- data files

PLAIN = _fields("INT", "STRING", "DECIMAL(10, 2)", "TIMESTAMP(3)", "BOOLEAN", "DATE", "DOUBLE", "BYTES")
NESTED = _fields("INT", "ARRAY<INT>", "MAP<STRING, BIGINT>", "ROW<x INT, y STRING>")
_PLAIN_ROWS = [
    (i, f"text {i % 3}", Decimal(i) / 4, datetime(2020, 1, 1 + i), i % 2 == 0, date(1970 + i, 1, 1), i / 3, bytes([i]))
    for i in range(12)
]
_NESTED_ROWS = [(i, [i, None], [(f"k{j}", j) for j in range(i % 3)], {"x": i, "y": "z"}) for i in range(6)]


def _table(fields: tuple[DataField, ...], rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = arrow_schema(fields)
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays([pa.concat_arrays([c, pa.nulls(1, c.type)]) for c in columns], schema=schema)


def _written(name: str, fields: tuple[DataField, ...], rows: list[tuple[Any, ...]], compression: str) -> bytes:
    sink = io.BytesIO()
    writer = format_of(f"f.{name}", fields).open_writer(sink, fields, Options({}), compression)
    writer.write(_table(fields, rows))
    writer.close()
    return sink.getvalue()


def data_seeds(name: str, nested: bool) -> Callable[[], list[bytes]]:
    def made() -> list[bytes]:
        kinds = [(PLAIN, _PLAIN_ROWS)] + ([(NESTED, _NESTED_ROWS)] if nested else [])
        return [_written(name, *kind, codec) for kind in kinds for codec in ("none", "zstd")][: 2 + 2 * nested]

    return made


def data_file(name: str, data: bytes) -> None:
    for fields, where in ((PLAIN, "c0 > 3 and c1 = 'text 1'"), (NESTED, "c0 < 2")):
        for predicate in (None, bound_filter(where, fields)):
            request = ReadRequest(fields, 5, predicate=predicate, path=f"data-0.{name}")
            for batch in format_of(f"f.{name}", fields).read(pa.BufferReader(data), request):
                validated(batch)
    if name in FORMATS:
        FORMATS[name].row_count(pa.BufferReader(data), f"data-0.{name}")
        FORMATS[name].describe(pa.BufferReader(data), f"data-0.{name}")


def validated(batch: pa.RecordBatch) -> None:
    """Raise ArrowInvalid for a batch whose buffers do not fit, but not for texts that are no UTF-8.

    Only some formats have checksums, so a changed byte may change a text.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise


BLOBS = [_fields(kind) for kind in ("BLOB", "ARRAY<BLOB>", "MAP<INT, BLOB>", "MAP<STRING, BLOB>")]
_BLOB_ROWS = (
    [(b"one",), (b"",), (b"three" * 9,)],
    [([b"a", None, b"bc"],), ([],)],
    [([(1, b"a"), (7, b"")],), ([],)],
    [([("k", b"a"), ("", b"")],), ([],)],
)


def blob_seeds() -> list[bytes]:
    pairs = enumerate(zip(BLOBS, _BLOB_ROWS, strict=True))
    return [bytes([i]) + _written("blob", fields, rows, "none") for i, (fields, rows) in pairs]


def blob_file(data: bytes) -> None:
    fields = BLOBS[data[0] % len(BLOBS)] if data else BLOBS[0]
    for options in ({}, {"blob-as-descriptor": "true"}):
        form = format_of("f.blob", fields, Options(options))
        for batch in form.read(pa.BufferReader(data[1:]), ReadRequest(fields, 5, path="f.blob")):
            batch.validate(full=True)
    form.row_count(pa.BufferReader(data[1:]), "f.blob")


def reference_seeds() -> list[bytes]:
    made = descriptors("memory://t/b.blob", np.array([4, 90]), np.array([7, -1 + 9]))
    return [*made.to_pylist(), *blob_views("db.t", 3, pa.array([5], pa.int64())).to_pylist()]


def references(data: bytes) -> None:
    values = pa.array([data, None, data], pa.binary())
    for read in (described, views):
        with suppress(PaimonError):
            read(values, "column b")


# ---- variants

_VARIANT = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])


def variant_seeds() -> list[bytes]:
    start = pa.array([{"value": b"\x02\x00\x00", "metadata": b"\x01\x00\x00"}], _VARIANT)
    values = {
        "$.a": 1,
        "$.b": "text",
        "$.c": 2.5,
        "$.d": Decimal("1.25"),
        "$.e": True,
        "$.f": b"x",
        "$.g": date(2020, 1, 1),
    }
    made = [row for i in range(1, 8) for row in variant_set(start, dict(list(values.items())[:i])).to_pylist()]
    return [bytes([len(row["metadata"])]) + row["metadata"] + row["value"] for row in made]


def variant(data: bytes) -> None:
    size = data[0] if data else 0
    rows = pa.array([{"metadata": data[1 : 1 + size], "value": data[1 + size :]}] * 2, _VARIANT)
    for path, kind in (("$.a", "BIGINT"), ("$.b", "STRING"), ("$[0]", None), ("$.d", "DECIMAL(9, 2)"), ("$", None)):
        with suppress(PaimonError):
            variant_get(rows, path, kind, strict=False)
    variant_set(rows, {"$.z": 1})


# ---- deletion vectors and bitmaps


def vector_seeds() -> list[bytes]:
    rows = ([1, 2, 3], [0], range(5000), [7, 70_000, 700_000], range(0, 9000, 2))
    return [
        *(_vector(r).to_bytes(bitmap64=wide) for r in rows for wide in (False, True)),
        _vector([5, 2**33]).to_bytes(bitmap64=True),
    ]


def _vector(rows: Iterable[int]) -> DeletionVector:
    return DeletionVector(np.array(list(rows), np.int64))


def vector(data: bytes) -> None:
    found = DeletionVector.from_bytes(data, "index-0")
    found.cardinality, found.to_bytes(bitmap64=True)
    size = int.from_bytes(data[:4], "big")
    read_vectors(
        MemoryIO({"memory://t/i": data}), "memory://t/i", [DeletionRange("data-0", 0, size, found.cardinality)]
    )


def bitmap_seeds() -> list[bytes]:
    return [bitmap(np.array(rows)) for rows in ([1, 2, 3], list(range(0, 9000, 2)), [1, 70_000], list(range(6000)))]


def roaring(data: bytes) -> None:
    decode_mask(data, 0, 100_000)


def bitmap64_seeds() -> list[bytes]:
    made = []
    for keys in ((0,), (0, 1, 2), tuple(range(20)), (0, 1 << 40)):
        whole = Bitmap64(None, [], 0)
        for key in keys:
            container = _Container(np.array([1, 5, 9], np.uint16), False)
            whole.update(Bitmap64((key.to_bytes(6, "big"), 0), [container], 1))
        made.append(whole.serialize())
    return made


def bitmap64(data: bytes) -> None:
    both = Bitmap64.parse(data)
    both.update(Bitmap64.parse(data))
    both.serialize()


# ---- file indexes

_KINDS = ("INT", "STRING", "BIGINT", "DECIMAL(10, 2)", "DOUBLE", "DATE", "BOOLEAN", "TIMESTAMP(3)")
INDEXED = _fields(*_KINDS)
_TESTS = {
    "INT": ("= 3", "> 2", "in (1, 2, 900)", "is null", "!= 1"),
    "STRING": ("= 'b'", ">= 'a'", "like 'b%'", "is not null"),
    "BIGINT": ("= 3", "<= 2"),
    "DECIMAL(10, 2)": ("= 1.25", "> 1"),
    "DOUBLE": ("= 0", "< 1.5"),
    "DATE": ("= '1970-01-02'",),
    "BOOLEAN": ("= true",),
    "TIMESTAMP(3)": (">= '2020-01-01 00:00:00'",),
}
_ROWS = 40


@functools.cache
def _predicates() -> list[Any]:
    tests = [f"c{i} {test}" for i, kind in enumerate(_KINDS) for test in _TESTS[kind]]
    return [bound_filter(test, INDEXED) for test in tests]


def _column(kind: str) -> list[Any]:
    make = {
        "INT": lambda i: i % 7,
        "STRING": lambda i: "abc"[i % 3] * (i % 4),
        "BIGINT": lambda i: i * 10**12,
        "DECIMAL(10, 2)": lambda i: Decimal(i) / 4,
        "DOUBLE": lambda i: i / 2,
        "DATE": lambda i: date(1970, 1, 1 + i % 5),
        "BOOLEAN": lambda i: i % 2 == 0,
        "TIMESTAMP(3)": lambda i: datetime(2020, 1, 1 + i % 9),
    }[kind]
    return [None if i % 11 == 10 else make(i) for i in range(_ROWS)]


def index_seeds() -> list[bytes]:
    made, schema = [], arrow_schema(INDEXED)
    for name, index in FILE_INDEXES.items():
        for options in (
            ({"version": "1"}, {}) if name == "bitmap" else ({"items": "100"},) if "bloom" in name else ({},)
        ):
            bodies = {}
            for field, column in zip(INDEXED, schema, strict=True):
                assert isinstance(field.type, AtomicType)
                try:
                    index.check(field.type, options)
                except ValueError:
                    continue
                builder = index.builder(field.type, options)
                builder.add(pa.array(_column(_KINDS[field.id]), column.type))
                bodies[field.name] = {name: builder.finish() or b""}
            made.append(pack(bodies))
    return made


def index_file(data: bytes) -> None:
    read_sizes(io.BytesIO(data), "f.index")
    indexes = unpack(data, "f.index")
    for predicate in _predicates():
        search(indexes, predicate, INDEXED, _ROWS, "f.index")


# ---- footers


def footer_seeds() -> list[bytes]:
    made = [data[:-8] for data in data_seeds("parquet", True)()]
    return [
        data[-int.from_bytes(whole[-8:-4], "little") :]
        for data, whole in zip(made, data_seeds("parquet", True)(), strict=True)
    ]


TARGETS = (
    *(
        Target(
            name,
            "avro" if name == "avro" else "text" if name in ("csv", "json") else "bytes",
            data_seeds(name, name not in ("csv",)),
            functools.partial(data_file, name),
        )
        for name in ("parquet", "orc", "avro", "csv", "json")
    ),
    Target("blob", "selected", blob_seeds, blob_file),
    Target("blob-reference", "bytes", reference_seeds, references),
    Target("variant", "bytes", variant_seeds, variant),
    Target("deletion-vector", "vector", vector_seeds, vector),
    Target("roaring", "bytes", bitmap_seeds, roaring, (ValueError,)),
    Target("bitmap64", "bytes", bitmap64_seeds, bitmap64, (ValueError,)),
    Target("file-index", "index", index_seeds, index_file),
    Target("parquet-footer", "bytes", footer_seeds, decode_thrift, (ValueError, IndexError)),
)
