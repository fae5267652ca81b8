"""The rows that a statement changes, read by Spark's own scan, with the file and the position of each row."""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from paimon_core import DataSplit, Plan, Snapshot, Table, TableScan
from paimon_core.engine import FileStore, base_run, expiry, newer_rows, position_fields, shows_all
from paimon_core.errors import CorruptedError, OutOfRangeError, UnsupportedError
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import FILE_PATH, ROW_INDEX
from paimon_spark.internals import is_classic, java_session, select_texts
from paimon_spark.sql.bridge.conversions import frame_of, java_map, java_struct
from paimon_spark.sql.bridge.endpoints import FilesEndpoint, MaskEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.expired_reads import NativeRead, native_read
from paimon_spark.sql.reads.masks import (
    FILE,
    POSITION,
    FileMask,
    MergeMask,
    described_masks,
    masked_text,
    masks_of,
    read_masks,
    unsuitable_masks,
    unsuitable_merge,
)
from paimon_spark.sql.reads.native import (
    ALL_ROW_GROUPS,
    NativeFiles,
    native_files,
    path_of,
    sizes_of,
    unsuitable_variants,
)
from paimon_spark.sql.reads.newer_rows import with_newer_rows
from paimon_spark.sql.reads.pushdown import predicate_of
from paimon_spark.sql.session_options import (
    MASK_MEMORY,
    MASK_ROWS,
    NATIVE_READS,
    VARIANT_SETTINGS,
    ReadSettings,
    native_reads,
)
from paimon_spark.types import spark_schema

_log = logging.getLogger(__name__)
_METADATA = "_metadata"
_LOCAL = "^file:(//)?(?=/)"
"""The prefix of a local path in Spark, which the engine omits."""
_PATH = f"regexp_replace(url_decode(replace({_METADATA}.file_path, '+', '%2B')), '{_LOCAL}', '')"
"""The SQL text of the path of a row's file in the engine's form, from Spark's URI; see `_decoded`."""
_POSITIONS = {FILE_PATH.name, ROW_INDEX.name}
_FLOATS = ("FLOAT", "DOUBLE")
_READ_WHOLE = (*_FLOATS, "DATE", "TIMESTAMP")
"""Column types whose filters must not prune row groups. Spark's reader treats -0.0 and 0.0 as different, trusts bounds
that other writers computed without NaN, and shifts old dates in filters: see ``NativeFiles.java``."""


@dataclass
class FilesHandler(FilesEndpoint, MaskEndpoint):
    """The handler of the files of a snapshot, for ``NativeRows.java``."""

    scan: TableScan
    read: NativeRead
    """The read of all files."""
    spark: SparkSession
    settings: ReadSettings
    """The settings of the session, with the bounds of masks."""
    file_masks: Sequence[FileMask] = ()
    """The masks of the files with deleted rows, in the order of their indexes."""

    def matching(self, trees: str) -> str:
        """Return the paths of the files that may have rows for which all filters are true, as JSON.

        If the snapshot has expired, return all files; the scan of the files then reports the expiry.
        """
        store = self.scan.store
        predicate = predicate_of(json.loads(trees), store.schema)
        try:
            return json.dumps(list(sizes_of(store, replace(self.scan, predicate=predicate).plan())))
        except OutOfRangeError:
            return json.dumps(list(self.read.files))

    def masks(self) -> str:
        """See `MaskEndpoint`."""
        return described_masks(self.file_masks, self.settings.mask_memory)

    def read_masks(self, numbers: str) -> bytes:
        """See `MaskEndpoint`. Raises OutOfRangeError if the snapshot has expired."""
        store, snapshot = self.scan.store, self.scan.snapshot
        try:
            masks = [self.file_masks[number] for number in json.loads(numbers)]
            return read_masks(self.spark, store, masks, self.settings.mask_rows)
        except CorruptedError as error:
            expired = None if snapshot is None else expiry(store, snapshot, str(error))
            if expired is not None:
                raise expired from error
            raise


