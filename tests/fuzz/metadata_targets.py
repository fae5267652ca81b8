"""Targets of metadata: snapshots, schemas, manifests, rows of bytes, messages, views and small files."""

import itertools
import json
from collections.abc import Callable
from typing import Any

from paimon_core.catalog.database_file import read_properties, write_properties
from paimon_core.catalog.view import CatalogFunction, View
from paimon_core.commit.intents import Intents, newest_open
from paimon_core.iceberg.manifest_files import ManifestFiles
from paimon_core.iceberg.metadata import Metadata, MetadataFiles, is_of
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.decode import decode_column_batches, decode_entries, decode_records
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.serializers import INDEX_ENTRY, MANIFEST_FILE, RecordType
from paimon_core.operations.analyze import ColumnStatistics, TableStatistics, from_text
from paimon_core.options import ALL_OPTIONS
from paimon_core.row.binary_row import decode_rows, deserialize, serialize
from paimon_core.scan.position import Position
from paimon_core.scan.split import DataSplit
from paimon_core.schema.support import check_readable, check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import validate
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tags
from paimon_core.types.parse import parse_type
from tests.fuzz.goldens import contents, files
from tests.fuzz.target import Target
from tests.support.faulty_io import MemoryIO

ROOT = "memory://t"
_SNAPSHOT = Snapshot.from_json(contents("/snapshot/snapshot-1")()[0], "seed", 1)


def _dumped(*documents: Any) -> Callable[[], list[bytes]]:
    return lambda: [json.dumps(document).encode() for document in documents]


# ---- JSON files


def snapshot(data: bytes) -> None:
    found = Snapshot.from_json(data, "snapshot-1")
    repr(found)
    found.to_json()


def schema(data: bytes) -> None:
    found = TableSchema.from_json(data, "schema-0")
    str(found)
    repr(found)
    for check in (check_readable, check_writable, validate):
        check(found)
    for option in ALL_OPTIONS.values():
        found.options.value(option)
    assert len(found.arrow) >= max(len(found.key_arrow), len(found.partition_arrow), len(found.bucket_fields))
    TableSchema.from_json(found.to_json(), "schema-0")


def _of_file(path: str, read: Callable[[MemoryIO], Any]) -> Callable[[bytes], Any]:
    """Return a target that reads the input as the only file of a table."""
    return lambda data: read(MemoryIO({f"{ROOT}/{path}": data}))


def tag(io: MemoryIO) -> None:
    found = Tags(io, ROOT).get("v")
    found.expires, found.to_json(), repr(found)


def hint(io: MemoryIO) -> None:
    for number in (1, 2):
        io.files[f"{ROOT}/snapshot/snapshot-{number}"] = _SNAPSHOT.to_json().replace(b'"id" : 1', b'"id" : %d' % number)
    snapshots = Snapshots(io, ROOT)
    assert snapshots.ids() == [1, 2]
    snapshots.latest_id(), snapshots.latest()
    io.files[f"{ROOT}/snapshot/EARLIEST"] = io.files[f"{ROOT}/snapshot/LATEST"]
    snapshots.earliest_id()


def intent(io: MemoryIO) -> None:
    found = Intents(io, ROOT, "me").find(1)
    assert found is not None
    isinstance(found.base, int)
    newest_open(io, ROOT)


def statistics(data: bytes) -> None:
    found = TableStatistics.from_json(data, "stat-0")
    found.to_json()
    kinds = [parse_type(text) for text in ("INT", "DOUBLE", "DECIMAL(10, 2)", "DATE", "TIMESTAMP(6)", "STRING")]
    for column, kind in itertools.product(found.columns.values(), kinds):
        for text in (column.min, column.max):
            text is None or from_text(text, kind)


def view(data: bytes) -> None:
    View.parse(data.decode("utf-8", "replace"), "db.v").to_json()


