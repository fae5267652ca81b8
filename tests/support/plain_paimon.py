"""A reader and a writer of tables made of docs/spec/format.md alone: nothing of the engine's code is used here.

Small types, Parquet files, deduplication and deletion vectors only. Section numbers refer to the page.
"""

import json
import struct
import uuid
import zlib
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

EMPTY_ROW = bytes(12)
EMPTY_STATS = {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": []}


# ---- rows (5)


def decode_row(data, types):
    """Values of a serialised row (5.5); ``types`` are `INT`, `BIGINT`, `STRING`."""
    arity = struct.unpack(">i", data[:4])[0]
    assert arity == len(types)
    row, head = data[4:], 8 * ((arity + 71) // 64)
    values = []
    for i, kind in enumerate(types):
        slot = row[head + 8 * i : head + 8 * i + 8]
        if row[(8 + i) // 8] >> ((8 + i) % 8) & 1:
            values.append(None)
        elif kind in ("INT", "BIGINT"):
            values.append(struct.unpack("<q" if kind == "BIGINT" else "<i4x", slot)[0])
        elif slot[7] & 0x80:
            values.append(slot[: slot[7] & 0x7F].decode())
        else:
            length, offset = struct.unpack("<II", slot)
            values.append(row[offset : offset + length].decode())
    return values


def encode_row(values):
    """A row of whole numbers, texts and NULLs without the arity prefix (5.1 to 5.3)."""
    head = 8 * ((len(values) + 71) // 64)
    nulls, slots, tail = 0, b"", b""
    for i, value in enumerate(values):
        data = value.encode() if isinstance(value, str) else b""
        if value is None:
            nulls |= 1 << (8 + i)
            slots += bytes(8)
        elif isinstance(value, int):
            slots += struct.pack("<i4x", value)
        elif len(data) < 8:
            slots += data.ljust(7, b"\0") + bytes([0x80 + len(data)])
        else:
            slots += struct.pack("<II", len(data), head + 8 * len(values) + len(tail))
            tail += data + bytes(-len(data) % 8)
    return nulls.to_bytes(head, "little") + slots + tail


def serialized(values):
    """The row with its arity prefix (5.5)."""
    return struct.pack(">i", len(values)) + encode_row(values)


def murmur(row):
    """The hash of 6.2, signed."""
    mask, h = 0xFFFFFFFF, 42

    def rotate(x, by):
        return (x << by | x >> (32 - by)) & mask

    for (k,) in struct.iter_unpack("<I", row):
        k = rotate(k * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
        h = rotate(h ^ k, 13) * 5 + 0xE6546B64 & mask
    h ^= len(row)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


# ---- roaring bitmaps (15.1) and deletion vectors (8.3)


def roaring(data, at=0):
    """The numbers of a portable bitmap, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    start = at
    if cookie == 12346:
        (count,) = struct.unpack_from("<I", data, at + 4)
        at, runs = at + 8, [False] * count
    else:
        assert cookie & 0xFFFF == 12347
        count = (cookie >> 16) + 1
        flags = data[at + 4 : at + 4 + (count + 7) // 8]
        at, runs = at + 4 + len(flags), [bool(flags[i // 8] >> (i % 8) & 1) for i in range(count)]
    containers = [struct.unpack_from("<HH", data, at + 4 * i) for i in range(count)]
    at += 4 * count
    offsets = None
    if cookie == 12346 or count >= 4:
        offsets = struct.unpack_from(f"<{count}I", data, at)
        at += 4 * count
    found = []
    for i, (upper, size) in enumerate(containers):
        assert offsets is None or start + offsets[i] == at
        if runs[i]:
            (pieces,) = struct.unpack_from("<H", data, at)
            at += 2
            low = []
            for _ in range(pieces):
                first, further = struct.unpack_from("<HH", data, at)
                low += range(first, first + further + 1)
                at += 4
        elif size < 4096:
            low = struct.unpack_from(f"<{size + 1}H", data, at)
            at += 2 * (size + 1)
        else:
            low = [n for n in range(1 << 16) if data[at + (n >> 3)] >> (n & 7) & 1]
            at += 8192
        assert len(low) == size + 1
        found += [(upper << 16) + n for n in low]
    return found, at


def deletion_vector(data, offset, length):
    """The positions of a vector, of either form."""
    (size,) = struct.unpack_from(">i", data, offset)
    body = data[offset + 4 : offset + 4 + size]
    assert struct.unpack_from(">I", data, offset + 4 + size) == (zlib.crc32(body),)
    if body[:4] == struct.pack(">i", 1581511376):
        assert length == size
        return set(roaring(body, 4)[0])
    assert body[:4] == struct.pack("<i", 1681511377)
    assert length == size + 8
    (count,), at, found = struct.unpack_from("<q", body, 4), 12, set()
    for _ in range(count):
        (upper,) = struct.unpack_from("<i", body, at)
        low, at = roaring(body, at + 4)
        found |= {(upper << 32) + n for n in low}
    return found


# ---- reading


class PlainTable:
    """The newest snapshot of the table at ``root``."""

    def __init__(self, root):
        self.root = Path(root)
        ids = [int(path.name.split("-")[1]) for path in (self.root / "snapshot").glob("snapshot-*")]
        self.snapshot = json.loads((self.root / "snapshot" / f"snapshot-{max(ids)}").read_text())
        self.schema = json.loads((self.root / "schema" / f"schema-{self.snapshot['schemaId']}").read_text())
        types = {field["name"]: str(field["type"]).removesuffix(" NOT NULL") for field in self.schema["fields"]}
        self.names, self.partition_types = list(types), [types[key] for key in self.schema["partitionKeys"]]

    def records(self, name, size=None):
        """The records of a file in ``manifest/`` (4.1)."""
        path = self.root / "manifest" / name
        assert size in (None, path.stat().st_size)
        with path.open("rb") as source:
            return list(fastavro.reader(source))

    def live(self):
        """Live entries by identity, in the order of commits (2.3, 4.6)."""
        actual = {}
        for kind in ("base", "delta"):
            name, size = self.snapshot[f"{kind}ManifestList"], self.snapshot.get(f"{kind}ManifestListSize")
            for manifest in self.records(name, size):
                assert manifest["_VERSION"] == 2
                for entry in self.records(manifest["_FILE_NAME"], manifest["_FILE_SIZE"]):
                    file = entry["_FILE"]
                    identity = (entry["_PARTITION"], entry["_BUCKET"], file["_LEVEL"], file["_FILE_NAME"])
                    identity += (
                        tuple(file["_EXTRA_FILES"]),
                        file.get("_EMBEDDED_FILE_INDEX"),
                        file.get("_EXTERNAL_PATH"),
                    )
                    if entry["_KIND"] == 0:
                        assert identity not in actual
                        actual[identity] = entry
                    else:
                        del actual[identity]
        return list(actual.values())

    def deleted(self):
        """Deleted positions by data file (8.1, 8.3)."""
        found = {}
        name = self.snapshot.get("indexManifest")
        for entry in [] if name is None else self.records(name):
            if entry["_INDEX_TYPE"] == "DELETION_VECTORS":
                data = (self.root / "index" / entry["_FILE_NAME"]).read_bytes()
                assert data[0] == 1
                for one in entry["_DELETIONS_VECTORS_RANGES"]:
                    positions = deletion_vector(data, one["f1"], one["f2"])
                    assert len(positions) == one["_CARDINALITY"]
                    found[one["f0"]] = positions
        return found

    def rows(self):
        """The rows as tuples, of a table with or without a primary key, in any order."""
        keyed, deleted = bool(self.schema["primaryKeys"]), self.deleted()
        newest, rows = {}, []
        for entry in self.live():
            file, partition = entry["_FILE"], decode_row(entry["_PARTITION"], self.partition_types)
            constants = dict(zip(self.schema["partitionKeys"], partition, strict=True))
            directories = [f"{key}={value}" for key, value in constants.items()]
            path = self.root.joinpath(*directories, f"bucket-{entry['_BUCKET']}", file["_FILE_NAME"])
            assert path.stat().st_size == file["_FILE_SIZE"]
            stored = pq.ParquetFile(path).read().to_pylist()
            assert len(stored) == file["_ROW_COUNT"]
            for position, row in enumerate(stored):
                values = tuple({**row, **constants}[name] for name in self.names)
                if not keyed:
                    rows += [] if position in deleted.get(file["_FILE_NAME"], ()) else [values]
                    continue
                key = (*partition, *(row[key] for key in self.schema["primaryKeys"]))
                if key not in newest or newest[key][0] < row["_SEQUENCE_NUMBER"]:
                    newest[key] = row["_SEQUENCE_NUMBER"], row["_VALUE_KIND"], values
        return rows + [values for _, kind, values in newest.values() if kind in (0, 2)]


# ---- writing


def _stats(name):
    counts = ["null", {"type": "array", "items": ["null", "long"]}]
    kinds = (("_MIN_VALUES", "bytes"), ("_MAX_VALUES", "bytes"), ("_NULL_COUNTS", counts))
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in kinds]}


def _schema(name, kinds):
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in kinds.items()]}


FILE = {
    "_FILE_NAME": "string",
    "_FILE_SIZE": "long",
    "_ROW_COUNT": "long",
    "_MIN_KEY": "bytes",
    "_MAX_KEY": "bytes",
    "_KEY_STATS": _stats("keys"),
    "_VALUE_STATS": _stats("values"),
    "_MIN_SEQUENCE_NUMBER": "long",
    "_MAX_SEQUENCE_NUMBER": "long",
    "_SCHEMA_ID": "long",
    "_LEVEL": "int",
    "_EXTRA_FILES": {"type": "array", "items": "string"},
    "_CREATION_TIME": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
    "_DELETE_ROW_COUNT": ["null", "long"],
    "_EMBEDDED_FILE_INDEX": ["null", "bytes"],
    "_FILE_SOURCE": ["null", "int"],
    "_VALUE_STATS_COLS": ["null", {"type": "array", "items": "string"}],
}
MANIFEST = {
    "_VERSION": "int",
    "_KIND": "int",
    "_PARTITION": "bytes",
    "_BUCKET": "int",
    "_TOTAL_BUCKETS": "int",
    "_FILE": _schema("file", FILE),
}
MANIFEST_LIST = {
    "_VERSION": "int",
    "_FILE_NAME": "string",
    "_FILE_SIZE": "long",
    "_NUM_ADDED_FILES": "long",
    "_NUM_DELETED_FILES": "long",
    "_PARTITION_STATS": _stats("partition"),
    "_SCHEMA_ID": "long",
}


def create(root, buckets):
    """A table ``p STRING, k INT, v STRING``, partitioned by p, with the key (p, k) (3)."""
    columns = ("p", "STRING NOT NULL"), ("k", "INT NOT NULL"), ("v", "STRING")
    schema = {
        "version": 3,
        "id": 0,
        "fields": [{"id": i, "name": name, "type": kind} for i, (name, kind) in enumerate(columns)],
        "highestFieldId": 2,
        "partitionKeys": ["p"],
        "primaryKeys": ["p", "k"],
        "options": {"bucket": str(buckets)},
    }
    _store(Path(root) / "schema" / "schema-0", json.dumps(schema).encode())


def append(root, buckets, rows, first_sequence):
    """Commit rows (kind, p, k, v), each key once; their numbers follow ``first_sequence`` (7.3, 4, 13)."""
    root = Path(root)
    places = {}
    for number, (kind, p, k, v) in enumerate(sorted(rows, key=lambda row: row[2]), first_sequence):
        place = p, abs(murmur(encode_row([k]))) % buckets
        places.setdefault(place, []).append(
            {"_KEY_k": k, "_SEQUENCE_NUMBER": number, "_VALUE_KIND": kind, "p": p, "k": k, "v": v}
        )
    entries = [_data_file(root, p, bucket, stored, buckets) for (p, bucket), stored in places.items()]
    before = PlainTable(root) if list((root / "snapshot").glob("snapshot-*")) else None
    manifest, size = _avro(root, "manifest", MANIFEST, entries)
    listed = {
        "_VERSION": 2,
        "_FILE_NAME": manifest,
        "_FILE_SIZE": size,
        "_NUM_ADDED_FILES": len(entries),
        "_NUM_DELETED_FILES": 0,
        "_PARTITION_STATS": {
            "_MIN_VALUES": serialized([min(p for p, _ in places)]),
            "_MAX_VALUES": serialized([max(p for p, _ in places)]),
            "_NULL_COUNTS": [0],
        },
        "_SCHEMA_ID": 0,
    }
    old = []
    if before is not None:
        lists = (before.snapshot["baseManifestList"], before.snapshot["deltaManifestList"])
        old = [{name: one[name] for name in MANIFEST_LIST} for name_of in lists for one in before.records(name_of)]
    total = 0 if before is None else before.snapshot["totalRecordCount"]
    snapshot = {"version": 3, "id": 1 if before is None else before.snapshot["id"] + 1, "schemaId": 0}
    for kind, metas in (("base", old), ("delta", [listed])):
        name, size = _avro(root, "manifest-list", MANIFEST_LIST, metas)
        snapshot |= {f"{kind}ManifestList": name, f"{kind}ManifestListSize": size}
    snapshot |= {"commitUser": str(uuid.uuid4()), "commitIdentifier": (1 << 63) - 1, "commitKind": "APPEND"}
    snapshot |= {"timeMillis": 1_700_000_000_000, "totalRecordCount": total + len(rows)}
    snapshot |= {"deltaRecordCount": len(rows)}
    _store(root / "snapshot" / f"snapshot-{snapshot['id']}", json.dumps(snapshot).encode())


def _data_file(root, p, bucket, stored, buckets):
    path = root / f"p={p}" / f"bucket-{bucket}" / f"data-{uuid.uuid4()}-0.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    kinds = pa.schema(
        [
            ("_KEY_k", pa.int32()),
            ("_SEQUENCE_NUMBER", pa.int64()),
            ("_VALUE_KIND", pa.int8()),
            ("p", pa.string()),
            ("k", pa.int32()),
            ("v", pa.string()),
        ]
    )
    pq.write_table(pa.Table.from_pylist(stored, kinds), path)
    low, high = serialized([stored[0]["k"]]), serialized([stored[-1]["k"]])
    numbers = [row["_SEQUENCE_NUMBER"] for row in stored]
    file = {
        "_FILE_NAME": path.name,
        "_FILE_SIZE": path.stat().st_size,
        "_ROW_COUNT": len(stored),
        "_MIN_KEY": low,
        "_MAX_KEY": high,
        "_KEY_STATS": {"_MIN_VALUES": low, "_MAX_VALUES": high, "_NULL_COUNTS": [0]},
        "_VALUE_STATS": EMPTY_STATS,
        "_MIN_SEQUENCE_NUMBER": min(numbers),
        "_MAX_SEQUENCE_NUMBER": max(numbers),
        "_SCHEMA_ID": 0,
        "_LEVEL": 0,
        "_EXTRA_FILES": [],
        "_CREATION_TIME": 1_700_000_000_000,
        "_DELETE_ROW_COUNT": sum(row["_VALUE_KIND"] in (1, 3) for row in stored),
        "_EMBEDDED_FILE_INDEX": None,
        "_FILE_SOURCE": 0,
        "_VALUE_STATS_COLS": [],
    }
    place = {"_PARTITION": serialized([p]), "_BUCKET": bucket, "_TOTAL_BUCKETS": buckets}
    return {"_VERSION": 2, "_KIND": 0, **place, "_FILE": file}


def _avro(root, kind, fields, records):
    path = root / "manifest" / f"{kind}-{uuid.uuid4()}-0"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as sink:
        fastavro.writer(sink, _schema("record", fields), records, codec="deflate")
    return path.name, path.stat().st_size


def _store(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as sink:
        sink.write(data)
