"""Position masks: Spark's own Parquet scan reads files with deletion vectors, and a filter drops the deleted rows.

Spark's reader of Parquet returns the position of each row in its file. An optimizer rule adds this column to the scan,
and a filter that tests one bit for each row: see ``PositionMask.java``.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import IntegerType, LongType, StructType

from paimon_core import Plan
from paimon_core.engine import FileStore, StoredVector, live_mask, load_vectors, mask_bytes, parallel_map
from paimon_spark.sql.reads.native import uri_of
from paimon_spark.sql.session_options import MASK_MEMORY

POSITION = "_tmp_metadata_row_index"
"""The column in which Spark's reader of Parquet returns the position of a row."""
FILE = "__paimon_masked_file"
"""The column with the index of the file's mask; `UNMASKED`: all rows of the file are returned."""
UNMASKED = -1


@dataclass(frozen=True)
class FileMask:
    """The mask of a file, before it is read."""

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


def masks_of(store: FileStore, plan: Plan) -> Sequence[FileMask]:
    """Return the masks of the files of a plan that have deletion vectors, each file once."""
    masks: dict[str, FileMask] = {}
    for split in plan.splits:
        vectors = {vector.data_file: vector for vector in split.vectors}
        for file in split.files:
            if file.file_name in vectors:
                uri = uri_of(store.file_path(split.bucket_ref, file))
                masks[uri] = FileMask(uri, vectors[file.file_name], file.row_count)
    return list(masks.values())


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
    size = sum(mask_bytes(mask.rows) for mask in masks)
    return f"their masks of {size} bytes exceed {MASK_MEMORY}" if size > memory else None


def with_added_columns(columns: StructType) -> StructType:
    """Return the columns of a query, followed by the position of the row and the index of the file's mask."""
    return StructType([*columns.fields]).add(POSITION, LongType()).add(FILE, IntegerType(), nullable=False)


def masked_text(masks: Sequence[FileMask]) -> Mapping[str, object]:
    """Return the names of the added columns, and the index of each file's mask by path, for ``NativeFiles.java``."""
    return {"position": POSITION, "file": FILE, "indexes": {mask.uri: index for index, mask in enumerate(masks)}}


def read_masks(store: FileStore, masks: Sequence[FileMask]) -> bytes:
    """Read deletion vectors and return their masks, one after another. Raises the errors of `load_vectors`."""
    by_index: dict[str, list[StoredVector]] = {}
    for mask in masks:
        by_index.setdefault(mask.vector.path, []).append(mask.vector)
    vectors = dict(ChainMap(*parallel_map(lambda stored: load_vectors(store.io, stored), list(by_index.values()))))
    return b"".join(live_mask(vectors[mask.vector.data_file], mask.rows).tobytes() for mask in masks)
