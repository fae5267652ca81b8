"""Avro records of manifests, manifest lists and index manifests, and the values they stand for (format 4.2-4.5, 8.1).

Written as the newest version does. Read from any version: fields that came later may be missing, unknown ones are
passed over. Creation times are plain numbers here: Avro's logical type would convert them between time zones.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from paimon_core.fileio.paths import are_file_names
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.fast_constructor import fast_constructor
from paimon_core.manifest.index_entry import DeletionRange, GlobalIndex, IndexManifestEntry
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.stats import SimpleStats

_data_file, _entry, _stats_value = (
    fast_constructor(DataFileMeta),
    fast_constructor(ManifestEntry),
    fast_constructor(SimpleStats),
)

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
        _DELETIONS_VECTORS_RANGES=_nullable(
            _array(
                _nullable(
                    _record(
                        "record__DELETIONS_VECTORS_RANGES",
                        f0="string",
                        f1="int",
                        f2="int",
                        _CARDINALITY=_nullable("long"),
                    )
                )
            )
        ),
        _EXTERNAL_PATH=_nullable("string"),
        _GLOBAL_INDEX=_nullable(
            _record(
                "record__GLOBAL_INDEX",
                _ROW_RANGE_START="long",
                _ROW_RANGE_END="long",
                _INDEX_FIELD_ID="int",
                _EXTRA_FIELD_IDS=_nullable(_array("int")),
                _INDEX_META=_nullable("bytes"),
                _SOURCE_META=_nullable("bytes"),
            )
        ),
    )
)


def plain(schema: Schema) -> Schema:
    """The schema without logical types, so that numbers stay numbers."""
    if isinstance(schema, list):
        return [plain(branch) for branch in schema]
    if isinstance(schema, dict):
        return {key: plain(value) for key, value in schema.items() if key != "logicalType"}
    return schema


def unknown_fields(written: Schema, known: Schema) -> list[str]:
    """Names of fields, at any depth, that a file of schema ``written`` has and this engine would lose."""
    written, known = _inner(written), _inner(known)
    if not (isinstance(written, dict) and isinstance(known, dict)):
        return []
    ours = {field["name"]: field["type"] for field in known.get("fields", ())}
    lost: list[str] = []
    for field in written.get("fields", ()):
        name = field["name"]
        lost += unknown_fields(field["type"], ours[name]) if name in ours else [name]
    return lost


def _inner(schema: Schema) -> Schema:
    """Through nullable unions and arrays to what they hold."""
    while True:
        if isinstance(schema, list):
            schema = next((branch for branch in schema if branch != "null"), "null")
        elif isinstance(schema, dict) and schema.get("type") == "array":
            schema = schema["items"]
        else:
            return schema


def stats_from_record(record: Record) -> SimpleStats:
    """Statistics; counts that are missing altogether are as good as none."""
    counts = tuple(record.get("_NULL_COUNTS") or ())
    stats: SimpleStats = _stats_value(record["_MIN_VALUES"], record["_MAX_VALUES"], counts)
    return stats


def data_file_from_record(record: Record) -> DataFileMeta:
    """A data file. KeyError when a field of the first version is missing, ValueError for names that are none."""
    get = record.get
    file: DataFileMeta = _data_file(
        _file_name(record["_FILE_NAME"]),
        record["_FILE_SIZE"],
        record["_ROW_COUNT"],
        record["_MIN_KEY"],
        record["_MAX_KEY"],
        stats_from_record(record["_KEY_STATS"]),
        stats_from_record(record["_VALUE_STATS"]),
        record["_MIN_SEQUENCE_NUMBER"],
        record["_MAX_SEQUENCE_NUMBER"],
        record["_SCHEMA_ID"],
        record["_LEVEL"],
        tuple(map(_file_name, get("_EXTRA_FILES") or ())),
        get("_CREATION_TIME"),
        get("_DELETE_ROW_COUNT"),
        get("_EMBEDDED_FILE_INDEX"),
        get("_FILE_SOURCE"),
        _tuple(get("_VALUE_STATS_COLS")),
        get("_EXTERNAL_PATH"),
        get("_FIRST_ROW_ID"),
        _tuple(get("_WRITE_COLS")),
        _tuple(get("_WRITE_COLS_SEQUENCES")),
    )
    return file


def entry_from_record(record: Record) -> ManifestEntry:
    """A manifest entry."""
    entry: ManifestEntry = _entry(
        record["_KIND"],
        record["_PARTITION"],
        record["_BUCKET"],
        record["_TOTAL_BUCKETS"],
        data_file_from_record(record["_FILE"]),
    )
    return entry


def manifest_file_from_record(record: Record) -> ManifestFileMeta:
    """A manifest as its list describes it."""
    get = record.get
    return ManifestFileMeta(
        _file_name(record["_FILE_NAME"]),
        record["_FILE_SIZE"],
        record["_NUM_ADDED_FILES"],
        record["_NUM_DELETED_FILES"],
        stats_from_record(record["_PARTITION_STATS"]),
        record["_SCHEMA_ID"],
        *(get(f"_{end}_{what}") for what in ("BUCKET", "LEVEL", "ROW_ID") for end in ("MIN", "MAX")),
    )


def index_entry_from_record(record: Record) -> IndexManifestEntry:
    """An entry of an index manifest."""
    ranges = record.get("_DELETIONS_VECTORS_RANGES")
    covered = record.get("_GLOBAL_INDEX")
    return IndexManifestEntry(
        record["_KIND"],
        record["_PARTITION"],
        record["_BUCKET"],
        record["_INDEX_TYPE"],
        _file_name(record["_FILE_NAME"]),
        record["_FILE_SIZE"],
        record["_ROW_COUNT"],
        None if ranges is None else tuple(_deletion_range(r) for r in ranges if r is not None),
        record.get("_EXTERNAL_PATH"),
        None if covered is None else _global_index(covered),
    )


def _file_name(text: str) -> str:
    """The text, which must name a file and cannot be a path: whoever deletes or reads it stays in the directory."""
    if not are_file_names((text,)):
        raise ValueError(f"{text!r} cannot be the name of a file: it would leave its directory")
    return text


def _deletion_range(record: Record) -> DeletionRange:
    return DeletionRange(record["f0"], record["f1"], record["f2"], record.get("_CARDINALITY"))


def _global_index(record: Record) -> GlobalIndex:
    return GlobalIndex(
        record["_ROW_RANGE_START"],
        record["_ROW_RANGE_END"],
        record["_INDEX_FIELD_ID"],
        _tuple(record.get("_EXTRA_FIELD_IDS")),
        record.get("_INDEX_META"),
        record.get("_SOURCE_META"),
    )


def _tuple(values: Sequence[T] | None) -> tuple[T, ...] | None:
    return None if values is None else tuple(values)


def _list(values: Sequence[T] | None) -> list[T] | None:
    return None if values is None else list(values)  # in a union fastavro takes a tuple for (branch, value)


def _stats_to_record(stats: SimpleStats) -> Record:
    return {"_MIN_VALUES": stats.min_values, "_MAX_VALUES": stats.max_values, "_NULL_COUNTS": list(stats.null_counts)}


def data_file_to_record(file: DataFileMeta) -> Record:
    """The inverse of `data_file_from_record`."""
    return {
        "_FILE_NAME": file.file_name,
        "_FILE_SIZE": file.file_size,
        "_ROW_COUNT": file.row_count,
        "_MIN_KEY": file.min_key,
        "_MAX_KEY": file.max_key,
        "_KEY_STATS": _stats_to_record(file.key_stats),
        "_VALUE_STATS": _stats_to_record(file.value_stats),
        "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
        "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
        "_SCHEMA_ID": file.schema_id,
        "_LEVEL": file.level,
        "_EXTRA_FILES": list(file.extra_files),
        "_CREATION_TIME": file.creation_time,
        "_DELETE_ROW_COUNT": file.delete_row_count,
        "_EMBEDDED_FILE_INDEX": file.embedded_index,
        "_FILE_SOURCE": file.file_source,
        "_VALUE_STATS_COLS": _list(file.value_stats_cols),
        "_EXTERNAL_PATH": file.external_path,
        "_FIRST_ROW_ID": file.first_row_id,
        "_WRITE_COLS": _list(file.write_cols),
        "_WRITE_COLS_SEQUENCES": _list(file.write_cols_sequences),
    }


def entry_to_record(entry: ManifestEntry) -> Record:
    """The inverse of `entry_from_record`."""
    return {
        "_VERSION": MANIFEST_VERSION,
        "_KIND": entry.kind,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": data_file_to_record(entry.file),
    }


def manifest_file_to_record(meta: ManifestFileMeta) -> Record:
    """The inverse of `manifest_file_from_record`."""
    return {
        "_VERSION": MANIFEST_VERSION,
        "_FILE_NAME": meta.file_name,
        "_FILE_SIZE": meta.file_size,
        "_NUM_ADDED_FILES": meta.num_added_files,
        "_NUM_DELETED_FILES": meta.num_deleted_files,
        "_PARTITION_STATS": _stats_to_record(meta.partition_stats),
        "_SCHEMA_ID": meta.schema_id,
        "_MIN_BUCKET": meta.min_bucket,
        "_MAX_BUCKET": meta.max_bucket,
        "_MIN_LEVEL": meta.min_level,
        "_MAX_LEVEL": meta.max_level,
        "_MIN_ROW_ID": meta.min_row_id,
        "_MAX_ROW_ID": meta.max_row_id,
    }


def index_entry_to_record(entry: IndexManifestEntry) -> Record:
    """The inverse of `index_entry_from_record`."""
    ranges, covered = entry.deletion_ranges, entry.global_index
    return {
        "_VERSION": INDEX_MANIFEST_VERSION,
        "_KIND": entry.kind,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.index_type,
        "_FILE_NAME": entry.file_name,
        "_FILE_SIZE": entry.file_size,
        "_ROW_COUNT": entry.row_count,
        "_DELETIONS_VECTORS_RANGES": None if ranges is None else [_range_to_record(r) for r in ranges],
        "_EXTERNAL_PATH": entry.external_path,
        "_GLOBAL_INDEX": None if covered is None else _global_index_to_record(covered),
    }


def _range_to_record(deletions: DeletionRange) -> Record:
    return {
        "f0": deletions.data_file,
        "f1": deletions.offset,
        "f2": deletions.length,
        "_CARDINALITY": deletions.cardinality,
    }


def _global_index_to_record(covered: GlobalIndex) -> Record:
    return {
        "_ROW_RANGE_START": covered.row_range_start,
        "_ROW_RANGE_END": covered.row_range_end,
        "_INDEX_FIELD_ID": covered.index_field_id,
        "_EXTRA_FIELD_IDS": _list(covered.extra_field_ids),
        "_INDEX_META": covered.index_meta,
        "_SOURCE_META": covered.source_meta,
    }
