"""The native path: Spark's own scan of Parquet or ORC reads the files of a table whose rows need no merge.

A scan is native for all its files or not at all. Spark finds a column of a file by its name, Paimon by its id. So every
file must have the columns of the query with the same names, ids and types, or lack them.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress

from pyspark.sql.types import StructType

from paimon_core import DataFileMeta, DataSplit, Plan, TableSchema
from paimon_core.engine import FORMATS, FileStore, is_all_null, parallel_map
from paimon_core.options.file import VARIANT_INFERSHREDDINGSCHEMA, VARIANT_SHREDDINGSCHEMA
from paimon_core.types.columns import ColumnNames
from paimon_core.types.datatype import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType
from paimon_spark.internals import java_session
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.session_options import ReadSettings
from paimon_spark.types import spark_schema

_NUMBERS = {"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"}
_IN_BOTH = _NUMBERS | {"BOOLEAN", "VARCHAR", "BINARY", "VARBINARY"}
_READ_ALIKE = {
    "parquet": _IN_BOTH | {"CHAR", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "VARIANT"},
    "orc": _IN_BOTH,  # Spark reads times in the JVM's zone and old dates as Julian, and keeps blanks
}
"""The type roots that Spark reads with the same values as the engine, by file format."""
_POSITIONAL = "_col"
"""Spark finds columns by position if the names of all columns of an ORC file start with this prefix."""
_MAX_OPENED = 64
"""The most files to open to check for partition columns; beyond that, reading through Python is cheaper."""
LEAST_BYTES = 32 << 20
"""The smallest total size for which a separate native scan pays off; below it, two scans are slower than one."""
_LOCAL = "file:"
_FINEST = 6
"""The timestamp precision of Spark. Parquet stores finer timestamps in another type."""
_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
}
"""Options of Spark's scan: only the Gregorian calendar, and an error for a missing or corrupt file."""
_IN_ONE_THREAD = {"parquet.hadoop.vectored.io.enabled": "false"}
"""Options of Spark's scan of local Parquet files. Hadoop passes each range of a vectored read to another thread, which
takes as long as to read and decode a small file; on object stores it reads ranges at the same time."""
ALL_ROW_GROUPS = {f"parquet.filter.{kind}.enabled": "false" for kind in ("bloom", "columnindex", "dictionary", "stats")}
"""Options of Spark's Parquet scan that disable the pruning of row groups."""


@dataclass(frozen=True)
class NativeFiles:
    """The files that Spark's own scan can read: their format, bytes by path, and the number of files of the scan."""

    kind: str
    sizes: Mapping[str, int]
    of: int
    ambiguous: bool = False
    """True if row groups must not be pruned, because two columns may have the same path: see `has_ambiguous_paths`."""

    @property
    def is_local(self) -> bool:
        """True if all files are on local disks."""
        return all(uri.startswith(_LOCAL) for uri in self.sizes)

    @property
    def options(self) -> dict[str, str]:
        """The options of Spark's scan of the files."""
        return _OPTIONS | _IN_ONE_THREAD if self.is_local and self.kind == "parquet" else _OPTIONS

    def __str__(self) -> str:
        return f"native: {len(self.sizes)} of {self.of} {FORMATS[self.kind].title} files"


def native_files(jvm: Jvm, store: FileStore, columns: StructType, plan: Callable[[], Plan]) -> NativeFiles | str:
    """Return the files of a scan if Spark would read the same rows as the engine, else the reason why not.

    Args:
        jvm: the JVM of the session.
        store: the table.
        columns: the columns of the query.
        plan: a function that plans the scan; called only if the table can be read natively.
    """
    reason = unsuitable_table(store) or unsuitable_columns(store.schema, columns, "parquet")
    if reason is not None:
        return reason
    scan_plan = plan()
    reason = unsuitable_files(store, scan_plan.splits, columns.names)
    if reason is not None:
        return reason
    sizes = sizes_of(store, scan_plan)
    first = next(iter(sizes), None)
    kind = "parquet" if first is None else first.rpartition(".")[2]
    reason = unsuitable_columns(store.schema, columns, kind)
    if reason is None and first is not None and not is_reachable(jvm, first.rpartition("/")[0]):
        reason = f"Spark's JVM cannot read {first}"
    if reason is not None:
        return reason
    others = {file.schema_id for split in scan_plan.splits for file in split.files} - {store.schema.id}
    schemas = [store.schema, *map(store.schemas.get, others)]
    ambiguous = any(has_ambiguous_paths(schema.fields) for schema in schemas)
    return NativeFiles(kind, sizes, scan_plan.files_in_partitions, ambiguous)


