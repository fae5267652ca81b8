"""Merge small manifests, and manifests whose entries cancel each other (behaviour 7.4).

Law: the merged manifests have the same live files as the original manifests, in the same order. This is the order of
the commits, which decides between rows with equal sequence numbers.
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
    """Merge the manifests of a snapshot (oldest first). Return the manifests that replace them, and the new names.

    The original files stay. After an error the new files are deleted; a caller that publishes no snapshot deletes them.
    A manifest with unknown fields is never rewritten: if the merge would include it, nothing is merged.
    Memory: one full manifest, or one group of small manifests, and the identities of all deleted files.
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
    """One merge: its thresholds, and the names of the manifests that it has written."""

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
        """Apply every DELETE. `None`: the full merge is not due yet, or would rewrite a single manifest."""
        if sum(meta.file_size for meta in metas if self.must_change(meta)) < self.full_threshold:
            return None
        deleted = self._deleted(metas)
        affected = _affected(metas, deleted, self.manifests.partition_schema)
        due = {meta.file_name for meta, hit in zip(metas, affected, strict=True) if hit or self.must_change(meta)}
        if len(due) <= 1:
            return None
        result: list[ManifestFileMeta] = []
        group: list[ManifestFileMeta] = []
        for meta in metas:
            if meta.file_name in due and (self.must_change(meta) or self._holds_deleted(meta, deleted)):
                group.append(meta)
            else:
                result += [*self._without_deleted(group, deleted), meta]
                group = []
        result += self._without_deleted(group, deleted)
        return None if result == list(metas) else result

    def minor(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta]:
        """Merge consecutive small manifests: groups of the target size, and the last ones if there are many."""
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

    def _holds_deleted(self, meta: ManifestFileMeta, deleted: Collection[Identity]) -> bool:
        """Return True if an entry of the manifest is one of the deleted files."""
        entries = self.manifests.read(meta.file_name, meta.file_size, with_stats=False) if deleted else []
        return any(entry.identity in deleted for entry in entries)

    def _without_deleted(
        self, group: Sequence[ManifestFileMeta], deleted: Collection[Identity]
    ) -> list[ManifestFileMeta]:
        """Rewrite adjacent manifests without the deleted files. A single manifest that loses nothing is kept."""
        if len(group) == 1 and not group[0].num_deleted_files and not self._holds_deleted(group[0], deleted):
            return list(group)
        entries = (entry for meta in group for entry in self._read(meta))
        return self._write(e for e in entries if e.kind != DELETE and e.identity not in deleted) if group else []

    def _read(self, meta: ManifestFileMeta) -> list[ManifestEntry]:
        return self.manifests.read(meta.file_name, meta.file_size, lossless=True)

    def _write(self, entries: Iterator[ManifestEntry] | list[ManifestEntry]) -> list[ManifestFileMeta]:
        written = self.manifests.write(entries)
        self.written += [meta.file_name for meta in written]
        return written


def _affected(metas: Sequence[ManifestFileMeta], deleted: Collection[Identity], schema: pa.Schema) -> list[bool]:
    """Return, for each manifest, True if it can hold files of a partition with deleted files."""
    if not deleted or not len(schema):
        return [bool(deleted)] * len(metas)
    rows = decode_rows(list({identity[0] for identity in deleted}), schema)
    columns = zip(rows.schema.names, rows.columns, strict=True)
    predicate = And(tuple(_one_of(name, column) for name, column in columns))
    affected: list[bool] = may_hold_partitions(metas, predicate, schema).tolist()
    return affected


def _one_of(name: str, column: pa.Array) -> Predicate:
    """Return the predicate that the column has one of the values. Always true for NaN, which bounds leave out."""
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return TRUE
    values = internal_values(column.drop_null().unique())
    if not column.null_count:
        return col(name).isin(values)
    return col(name).is_null() | col(name).isin(values) if values else col(name).is_null()