def stored_rows(spark: SparkSession, table: Table, snapshot: Snapshot, positions: Sequence[str]) -> DataFrame | None:
    """Return the rows of a snapshot, read by Spark's own scan; `None`: it cannot read them.

    Args:
        spark: the session of the statement.
        table: the table.
        snapshot: the snapshot to read.
        positions: the names of the columns with the stored position of a row; empty if rows have a primary key.
    """
    try:
        target = native_target(spark, table, snapshot, positions)
        if isinstance(target, str):
            return None
        jvm = Jvm(spark)
        shown = json.loads(jvm.connector_class("NativeRows").shown(json.dumps(target.files.sizes)))
        if any(_decoded(path) != path_of(uri) for path, uri in shown.items()):
            return None
        scan = _scan(table, snapshot)
        read = native_read(scan.store, snapshot, target.files.sizes)
        handler = FilesHandler(scan, read, spark, ReadSettings.of(_settings_of(spark)), target.masks)
        rows = native_frame(jvm, target.files, table.schema.fields, handler, target.masks)
        rows = _with_positions(rows, positions, masked=bool(target.masks))
        if target.newer:
            rows = with_newer_rows(jvm, rows, newer_rows(scan.store, target.newer), table.schema)
    except (UnsupportedError, Py4JError) as error:  # for example, if the JVM accepts no classes
        _log.info("the Python data source reads the target: %s", error)
        return None
    return rows


def _with_positions(rows: DataFrame, positions: Sequence[str], *, masked: bool) -> DataFrame:
    """Return rows of `native_frame` with the columns of the table and `positions`. `masked`: True if it used masks."""
    if not masked and not positions:
        return rows
    texts = {FILE_PATH.name: _PATH, ROW_INDEX.name: POSITION if masked else f"{_METADATA}.row_index"}
    stored = f"* EXCEPT ({POSITION}, {FILE})" if masked else "*"
    return select_texts(rows, [stored, *(f"{texts[name]} AS {name}" for name in positions)])


def native_frame(
    jvm: Jvm,
    files: NativeFiles,
    fields: Sequence[DataField],
    handler: FilesHandler,
    file_masks: Sequence[FileMask] = (),
) -> DataFrame:
    """Return the rows of Parquet files, read by Spark; ``_metadata`` has the file and position of each row.

    With masks, deleted rows are left out, and the rows have two more columns, one of them `POSITION`.

    Args:
        jvm: the JVM of the session.
        files: the files.
        fields: the columns.
        handler: the handler that prunes files by filters, and reads masks.
        file_masks: the masks of the files with deleted rows.
    """
    whole = files.ambiguous or any(root in str(field.type) for field in fields for root in _READ_WHOLE)
    options = files.options | (ALL_ROW_GROUPS if whole else {})
    columns, session = java_struct(jvm, spark_schema(fields)), java_session(jvm.spark)
    masked = json.dumps(masked_text(file_masks)) if file_masks else None
    rows = jvm.connector_class("NativeRows").of(
        session,
        json.dumps(files.sizes),
        files.is_local,
        columns,
        java_map(jvm, options),
        handler_of(jvm, handler),
        masked,
    )
    return frame_of(jvm, rows)


def _decoded(uri: str) -> str:
    return re.sub(_LOCAL, "", unquote(uri))


@dataclass(frozen=True)
class NativeTarget:
    """The files of a target that Spark reads, the masks of deleted rows, and the newer rows that the engine merges."""

    files: NativeFiles
    newer: Sequence[DataSplit] = ()
    masks: Sequence[FileMask] = ()

    def __str__(self) -> str:
        rows = sum(split.row_count for split in self.newer)
        merged = any(isinstance(mask, MergeMask) for mask in self.masks)
        masked = f", with {'superseded' if merged else 'deleted'} rows masked" if self.masks else ""
        return f"{self.files}{masked}, and {rows} newer rows through Python" if rows else f"{self.files}{masked}"


