"""Merging small manifests, and those whose entries cancel each other (behaviour 7.4).

Law: replaying the merged manifests gives the live files that replaying the given ones gives, in the same order: it is
the order of commits, by which equal sequence numbers are told apart.
"""

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.manifest.decode import UnknownFieldsError
from paimon_core.manifest.entry import DELETE, Identity, ManifestEntry, merge_entries
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.manifests import Manifests
from paimon_core.manifest.partition_stats import internal_values
from paimon_core.manifest.prune import may_hold_partitions
from paimon_core.options.snapshot import (
    MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE,
    MANIFEST_MERGE_MIN_COUNT,
    MANIFEST_TARGET_FILE_SIZE,
)
from paimon_core.predicate.expr import TRUE, And, Predicate, col
from paimon_core.row.binary_row import decode_rows


def merge_manifests(
    manifests: Manifests, metas: Sequence[ManifestFileMeta]
) -> tuple[list[ManifestFileMeta], list[str]]:
    """All manifests of a snapshot, oldest first -> the manifests to go on with, and the names newly written.

    The given files stay; who publishes nothing deletes the new ones. On failure they are deleted here. Manifests
    with fields this engine does not know are never rewritten: with one among the due, nothing is merged.
    Memory: one full manifest, or one group of small ones, and the identities of all deleted files.
    """
    merge = _Merge(manifests)
    try:
        merged = merge.full(metas)
        return (merge.minor(metas) if merged is None else merged), merge.written
    except UnknownFieldsError:
        manifests.delete(merge.written)
        return list(metas), []
    except BaseException:
        manifests.delete(merge.written)
        raise


class _Merge:
    """One merging: thresholds, and what has been written so far."""

    def __init__(self, manifests: Manifests) -> None:
        options = manifests.options
        self.target = options.value(MANIFEST_TARGET_FILE_SIZE)
        self.min_count = options.value(MANIFEST_MERGE_MIN_COUNT)
        self.full_threshold = options.value(MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE)
        self.manifests = manifests
        self.written: list[str] = []

    def must_change(self, meta: ManifestFileMeta) -> bool:
        return meta.num_deleted_files > 0 or meta.file_size < self.target

    def full(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta] | None:
        """Every deletion carried out; None when that is not due yet, or would rewrite a single manifest."""
        if sum(meta.file_size for meta in metas if self.must_change(meta)) < self.full_threshold:
            return None
        deleted = self._deleted(metas)
        touched = _touched(metas, deleted, self.manifests.partition_schema)
        due = {meta.file_name for meta, hit in zip(metas, touched, strict=True) if hit or self.must_change(meta)}
        if len(due) <= 1:
            return None
        result: list[ManifestFileMeta] = []
        group: list[ManifestFileMeta] = []
        for meta in metas:
            if meta.file_name in due and (self.must_change(meta) or self._loses(meta, deleted)):
                group.append(meta)
            else:
                result += [*self._without(group, deleted), meta]
                group = []
        result += self._without(group, deleted)
        return None if result == list(metas) else result

    def minor(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta]:
        """Small neighbours merged whenever they amount to a whole manifest, or are too many."""
        result: list[ManifestFileMeta] = []
        group: list[ManifestFileMeta] = []
        size = 0
        for meta in metas:
            group.append(meta)
            size += meta.file_size
            if size >= self.target:
                result += self._merged(group)
                group, size = [], 0
        return result + (self._merged(group) if len(group) >= self.min_count else group)

    def _merged(self, group: list[ManifestFileMeta]) -> list[ManifestFileMeta]:
        if len(group) == 1:
            return group
        return self._write(merge_entries([entry for meta in group for entry in self._read(meta)]))

    def _deleted(self, metas: Sequence[ManifestFileMeta]) -> set[Identity]:
        return {
            entry.identity
            for meta in metas
            if meta.num_deleted_files
            for entry in self.manifests.read(meta.file_name, meta.file_size, with_stats=False)
            if entry.kind == DELETE
        }

    def _loses(self, meta: ManifestFileMeta, deleted: Collection[Identity]) -> bool:
        """Return True if one of the files deleted is in the manifest."""
        entries = self.manifests.read(meta.file_name, meta.file_size, with_stats=False) if deleted else []
        return any(entry.identity in deleted for entry in entries)

    def _without(self, group: Sequence[ManifestFileMeta], deleted: Collection[Identity]) -> list[ManifestFileMeta]:
        """Rewrite neighbouring manifests without the files deleted; a small one that loses nothing stays as it is."""
        if len(group) == 1 and not group[0].num_deleted_files and not self._loses(group[0], deleted):
            return list(group)
        entries = (entry for meta in group for entry in self._read(meta))
        return self._write(e for e in entries if e.kind != DELETE and e.identity not in deleted) if group else []

    def _read(self, meta: ManifestFileMeta) -> list[ManifestEntry]:
        return self.manifests.read(meta.file_name, meta.file_size, lossless=True)

    def _write(self, entries: Iterator[ManifestEntry] | list[ManifestEntry]) -> list[ManifestFileMeta]:
        written = self.manifests.write(entries)
        self.written += [meta.file_name for meta in written]
        return written


def _touched(metas: Sequence[ManifestFileMeta], deleted: Collection[Identity], schema: pa.Schema) -> list[bool]:
    """Whether a manifest can hold files of the partitions from which something was deleted."""
    if not deleted or not len(schema):
        return [bool(deleted)] * len(metas)
    rows = decode_rows(list({identity[0] for identity in deleted}), schema)
    columns = zip(rows.schema.names, rows.columns, strict=True)
    predicate = And(tuple(_one_of(name, column) for name, column in columns))
    touched: list[bool] = may_hold_partitions(metas, predicate, schema).tolist()
    return touched


def _one_of(name: str, column: pa.Array) -> Predicate:
    """The column has one of these values; NaN is like every value, for bounds say nothing of it."""
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return TRUE
    values = internal_values(column.drop_null().unique())
    if not column.null_count:
        return col(name).isin(values)
    return col(name).is_null() | col(name).isin(values) if values else col(name).is_null()
