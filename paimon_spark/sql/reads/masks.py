"""Position masks: Spark's own Parquet scan reads all rows of the files, and a filter drops rows by their positions.

A mask leaves out the rows that a deletion vector deletes, or the rows that a merge of files supersedes or deletes.
Spark's reader of Parquet returns the position of each row in its file. An optimizer rule adds this column to the scan,
and a filter that tests one bit for each row: see ``PositionMask.java``.
"""

import json
import os
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StructType

from paimon_core import DataSplit, Plan
from paimon_core.engine import (
    FileStore,
    MemoryShares,
    Predicate,
    StoredVector,
    live_mask,
    load_vectors,
    mask_bytes,
    merge_masks,
    merged_sections,
    packed_mask,
    parallel_map,
    section_digest,
)
from paimon_core.options.scan import SCAN_IGNORE_CORRUPT_FILES, SCAN_IGNORE_LOST_FILES
from paimon_spark.distribute import SparkRunner
from paimon_spark.sql.reads.native import uri_of
from paimon_spark.sql.session_options import MASK_MEMORY, MASK_ROWS

POSITION = "_tmp_metadata_row_index"
"""The column in which Spark's reader of Parquet returns the position of a row."""
FILE = "__paimon_masked_file"
"""The column with the index of the file's mask; `UNMASKED`: all rows of the file are returned."""
UNMASKED = -1


@dataclass(frozen=True)
class VectorMask:
    """The mask of a file with a deletion vector, before the vector is read."""

    uri: str
    """The path of the file for Spark's JVM."""
    vector: StoredVector
    rows: int
    """The number of rows of the file."""

    @property
    def key(self) -> str:
        """A text that identifies the mask, for the cache of masks."""
        stored = self.vector.range
        return f"{self.vector.path} {stored.data_file} {stored.offset} {stored.length} {self.rows}"


@dataclass(frozen=True)
class MergeMask:
    """The mask of a file that is merged with other files, before the merge."""

    uri: str
    """The path of the file for Spark's JVM."""
    section: DataSplit
    """The files that are merged."""
    digest: str
    """A text that identifies the masks of the section."""
    name: str
    """The name of the file."""
    rows: int
    """The number of rows of the file."""
    condition: Predicate | None = None
    """A condition on the key; the mask may leave out rows for which it is not true. `None`: no condition."""

    @property
    def key(self) -> str:
        """A text that identifies the mask, for the cache of masks."""
        return f"{self.uri} {self.digest}"


FileMask: TypeAlias = VectorMask | MergeMask


def masks_of(store: FileStore, plan: Plan, condition: Predicate | None = None) -> Sequence[FileMask]:
    """Return the masks of the files of a plan that are merged or have deletion vectors, each file once.

    Args:
        store: the table.
        plan: the plan.
        condition: a condition on the key; merges may skip rows for which it is not true. `None`: no condition.
    """
    masks: dict[str, FileMask] = {}
    for split in plan.splits:
        for section in merged_sections(store, split):
            digest = section_digest(store, section, condition)
            for file in section.files:
                uri = uri_of(store.file_path(split.bucket_ref, file))
                masks[uri] = MergeMask(uri, section, digest, file.file_name, file.row_count, condition)
        vectors = {vector.data_file: vector for vector in split.vectors if split.raw_convertible}
        for file in split.files if vectors else ():
            if file.file_name in vectors:
                uri = uri_of(store.file_path(split.bucket_ref, file))
                masks[uri] = VectorMask(uri, vectors[file.file_name], file.row_count)
    return list(masks.values())


def unsuitable_merge(store: FileStore, plan: Plan, most_rows: int) -> str | None:
    """Return the reason why the merges of a plan have no masks, in a few words; `None`: they have masks.

    Args:
        store: the table.
        plan: a plan with files that are merged.
        most_rows: the most rows that the driver merges; 0: merges have no masks.
    """
    if most_rows == 0:
        return f"{MASK_ROWS} is 0"
    traits = store.traits
    if not traits.keyed:
        return "only tables with a primary key have masks"
    if not traits.keeps_rows:
        return f"merge engine {traits.engine_type.name} combines rows"
    ignored = next((o for o in (SCAN_IGNORE_LOST_FILES, SCAN_IGNORE_CORRUPT_FILES) if store.options.value(o)), None)
    return None if ignored is None else f"{ignored.key} is on"


