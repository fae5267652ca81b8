"""Iceberg's manifests and manifest lists: Avro files with fixed schemas, which contain Iceberg's own field ids."""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.paths import is_file_name
from paimon_core.format.avro_container import BlockDecoder, Container, ContainerWriter
from paimon_core.format.codec import avro_codec
from paimon_core.iceberg.values import encode
from paimon_core.options.iceberg import (
    METADATA_ICEBERG_MANIFEST_COMPRESSION,
    METADATA_ICEBERG_MANIFEST_LEGACY_VERSION,
)
from paimon_core.options.snapshot import MANIFEST_TARGET_FILE_SIZE
from paimon_core.schema.iceberg import (
    FIRST_PARTITION_ID,
    FORMAT_VERSION,
    iceberg_schema,
    iceberg_type,
    partition_fields,
)
from paimon_core.schema.table_schema import TableSchema

EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
SPEC_ID: Final = 0
Record = dict[str, Any]
_BLOCK_RECORDS: Final = 128
_LEVEL: Final = 1  # of compression
_STATUS_NAMES: Final = {EXISTING: "existing", ADDED: "added", DELETED: "deleted"}
_PARTITION_TYPES: Final[dict[str, Any]] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
}


def _field(number: int, name: str, kind: Any, *, optional: bool = False) -> Record:
    if optional:
        return {"name": name, "type": ["null", kind], "default": None, "field-id": number}
    return {"name": name, "type": kind, "field-id": number}


def _map(key: int, value: int, kind: str) -> Record:
    """Return the type of a map with integer keys: an array of pairs."""
    pair = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [_field(key, "key", "int"), _field(value, "value", kind)],
    }
    return {"type": "array", "logicalType": "map", "items": pair}