def divided_plan(plan: Plan, *, masked: bool) -> tuple[Plan, Plan] | None:
    """Divide a plan into the files that Spark's own scan may read, and the rest; `None`: a division does not pay off.

    Args:
        plan: the plan.
        masked: True if the first part may have deletion vectors.
    """
    raw = [split.raw_convertible and (masked or not split.vectors) for split in plan.splits]
    first = replace(plan, splits=list(compress(plan.splits, raw)))
    rest = replace(plan, splits=[split for split, is_raw in zip(plan.splits, raw, strict=True) if not is_raw])
    too_small = not rest.splits or sum(split.size for split in first.splits) < LEAST_BYTES
    return None if too_small else (first, rest)


def scan_text(
    schema: TableSchema, files: NativeFiles, columns: StructType, masked: Mapping[str, object] | None = None
) -> str:
    """Return the JSON from which ``NativeFiles.java`` creates Spark's own scan.

    Args:
        schema: the schema of the table at the time of the scan.
        files: the files.
        columns: the columns of the query.
        masked: the names of the columns for position masks, and the indexes of masks; `None`: the scan has no masks.
    """
    names = set(columns.names)
    whole = spark_schema([field for field in schema.fields if field.name in names])
    return json.dumps(
        {
            "format": files.kind,
            "local": files.is_local,
            "files": files.sizes,
            "columns": whole.json(),
            "required": columns.json(),
            "options": files.options,
            "pushes": not files.ambiguous,
            "masked": masked,
        }
    )


def with_options(names: Iterable[str]) -> str:
    """Return the reason why a read with these options is not native, for EXPLAIN."""
    return f"with the options {', '.join(sorted(names))}"


def unsuitable_table(store: FileStore) -> str | None:
    """Return the reason why no scan of a table can be native; `None`: scans can be native."""
    if store.traits.data_evolution:
        return "rows are joined from several files by their ids"
    return None


def unsuitable_columns(schema: TableSchema, columns: StructType, kind: str) -> str | None:
    """Return the reason why Spark cannot read these columns as the engine does; `None`: it can.

    Args:
        schema: the schema of the table.
        columns: the columns of the query.
        kind: the format of the files.
    """
    names = ColumnNames(field.name.lower() for field in schema.fields)
    by_name = {field.name: field for field in schema.fields}
    for name in columns.names:
        if name not in by_name:
            return f"column {name} is computed"
        if len(names.positions(name.lower())) > 1:
            return f"several columns are called {name}, apart from case"
        if not _reads_alike(by_name[name].type, kind):
            return f"Spark reads type {by_name[name].type} differently from {FORMATS[kind].title} files"
        if kind == "orc" and name.startswith(_POSITIONAL):
            return f"Spark finds columns such as {name} by position in ORC files"
        if kind == "orc" and any("`" in part for part in _names_within(by_name[name])):
            return f"Spark cannot find ORC columns with a backtick in their names, such as {name}"
    return None


def unsuitable_variants(columns: StructType, settings: ReadSettings) -> str | None:
    """Return the setting that forbids Spark's own scan of variants in these columns, in words; `None`: none does."""
    return settings.no_variants if has_variants(columns) else None


def has_variants(columns: StructType) -> bool:
    """Return True if a column is or contains a variant. A name such as ``variant`` may cause a wrong True."""
    return "variant" in columns.simpleString()