def unsuitable_masks(store: FileStore, masks: Sequence[FileMask], memory: int) -> str | None:
    """Return the reason why a scan cannot use these masks, in a few words; `None`: it can.

    Args:
        store: the table.
        masks: the masks of the files.
        memory: the most bytes of all masks.
    """
    name = next((field.name for field in store.schema.fields if field.name.lower() in (POSITION, FILE)), None)
    if name is not None:
        return f"a column is called {name}, as a column of position masks"
    size = size_of_masks(masks)
    return f"their masks of {size} bytes exceed {MASK_MEMORY}" if size > memory else None


def size_of_masks(masks: Sequence[FileMask]) -> int:
    """Return the bytes of masks in memory."""
    return sum(mask_bytes(mask.rows) for mask in masks)


def with_added_columns(columns: StructType) -> StructType:
    """Return the columns of a query, followed by the position of the row and the index of the file's mask."""
    return StructType([*columns.fields]).add(POSITION, LongType()).add(FILE, IntegerType(), nullable=False)


def masked_text(masks: Sequence[FileMask]) -> Mapping[str, object]:
    """Return the names of the added columns, and the index of each file's mask by path, for ``NativeFiles.java``."""
    return {"position": POSITION, "file": FILE, "indexes": {mask.uri: index for index, mask in enumerate(masks)}}


def described_masks(masks: Sequence[FileMask], memory: int) -> str:
    """Return the keys and the rows of masks, and the most bytes to cache, as JSON for ``PositionMask.java``."""
    return json.dumps({"keys": [mask.key for mask in masks], "rows": [mask.rows for mask in masks], "memory": memory})


def merged_rows(masks: Sequence[FileMask]) -> int:
    """Return the number of rows that a merge reads to compute the masks."""
    return sum(mask.rows for mask in masks if isinstance(mask, MergeMask))


def merge_threads(store: FileStore) -> int:
    """Return the most sections that the driver merges at a time: one per core, and at least two.

    Each merge holds up to 64 MiB of rows. With ``memory-limit``, sections are merged one at a time.
    """
    return MemoryShares.of(store.options).at_most(max(2, os.cpu_count() or 1))


def read_masks(spark: SparkSession, store: FileStore, masks: Sequence[FileMask], most_rows: int) -> bytes:
    """Read deletion vectors, merge sections, and return the masks, one after another.

    Args:
        spark: the session, whose tasks merge the sections that are too large for the driver.
        store: the table.
        masks: the masks to compute.
        most_rows: the most rows that the driver merges.

    Raises the errors of `load_vectors` and `merge_masks`.
    """
    by_index: dict[str, list[StoredVector]] = {}
    sections: dict[str, MergeMask] = {}
    for mask in masks:
        if isinstance(mask, VectorMask):
            by_index.setdefault(mask.vector.path, []).append(mask.vector)
        else:
            sections[mask.digest] = mask
    vectors = dict(ChainMap(*parallel_map(lambda stored: load_vectors(store.io, stored), list(by_index.values()))))
    by_section = dict(zip(sections, _merged(spark, store, list(sections.values()), most_rows), strict=True))
    return b"".join(
        live_mask(vectors[mask.vector.data_file], mask.rows).tobytes()
        if isinstance(mask, VectorMask)
        else by_section[mask.digest][mask.name]
        for mask in masks
    )


def _merged(
    spark: SparkSession, store: FileStore, sections: Sequence[MergeMask], most_rows: int
) -> Iterable[Mapping[str, bytes]]:
    """Return the masks of the files of each section, in the order of the sections."""
    if sum(mask.section.row_count for mask in sections) <= most_rows:
        return parallel_map(lambda mask: _packed_masks(store, mask), sections, merge_threads(store))
    return SparkRunner(spark, "masks of merged files").map(store, _packed_masks, sections, on_driver=0)


def _packed_masks(store: FileStore, mask: MergeMask) -> Mapping[str, bytes]:
    """Return the masks of all files of a section, by the name of the file."""
    return {n: packed_mask(live).tobytes() for n, live in merge_masks(store, mask.section, mask.condition).items()}
