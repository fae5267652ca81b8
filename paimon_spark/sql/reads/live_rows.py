"""The number of rows of each split after merges, from position masks: `count(*)` of merged files reads no rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from paimon_core import Plan
from paimon_core.engine import FileStore
from paimon_spark.sql.bridge.endpoints import MaskEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.mask_choice import counts_pay
from paimon_spark.sql.reads.masks import (
    FileMask,
    VectorMask,
    described_masks,
    masks_of,
    read_masks,
    size_of_masks,
    unsuitable_merge,
)
from paimon_spark.sql.reads.native import uri_of
from paimon_spark.sql.session_options import ReadSettings


@dataclass(frozen=True)
class MaskSource(MaskEndpoint):
    """The masks of files, for ``PositionMask.java``."""

    store: FileStore
    files: Sequence[FileMask]
    spark: SparkSession
    settings: ReadSettings
    """The settings of the session, with the bounds of masks."""

    def masks(self) -> str:
        """Return the keys and the rows of the masks, and the most bytes to cache, as JSON."""
        return described_masks(self.files, self.settings.mask_memory)

    def read_masks(self, numbers: str) -> bytes:
        """Return the masks with these indexes (a JSON array), one after another."""
        files = [self.files[number] for number in json.loads(numbers)]
        return read_masks(self.spark, self.store, files, self.settings.mask_rows)


def live_rows(jvm: Jvm, store: FileStore, plan: Plan, settings: ReadSettings) -> list[int] | None:
    """Return the number of rows of each split that a read returns; `None`: Spark must count the rows.

    The rows of a file in several parts count for its first part. The JVM caches the masks, so later counts and scans of
    the same files do not merge them again.

    Args:
        jvm: the JVM of the session.
        store: the table.
        plan: a plan without a filter on rows.
        settings: the settings of the session.
    """
    if not settings.native or unsuitable_merge(store, plan, settings.mask_rows) is not None:
        return None
    masks = [mask for mask in masks_of(store, plan) if _cardinality(mask) is None]
    if size_of_masks(masks) > settings.mask_memory or not counts_pay(jvm, store, masks, settings.mask_rows):
        return None
    source = MaskSource(store, masks, jvm.spark, settings)
    counts: list[int] = json.loads(jvm.call("PositionMask", "liveRows", handler_of(jvm, source)))
    by_uri = dict(zip((mask.uri for mask in masks), counts, strict=True))
    rows: list[int] = []
    for split in plan.splits:
        deleted = {vector.data_file: vector.range.cardinality or 0 for vector in split.vectors}
        files = split.files if split.part is None or split.part.start == 0 else ()
        rows.append(
            sum(
                by_uri.get(
                    uri_of(store.file_path(split.bucket_ref, file)), file.row_count - deleted.get(file.file_name, 0)
                )
                for file in files
            )
        )
    return rows


def _cardinality(mask: FileMask) -> int | None:
    """Return the number of rows that a deletion vector deletes; `None`: unknown, or the file is merged."""
    return mask.vector.range.cardinality if isinstance(mask, VectorMask) else None