def may_be_shredded(store: FileStore, splits: Sequence[DataSplit]) -> bool:
    """Return True if the options of a table, or of the schemas of these files, shred variants."""
    ids = {file.schema_id for split in splits for file in split.files} - {store.schema.id}
    written = [store.options, *(store.schemas.get(number).options for number in ids)]
    return any(o.has(VARIANT_SHREDDINGSCHEMA) or o.value(VARIANT_INFERSHREDDINGSCHEMA) for o in written)


def has_ambiguous_paths(fields: Sequence[DataField]) -> bool:
    """Return True if the names of two stored columns may be equal once dots join the names of each path.

    The column `a.b` and the field `b` of the column `a` are such columns. Parquet's reader looks up dictionaries and
    bloom filters by these joined names, so a filter on one column would prune row groups by the values of the other.
    """
    names = [field.name for field in fields]
    dotted = [name for name in names if "." in name]
    return any(name.startswith(f"{prefix}.") for name in dotted for prefix in names) or any(
        has_ambiguous_paths(row.fields) for field in fields for row in _rows_within(field.type)
    )


def _rows_within(type_: DataType) -> Iterator[RowType]:
    """Yield the structs of a type that are not inside another struct of the type."""
    match type_:
        case RowType():
            yield type_
        case MapType():
            yield from _rows_within(type_.key)
            yield from _rows_within(type_.value)
        case ArrayType() | MultisetType():
            yield from _rows_within(type_.element)


def _names_within(field: DataField) -> Iterator[str]:
    """Yield the names of a column and of all fields inside the column."""
    yield field.name
    for row in _rows_within(field.type):
        for inner in row.fields:
            yield from _names_within(inner)


def unsuitable_files(store: FileStore, splits: Sequence[DataSplit], names: Iterable[str]) -> str | None:
    """Return the reason why Spark cannot read the files of these splits as the engine does; `None`: it can."""
    schemas: set[int] = set()
    kinds: set[str] = set()
    names = set(names)
    for split in splits:
        if not split.raw_convertible:
            return f"{len(split.files)} files of bucket {split.bucket} are merged"
        if split.vectors:
            return f"bucket {split.bucket} has deletion vectors"
        for file in split.files:
            kinds.add(file.file_name.rpartition(".")[2])
            schemas.add(file.schema_id)
    if not kinds <= _READ_ALIKE.keys():
        return f"the files are {', '.join(sorted(kinds))}, neither Parquet nor ORC"
    if len(kinds) > 1:
        return "some files are Parquet, others ORC"
    if kinds == {"orc"} and any(_holds_instants(f.type) for n in schemas for f in store.schemas.get(n).fields):
        return "the ORC files have a TIMESTAMP WITH LOCAL TIME ZONE column, for which Spark 4.1 fails"
    fields = {field.name: field for field in store.schema.fields if field.name in names}
    for number in schemas - {store.schema.id}:
        reason = _other_columns(store.schemas.get(number), fields)
        if reason is not None:
            return reason
    return _without_partition(store, splits, names.intersection(store.schema.partition_keys))


def _without_partition(store: FileStore, splits: Sequence[DataSplit], columns: Collection[str]) -> str | None:
    """Return the reason why files may lack the partition columns that Spark reads from them; `None`: no file does.

    Other tools write no partition columns. Files that were added from other tools have no sequence numbers, but a
    Paimon writer numbers the rows of a file consecutively. A file with a single row of number 0 may be either, so a few
    of these files are opened.
    """
    if not columns or store.schema.primary_keys:
        return None
    unclear: list[tuple[DataSplit, DataFileMeta]] = []
    for split in splits:
        for file in split.files:
            if file.first_row_id is not None:
                continue
            if file.max_sequence_number - file.min_sequence_number + 1 != file.row_count:
                return f"file {file.file_name} of another tool may lack the column {min(columns)}"
            if file.row_count == 1 and file.max_sequence_number == 0:
                unclear.append((split, file))
    if len(unclear) > _MAX_OPENED:
        return f"{len(unclear)} files of one row may be from another tool and lack the column {min(columns)}"
    lacking = parallel_map(lambda pair: _lacks_partition(store, *pair, columns), unclear)
    wrong = next((file for (_, file), lacks in zip(unclear, lacking, strict=True) if lacks), None)
    return None if wrong is None else f"file {wrong.file_name} of another tool lacks the column {min(columns)}"


