"""The Avro records of manifests, manifest lists and index manifests, and the values in them (format 4.2-4.5, 8.1).

Records are written as the newest version of Paimon writes them. Records of any version are read: fields of later
versions may be missing, unknown fields are ignored. Creation times are plain numbers here, because Avro's logical type
would convert them between time zones.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter, itemgetter
from typing import Any, Final, Generic, TypeVar, cast

from paimon_core.fileio.paths import is_file_name
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.fast_constructor import fast_constructor
from paimon_core.manifest.index_entry import DeletionRange, GlobalIndex, IndexManifestEntry
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.stats import SimpleStats

Record = Mapping[str, Any]
Schema = Any
T = TypeVar("T")

MANIFEST_VERSION: Final = 2
INDEX_MANIFEST_VERSION: Final = 1


def _record(name: str, **fields: Schema) -> Schema:
    return {"type": "record", "name": name, "fields": [_field(key, kind) for key, kind in fields.items()]}


def _field(name: str, kind: Schema) -> Schema:
    return {"name": name, "type": kind, "default": None} if isinstance(kind, list) else {"name": name, "type": kind}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _nullable(kind: Schema) -> Schema:
    return ["null", kind]


def _stats(name: str) -> Schema:
    counts = _nullable(_array(_nullable("long")))
    return _record(name, _MIN_VALUES="bytes", _MAX_VALUES="bytes", _NULL_COUNTS=counts)


def _top(schema: Schema) -> Schema:
    return {**schema, "namespace": "org.apache.paimon.avro.generated"}


DATA_FILE_SCHEMA: Final = _record(
    "record__FILE",
    _FILE_NAME="string",
    _FILE_SIZE="long",
    _ROW_COUNT="long",
    _MIN_KEY="bytes",
    _MAX_KEY="bytes",
    _KEY_STATS=_stats("record__FILE__KEY_STATS"),
    _VALUE_STATS=_stats("record__FILE__VALUE_STATS"),
    _MIN_SEQUENCE_NUMBER="long",
    _MAX_SEQUENCE_NUMBER="long",
    _SCHEMA_ID="long",
    _LEVEL="int",
    _EXTRA_FILES=_array("string"),
    _CREATION_TIME=_nullable({"type": "long", "logicalType": "timestamp-millis"}),
    _DELETE_ROW_COUNT=_nullable("long"),
    _EMBEDDED_FILE_INDEX=_nullable("bytes"),
    _FILE_SOURCE=_nullable("int"),
    _VALUE_STATS_COLS=_nullable(_array("string")),
    _EXTERNAL_PATH=_nullable("string"),
    _FIRST_ROW_ID=_nullable("long"),
    _WRITE_COLS=_nullable(_array("string")),
    _WRITE_COLS_SEQUENCES=_nullable(_array("long")),
)
MANIFEST_SCHEMA: Final = _top(
    _record(  # exactly these six, none nullable: readers are strict
        "record",
        _VERSION="int",
        _KIND="int",
        _PARTITION="bytes",
        _BUCKET="int",
        _TOTAL_BUCKETS="int",
        _FILE=DATA_FILE_SCHEMA,
    )
)
MANIFEST_LIST_SCHEMA: Final = _top(
    _record(
        "record",
        _VERSION="int",
        _FILE_NAME="string",
        _FILE_SIZE="long",
        _NUM_ADDED_FILES="long",
        _NUM_DELETED_FILES="long",
        _PARTITION_STATS=_stats("record__PARTITION_STATS"),
        _SCHEMA_ID="long",
        _MIN_BUCKET=_nullable("int"),
        _MAX_BUCKET=_nullable("int"),
        _MIN_LEVEL=_nullable("int"),
        _MAX_LEVEL=_nullable("int"),
        _MIN_ROW_ID=_nullable("long"),
        _MAX_ROW_ID=_nullable("long"),
    )
)
_DELETION_RANGE_SCHEMA: Final = _record(
    "record__DELETIONS_VECTORS_RANGES", f0="string", f1="int", f2="int", _CARDINALITY=_nullable("long")
)
_GLOBAL_INDEX_SCHEMA: Final = _record(
    "record__GLOBAL_INDEX",
    _ROW_RANGE_START="long",
    _ROW_RANGE_END="long",
    _INDEX_FIELD_ID="int",
    _EXTRA_FIELD_IDS=_nullable(_array("int")),
    _INDEX_META=_nullable("bytes"),
    _SOURCE_META=_nullable("bytes"),
)
INDEX_MANIFEST_SCHEMA: Final = _top(
    _record(
        "record",
        _VERSION="int",
        _KIND="int",
        _PARTITION="bytes",
        _BUCKET="int",
        _INDEX_TYPE="string",
        _FILE_NAME="string",
        _FILE_SIZE="long",
        _ROW_COUNT="long",
        _DELETIONS_VECTORS_RANGES=_nullable(_array(_nullable(_DELETION_RANGE_SCHEMA))),
        _EXTERNAL_PATH=_nullable("string"),
        _GLOBAL_INDEX=_nullable(_GLOBAL_INDEX_SCHEMA),
    )
)


def plain(schema: Schema) -> Schema:
    """Return the schema without logical types, so that numbers stay numbers."""
    if isinstance(schema, list):
        return [plain(branch) for branch in schema]
    if isinstance(schema, dict):
        return {key: plain(value) for key, value in schema.items() if key != "logicalType"}
    return schema


def unknown_fields(written: Schema, supported: Schema) -> list[str]:
    """Return the names of fields, at any depth, of the schema ``written`` that the schema ``supported`` lacks."""
    written, supported = _inner(written), _inner(supported)
    if not (isinstance(written, dict) and isinstance(supported, dict)):
        return []
    ours = {field["name"]: field["type"] for field in supported.get("fields", ())}
    lost: list[str] = []
    for field in written.get("fields", ()):
        name = field["name"]
        lost += unknown_fields(field["type"], ours[name]) if name in ours else [name]
    return lost


def _inner(schema: Schema) -> Schema:
    """Return the schema of the items of arrays and of the values of nullable unions, at any depth."""
    while True:
        if isinstance(schema, list):
            schema = next((branch for branch in schema if branch != "null"), "null")
        elif isinstance(schema, dict) and schema.get("type") == "array":
            schema = schema["items"]
        else:
            return schema


class RecordType(Generic[T]):
    """The conversion between a dataclass and its Avro records, whose fields have the order of the class.

    Args:
        kind: the dataclass.
        schema: the Avro schema of the records.
        required: the number of leading fields that every version writes; the other fields may be missing.
        version: the value of the first field ``_VERSION``; `None`: the records have no version.
        decoders: for some fields, a function from the value in a record to the value in the dataclass.
    """

    def __init__(
        self,
        kind: type[T],
        schema: Schema,
        required: int,
        version: int | None = None,
        **decoders: Callable[[Any], Any],
    ) -> None:
        names = [field["name"] for field in schema["fields"] if field["name"] != "_VERSION"]
        attributes = [attribute.name for attribute in fields(cast("type[Any]", kind))]
        self.schema, self.version = schema, version
        self._names, self._optional = names, names[required:]
        self._required, self._values = itemgetter(*names[:required]), attrgetter(*attributes)
        self._decoders = [(names.index(name), decode) for name, decode in decoders.items()]
        self._make = fast_constructor(kind)

    def from_record(self, record: Record) -> T:
        """Return the value of a record.

        Raises KeyError if a field of the first version is missing, ValueError if the name of a file is a path.
        """
        values = [*self._required(record), *map(record.get, self._optional)]
        for position, decode in self._decoders:
            values[position] = decode(values[position])
        value: T = self._make(*values)
        return value

    def to_record(self, value: T) -> dict[str, Any]:
        """Return the record of a value: the inverse of `from_record`."""
        values = list(self._values(value))
        for position, _ in self._decoders:
            values[position] = _encoded(values[position])
        record = dict(zip(self._names, values, strict=True))
        return record if self.version is None else {"_VERSION": self.version, **record}


def _encoded(value: Any) -> Any:
    """Return the value of a record for an attribute. Tuples become lists: fastavro reads a tuple as (branch, value)."""
    if isinstance(value, tuple):
        return list(map(_encoded, value)) if value and type(value[0]) in _NESTED else list(value)
    nested = _NESTED.get(type(value))
    return value if nested is None else nested.to_record(value)


def _file_name(text: str) -> str:
    """Return the text. Raises ValueError for a path, which would lead a reader out of the directory of the table."""
    if not is_file_name(text):
        raise ValueError(f"{text!r} cannot be the name of a file: it would leave its directory")
    return text


def _tuple(items: Any) -> Any:
    return None if items is None else tuple(items)


def _tuple_or_empty(items: Any) -> tuple[Any, ...]:
    return tuple(items or ())


def _deletion_ranges(records: Any) -> Any:
    return None if records is None else tuple(_DELETION_RANGE.from_record(r) for r in records if r is not None)


_STATS: Final = RecordType(SimpleStats, _stats("record__STATS"), 2, _NULL_COUNTS=_tuple_or_empty)
_DELETION_RANGE: Final = RecordType(DeletionRange, _DELETION_RANGE_SCHEMA, 3)
_GLOBAL_INDEX: Final = RecordType(GlobalIndex, _GLOBAL_INDEX_SCHEMA, 3, _EXTRA_FIELD_IDS=_tuple)
DATA_FILE: Final = RecordType(
    DataFileMeta,
    DATA_FILE_SCHEMA,
    11,
    _FILE_NAME=_file_name,
    _KEY_STATS=_STATS.from_record,
    _VALUE_STATS=_STATS.from_record,
    _EXTRA_FILES=lambda names: tuple(map(_file_name, names or ())),
    _VALUE_STATS_COLS=_tuple,
    _WRITE_COLS=_tuple,
    _WRITE_COLS_SEQUENCES=_tuple,
)
ENTRY: Final = RecordType(ManifestEntry, MANIFEST_SCHEMA, 5, MANIFEST_VERSION, _FILE=DATA_FILE.from_record)
MANIFEST_FILE: Final = RecordType(
    ManifestFileMeta,
    MANIFEST_LIST_SCHEMA,
    6,
    MANIFEST_VERSION,
    _FILE_NAME=_file_name,
    _PARTITION_STATS=_STATS.from_record,
)
INDEX_ENTRY: Final = RecordType(
    IndexManifestEntry,
    INDEX_MANIFEST_SCHEMA,
    7,
    INDEX_MANIFEST_VERSION,
    _FILE_NAME=_file_name,
    _DELETIONS_VECTORS_RANGES=_deletion_ranges,
    _GLOBAL_INDEX=lambda index: None if index is None else _GLOBAL_INDEX.from_record(index),
)
_NESTED: Final[Mapping[type, RecordType[Any]]] = {
    SimpleStats: _STATS,
    DataFileMeta: DATA_FILE,
    DeletionRange: _DELETION_RANGE,
    GlobalIndex: _GLOBAL_INDEX,
}