def function(data: bytes) -> None:
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError):
        return  # the client of the catalog decodes the JSON
    if isinstance(stored, dict):
        CatalogFunction.from_json(stored, "db.f").to_json()


def position(data: bytes) -> None:
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError):
        return  # the caller has decoded the JSON
    if isinstance(stored, dict):
        found = Position.from_json(stored)
        found.next_snapshot, found.order, found.to_json()


def iceberg(data: bytes) -> None:
    found = Metadata.from_json(data, "v1.metadata.json")
    for record in found.snapshots:
        is_of(record, _SNAPSHOT, None)
    found.with_snapshots(found.snapshots, found.refs)


def iceberg_hint(io: MemoryIO) -> None:
    MetadataFiles(io, f"{ROOT}/metadata").hint()


# ---- Avro files


def entries(data: bytes) -> None:
    for one in decode_entries(data, "manifest-0"):
        assert len(one.bucket_ref) == 2
    decode_entries(data, "manifest-0", with_stats=False)
    for batch in decode_column_batches(data, "manifest-0", ("file_name", "row_count", "file_size"), with_stats=False):
        batch if isinstance(batch, list) else batch.values("file_name")
    decode_entries(data, "manifest-0", lossless=True)


def _records(kind: RecordType[Any]) -> Callable[[bytes], Any]:
    return lambda data: decode_records(data, "manifest-0", kind)


def iceberg_list(io: MemoryIO) -> None:
    stored = TableSchema.from_json(contents("/schema/schema-0")()[0], "seed")
    reader = ManifestFiles(io, f"{ROOT}/metadata", stored, lambda: "x")
    for meta in reader.read_list("snap-1.avro"):
        io.files[f"{ROOT}/metadata/{str(meta['manifest_path']).rpartition('/')[2]}"] = b""
    list(reader.read({"manifest_path": "snap-1.avro"}))


# ---- bytes

KINDS = (
    ["BOOLEAN", "TINYINT", "INT", "BIGINT", "DOUBLE", "FLOAT"],
    ["STRING", "BYTES", "CHAR(3)", "INT"],
    ["DECIMAL(10, 2)", "DECIMAL(38, 3)", "DATE", "TIME(3)"],
    ["TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(9)"],
)
LAYOUTS = [
    TableSchema.from_json(
        json.dumps(
            {
                "id": 0,
                "fields": [{"id": i, "name": f"c{i}", "type": kind} for i, kind in enumerate(kinds)],
                "highestFieldId": len(kinds),
                "version": 3,
            }
        ).encode(),
        "layout",
    ).arrow
    for kinds in KINDS
]
_VALUES = ((True, 1, 2, 3, 0.5, 1.5), ("a long text of a row", b"\0" * 20, "abc", 7), (None,) * 4, (1, 2, 3, 4))


def row_seeds() -> list[bytes]:
    return [
        bytes([i]) + serialize(values, layout) for i, (values, layout) in enumerate(zip(_VALUES, LAYOUTS, strict=True))
    ]


def row(data: bytes) -> None:
    layout = LAYOUTS[data[0] % len(LAYOUTS)] if data else LAYOUTS[0]
    batch = decode_rows([data[1:], data[1:]], layout)
    batch.validate(full=True)
    deserialize(data[1:], layout)


def message_seeds() -> list[bytes]:
    path, manifest = next(
        (p, d) for p, d in files("keyed_vectors").items() if "/manifest/manifest-" in p and "-list-" not in p
    )
    made: list[ManifestEntry] = decode_entries(manifest, path)
    data_files: tuple[DataFileMeta, ...] = tuple(entry.file for entry in made)
    partition, bucket = made[0].partition, made[0].bucket
    return [
        CommitMessage(partition, bucket, 2, new_files=data_files).to_bytes(),
        CommitMessage(partition, bucket, 2, compact_before=data_files, compact_after=data_files[:1]).to_bytes(),
        CommitMessage(b"\0" * 12, 0, 1).to_bytes(),
    ]