def _lacks_partition(store: FileStore, split: DataSplit, file: DataFileMeta, columns: Collection[str]) -> bool:
    """Return True if a file has NULL in a partition column whose partition value is not NULL."""
    values = dict(zip(store.schema.partition_keys, store.partition_values(split.partition), strict=True))
    return any(
        is_all_null(store, split.bucket_ref, file, store.schema.field(name))
        for name in sorted(columns)
        if values[name] is not None
    )


def _other_columns(written: TableSchema, fields: Mapping[str, DataField]) -> str | None:
    """Return the reason why files of an older schema cannot be read by column name; `None`: they can."""
    alike: defaultdict[int | str, list[DataField]] = defaultdict(list)
    for f in written.fields:
        for key in (f.id, f.name.lower()):
            alike[key].append(f)
    for field in fields.values():
        if any(not is_same_field(f, field) for key in (field.id, field.name.lower()) for f in alike.get(key, ())):
            return f"column {field.name} has changed since schema {written.id}"
    return None


def is_same_field(first: DataField, second: DataField) -> bool:
    """Return True if two columns have equal ids, names and types, apart from nullability."""
    return first.id == second.id and first.name == second.name and _is_same_type(first.type, second.type)


def _is_same_type(first: DataType, second: DataType) -> bool:
    """Return True if two types are equal, apart from nullability."""
    match first, second:
        case ArrayType(), ArrayType():
            return _is_same_type(first.element, second.element)
        case MapType(), MapType():
            return _is_same_type(first.key, second.key) and _is_same_type(first.value, second.value)
        case RowType(), RowType():
            pairs = zip(first.fields, second.fields, strict=False)
            return len(first.fields) == len(second.fields) and all(is_same_field(a, b) for a, b in pairs)
        case AtomicType(), AtomicType():
            return _parameters(first) == _parameters(second)
    return False


def _parameters(kind: AtomicType) -> tuple[object, ...]:
    return kind.root, kind.length, kind.precision, kind.scale


def _holds_instants(type_: DataType) -> bool:
    return "LOCAL TIME ZONE" in str(type_)


def _reads_alike(type_: DataType, kind: str) -> bool:
    """Return True if Spark reads a type from files of a format with the same values as the engine."""
    match type_:
        case ArrayType():
            return _reads_alike(type_.element, kind)
        case MapType():
            return _reads_alike(type_.key, kind) and _reads_alike(type_.value, kind)
        case RowType():
            return bool(type_.fields) and all(_reads_alike(field.type, kind) for field in type_.fields)
        case AtomicType():
            timestamp = type_.root.startswith("TIMESTAMP")
            return type_.root in _READ_ALIKE[kind] and not (timestamp and (type_.precision or 0) > _FINEST)
    return False


def sizes_of(store: FileStore, plan: Plan) -> dict[str, int]:
    """Return the bytes of each file by path. A file with several parts counts once: Spark splits files."""
    return {uri_of(store.file_path(s.bucket_ref, file)): file.file_size for s in plan.splits for file in s.files}


def uri_of(path: str) -> str:
    """Return the URI of a path for Spark's JVM."""
    return path if "://" in path else f"{_LOCAL}{path}"


def path_of(uri: str) -> str:
    """Return the path of a file from a URI of `uri_of`."""
    return uri if "://" in uri else uri.removeprefix(_LOCAL)


@lru_cache(maxsize=64)
def is_reachable(jvm: Jvm, directory: str) -> bool:
    """Return True if the JVM has a file system and credentials for a directory that exists. The result is cached."""
    return bool(jvm.call("NativeRows", "reaches", java_session(jvm.spark), directory))