def native_target(
    spark: SparkSession, table: Table, snapshot: Snapshot, positions: Sequence[str]
) -> NativeTarget | str:
    """Return the files of the statement's target that Spark reads, or the reason why Python reads the rows."""
    if not is_classic(spark):
        return "a session of Spark Connect has no JVM to call"
    if not native_reads(spark.conf.get(NATIVE_READS, None)):
        return f"{NATIVE_READS} is off"
    if not set(positions) <= _POSITIONS:
        return "rows keep their ids"
    if any(field.name.lower() == _METADATA for field in table.schema.fields):
        return f"a column is called {_METADATA}, which is Spark's name for the positions of rows"
    columns, settings = spark_schema(table.schema.fields), ReadSettings.of(_settings_of(spark))
    reason = unsuitable_variants(columns, settings)
    if reason is not None:
        return reason
    scan = _scan(table, snapshot)
    target = _parts(table, scan.store, scan.plan(), settings)
    if isinstance(target, str):
        return target
    plan, newer, masks = target
    bare = replace(plan, splits=[_unmasked(split, masks) for split in plan.splits])
    files = native_files(Jvm(spark), scan.store, columns, lambda: bare)
    if isinstance(files, str):
        return files
    return NativeTarget(files, newer, masks) if files.kind == "parquet" else "the files are not Parquet"


def _parts(
    table: Table, store: FileStore, plan: Plan, settings: ReadSettings
) -> tuple[Plan, Sequence[DataSplit], Sequence[FileMask]] | str:
    """Return the plan of the files that Spark reads, the splits of newer rows, and the masks of the files.

    Returns the reason why Python reads the rows, if masks are necessary and not possible.
    """
    exact_keys = store.traits.keyed and not any(root in kind for kind in _key_types(table) for root in _FLOATS)
    divided = base_run(store, plan) if exact_keys else None
    base, newer = (plan, ()) if divided is None else (divided.plan, divided.newer)
    merged = next((split for split in plan.splits if not split.raw_convertible), None)
    if divided is None and merged is not None and store.traits.keyed:
        reason = f"{len(merged.files)} files of bucket {merged.bucket} are merged"
        unsuitable = unsuitable_merge(store, plan, settings.mask_rows)
        masks = [] if unsuitable is not None else masks_of(store, plan)
    else:
        reason = "rows have deletion vectors"
        masks = masks_of(store, replace(base, splits=[split for split in base.splits if split.raw_convertible]))
        unsuitable = None
    unsuitable = unsuitable or (unsuitable_masks(store, masks, settings.mask_memory) if masks else None)
    return (base, newer, masks) if unsuitable is None else f"{reason}, and {unsuitable}"


def _unmasked(split: DataSplit, masks: Sequence[FileMask]) -> DataSplit:
    """Return a split without deletion vectors, and without a merge if masks replace the merge."""
    merged = any(isinstance(mask, MergeMask) for mask in masks)
    return replace(split, vectors=(), raw_convertible=split.raw_convertible or merged)


def _settings_of(spark: SparkSession) -> dict[str, str | None]:
    return {name: spark.conf.get(name, None) for name in (MASK_MEMORY, MASK_ROWS, *VARIANT_SETTINGS)}


def _key_types(table: Table) -> list[str]:
    """Return the types of the primary key: Spark compares -0.0 and 0.0 as equal, but they are different keys."""
    return [str(table.schema.field(name).type) for name in table.schema.primary_keys]


def describe_target_read(spark: SparkSession, table: Table) -> str:
    """Describe in a few words, for EXPLAIN, how the rows that a statement changes are read."""
    snapshot = table.snapshot()
    if snapshot is None:
        return "there are no rows"
    target = native_target(spark, table, snapshot, [field.name for field in position_fields(table.store)])
    return f"rows are read through Python: {target}" if isinstance(target, str) else f"rows are read {target}"


def _scan(table: Table, snapshot: Snapshot) -> TableScan:
    store = table.store.in_microseconds()
    return TableScan(store.with_options(shows_all(store.schema)), snapshot)