def message(data: bytes) -> None:
    found = CommitMessage.from_bytes(data)
    assert CommitMessage.from_bytes(found.to_bytes()) == found


def split_seeds() -> list[bytes]:
    return [DataSplit(1, b"\0" * 12, 0, 1, (), True).to_bytes()]


_FIELDS = [
    {"id": 0, "name": "a", "type": {"type": "ARRAY", "element": "INT NOT NULL"}},
    {"id": 1, "name": "b", "type": "INT"},
]
_ICEBERG = {
    "format-version": 2,
    "table-uuid": "9c12d441",
    "location": f"{ROOT}/metadata",
    "last-column-id": 3,
    "snapshots": [{"snapshot-id": 1, "manifest-list": "snap-1.avro", "summary": {"paimon-snapshot": "a"}}],
    "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
}
_STATISTICS = TableStatistics(1, 0, 3, 99, {"a": ColumnStatistics(0, 3, "1", "2020-01-01", 0, 4, 4)})

TARGETS = (
    Target("snapshot", "json", contents("/snapshot/snapshot-"), snapshot),
    Target("schema", "json", contents("/schema/schema-"), schema),
    Target("tag", "json", contents("/snapshot/snapshot-"), _of_file("tag/tag-v", tag)),
    Target(
        "changelog",
        "json",
        contents("/snapshot/snapshot-1"),
        _of_file("changelog/changelog-1", lambda io: Changelogs(io, ROOT).find(1)),
    ),
    Target("hint", "bytes", lambda: [b"1", b"2", b"12345678901234567890"], _of_file("snapshot/LATEST", hint)),
    Target(
        "consumer",
        "json",
        _dumped({"nextSnapshot": 5}),
        _of_file("consumer/consumer-c", lambda io: Consumers(io, ROOT).min_next()),
    ),
    Target(
        "intent",
        "json",
        _dumped({"version": 1, "base": 3, "maker": "m", "fingerprint": "f"}),
        _of_file("intent/user-me/batch-1", intent),
    ),
    Target("statistics", "json", lambda: [_STATISTICS.to_json()], statistics),
    Target("database", "json", lambda: [write_properties({"a": "b"})], lambda data: read_properties(data, ".database")),
    Target(
        "view",
        "json",
        lambda: [
            json.dumps(View((), "SELECT 1", {"spark": "x"}, "c", {"a": "b"}).to_json()).encode(),
            *_dumped({"query": "q", "fields": _FIELDS})(),
        ],
        view,
    ),
    Target(
        "function",
        "json",
        _dumped(
            {
                "inputParams": _FIELDS,
                "returnParams": _FIELDS,
                "deterministic": True,
                "definitions": {"spark": {"type": "sql", "definition": "a"}},
                "options": {"a": "b"},
            }
        ),
        function,
    ),
    Target("position", "json", lambda: [json.dumps(Position(3, 1, True, "f", "t").to_json()).encode()], position),
    Target("iceberg-metadata", "json", _dumped(_ICEBERG), iceberg),
    Target("iceberg-hint", "bytes", lambda: [b"1", b"17\n"], _of_file("metadata/version-hint.text", iceberg_hint)),
    Target(
        "iceberg-list",
        "avro",
        contents("/manifest/manifest-list-", most=2),
        _of_file("metadata/snap-1.avro", iceberg_list),
    ),
    Target("manifest", "avro", contents("/manifest/manifest-", "-0", most=6), entries),
    Target("manifest-list", "avro", contents("/manifest/manifest-list-", most=4), _records(MANIFEST_FILE)),
    Target("index-manifest", "avro", contents("/manifest/index-manifest-", most=4), _records(INDEX_ENTRY)),
    Target("binary-row", "selected", row_seeds, row),
    Target("commit-message", "bytes", message_seeds, message),
    Target("split", "bytes", split_seeds, DataSplit.from_bytes),
)