def avro_name(name: str) -> str:
    """Return the name of a column as Avro allows it. Iceberg writes other characters as ``_x`` and their code."""
    escaped = re.sub(r"[^A-Za-z0-9_]", lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{escaped}" if escaped[:1].isdigit() else escaped


def manifest_schema(schema: TableSchema) -> Record:
    """Return the Avro schema of the records of a table's manifests."""
    partition = [
        _field(FIRST_PARTITION_ID + i, avro_name(f.name), _PARTITION_TYPES[_kind(schema, i)], optional=True)
        for i, f in enumerate(schema.partition_fields)
    ]
    data_file = [
        _field(134, "content", "int"),
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", {"type": "record", "name": "r102", "fields": partition}),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
        _field(110, "null_value_counts", _map(121, 122, "long"), optional=True),
        _field(125, "lower_bounds", _map(126, 127, "bytes"), optional=True),
        _field(128, "upper_bounds", _map(129, 130, "bytes"), optional=True),
        _field(143, "referenced_data_file", "string", optional=True),
        _field(144, "content_offset", "long", optional=True),
        _field(145, "content_size_in_bytes", "long", optional=True),
    ]
    entry = [
        _field(0, "status", "int"),
        _field(1, "snapshot_id", "long", optional=True),
        _field(3, "sequence_number", "long", optional=True),
        _field(4, "file_sequence_number", "long", optional=True),
        _field(2, "data_file", {"type": "record", "name": "r2", "fields": data_file}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": entry}


def list_schema(*, legacy: bool) -> Record:
    """Return the Avro schema of the records of a manifest list. ``legacy``: True for the names of Iceberg 1.4."""
    files = "data_files" if legacy else "files"
    summary = [
        _field(509, "contains_null", "boolean"),
        _field(518, "contains_nan", "boolean", optional=True),
        _field(510, "lower_bound", "bytes", optional=True),
        _field(511, "upper_bound", "bytes", optional=True),
    ]
    items = {"type": "record", "name": "r508", "fields": summary}
    fields = [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long", optional=True),
        *(_field(n, f"{s}_{files}_count", "int") for n, s in ((504, "added"), (505, "existing"), (506, "deleted"))),
        *(_field(n, f"{s}_rows_count", "long") for n, s in ((512, "added"), (513, "existing"), (514, "deleted"))),
        _field(507, "partitions", {"type": "array", "items": items, "element-id": 508}, optional=True),
    ]
    return {"type": "record", "name": "manifest_file", "fields": fields}


def _kind(schema: TableSchema, partition: int) -> str:
    field = schema.partition_fields[partition]
    return str(iceberg_type(field.type, field.id))


@dataclass
class ManifestFiles:
    """A reader and writer of the manifests and manifest lists of one table's Iceberg metadata.

    ``new_name``: a function that returns a unique name; each object calls it once, before its first write.
    ``written``: the paths of the files that this object has written.
    """

    io: FileIO
    directory: str
    schema: TableSchema
    new_name: Callable[[], str]
    written: list[str] = field(default_factory=list)
    _unique: str | None = None

    # ---- manifests

    def read(self, meta: Record) -> Iterator[list[Record]]:
        """Yield the entries of a manifest, some at a time. Raises CorruptedError for a missing or damaged file."""
        return _records(self.io, self.local(meta["manifest_path"]))

    def write(self, entries: Iterable[Record], snapshot_id: int) -> list[Record]:
        """Write entries to manifests of about the target size. Return the records of these manifests for a list."""
        target, source = self.schema.options.value(MANIFEST_TARGET_FILE_SIZE), iter(entries)
        metas = []
        while block := list(itertools.islice(source, _BLOCK_RECORDS)):
            sink = BytesIO()
            writer = self._writer(sink, manifest_schema(self.schema), self._properties())
            summary = _Summary(self.schema)
            while block:
                writer.write(block)
                summary.add(block)
                if writer.written >= target:
                    break
                block = list(itertools.islice(source, _BLOCK_RECORDS))
            data = sink.getvalue()
            path = self._store(f"{self._prefix()}-m{len(self.written)}.avro", data)
            metas.append(summary.meta(path, len(data), snapshot_id))
        return metas

    # ---- lists

    def read_list(self, path: str) -> list[Record]:
        """Return the manifests of a list, with the current field names. Raises CorruptedError as `read` does."""
        records = [record for block in _records(self.io, self.local(path)) for record in block]
        if not all(isinstance(record, dict) and isinstance(record.get("manifest_path"), str) for record in records):
            raise CorruptedError(f"{path} is not a manifest list: a record lacks the path of its manifest")
        return [{name.replace("_data_files_", "_files_"): value for name, value in meta.items()} for meta in records]

    def write_list(self, metas: Sequence[Record], snapshot_id: int) -> str:
        """Write the manifest list of a snapshot. Return its path."""
        legacy = self.schema.options.value(METADATA_ICEBERG_MANIFEST_LEGACY_VERSION)
        if legacy:
            metas = [{name.replace("_files_", "_data_files_"): value for name, value in m.items()} for m in metas]
        sink = BytesIO()
        self._writer(sink, list_schema(legacy=legacy), {"format-version": str(FORMAT_VERSION).encode()}).write(
            list(metas)
        )
        return self._store(f"snap-{snapshot_id}-{self._prefix()}.avro", sink.getvalue())

    def local(self, path: str) -> str:
        """Return the path of a file that the metadata names, in this table's directory. Raises CorruptedError."""
        name = path.rpartition("/")[2]
        if not is_file_name(name):
            raise CorruptedError(
                f"Iceberg metadata in {self.directory} names the file {path!r}, which is not a path of a file"
            )
        return join(self.directory, name)

    # ---- inside

    def _prefix(self) -> str:
        if self._unique is None:
            self._unique = self.new_name()
        return self._unique

    def _properties(self) -> dict[str, bytes]:
        return {
            "schema": json.dumps(iceberg_schema(self.schema)).encode(),
            "schema-id": str(self.schema.id).encode(),
            "partition-spec": json.dumps(partition_fields(self.schema)).encode(),
            "partition-spec-id": str(SPEC_ID).encode(),
            "format-version": str(FORMAT_VERSION).encode(),
            "content": b"data",
        }

    def _writer(self, sink: BytesIO, schema: Record, properties: dict[str, bytes]) -> ContainerWriter:
        codec = avro_codec(self.schema.options.value(METADATA_ICEBERG_MANIFEST_COMPRESSION))
        return ContainerWriter(sink, schema, codec, _LEVEL, properties)

    def _store(self, name: str, data: bytes) -> str:
        path = join(self.directory, name)
        self.io.write(path, data)
        self.written.append(path)
        return path


def _records(files: FileIO, path: str) -> Iterator[list[Record]]:
    try:
        data = files.read(path)
    except FileNotFoundError as missing:
        raise CorruptedError(f"{path} is missing, but Iceberg metadata names it") from missing
    container = Container(BytesIO(data), path)
    try:
        decoder = BlockDecoder(container.header.schema)
    except Exception as cause:
        raise container.corrupted(cause) from cause
    yield from container.records(decoder)


class _Summary:
    """The record of a manifest in a list, collected while the manifest is written."""

    def __init__(self, schema: TableSchema) -> None:
        self._kinds = [_kind(schema, i) for i in range(len(schema.partition_keys))]
        self._names = [avro_name(name) for name in schema.partition_keys]
        self._files, self._rows = dict.fromkeys(_STATUS_NAMES, 0), dict.fromkeys(_STATUS_NAMES, 0)
        self._partitions: set[tuple[Any, ...]] = set()
        self._oldest: int | None = None

    def add(self, block: Sequence[Record]) -> None:
        """Add these entries to the counts."""
        for entry in block:
            self._files[entry["status"]] += 1
            self._rows[entry["status"]] += entry["data_file"]["record_count"]
            self._partitions.add(tuple(entry["data_file"]["partition"][name] for name in self._names))
        oldest = min(entry["sequence_number"] for entry in block)
        self._oldest = oldest if self._oldest is None else min(oldest, self._oldest)

    def meta(self, path: str, size: int, snapshot_id: int) -> Record:
        """Return the record of the manifest at ``path``, of ``size`` bytes, written for a snapshot."""
        columns = list(zip(*self._partitions, strict=True)) if self._names else []
        return {
            "manifest_path": path,
            "manifest_length": size,
            "partition_spec_id": SPEC_ID,
            "content": 0,
            "sequence_number": snapshot_id,
            "min_sequence_number": self._oldest,
            "added_snapshot_id": snapshot_id,
            **{f"{name}_files_count": self._files[status] for status, name in _STATUS_NAMES.items()},
            **{f"{name}_rows_count": self._rows[status] for status, name in _STATUS_NAMES.items()},
            "partitions": [_bounds(values, kind) for values, kind in zip(columns, self._kinds, strict=True)],
        }


def _bounds(values: Sequence[Any], kind: str) -> Record:
    present = [value for value in values if value is not None]
    return {
        "contains_null": len(present) < len(values),
        "contains_nan": False,
        "lower_bound": encode(min(present), kind) if present else None,
        "upper_bound": encode(max(present), kind) if present else None,
    }
