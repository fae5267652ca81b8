"""The manifests of a new snapshot: manifests of an earlier snapshot with the changes since then, or all live files."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from paimon_core.errors import CorruptedError, hide_secrets
from paimon_core.iceberg.data_files import added_records, changed_files, partition_record, shown_files
from paimon_core.iceberg.manifest_files import ADDED, DELETED, EXISTING, ManifestFiles, Record, avro_name
from paimon_core.iceberg.values import decoder
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.options.iceberg import (
    METADATA_ICEBERG_COMPACTION_MAX_FILE_NUM,
    METADATA_ICEBERG_COMPACTION_MIN_FILE_NUM,
)
from paimon_core.options.snapshot import MANIFEST_TARGET_FILE_SIZE
from paimon_core.schema.iceberg import iceberg_type
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Content:
    """The manifests of a snapshot, and the counts of its summary."""

    metas: list[Record]
    operation: str
    counts: dict[str, int]


class ManifestBuild:
    """A writer of the manifests of one snapshot. ``location``: the table's directory as the metadata spell it."""

    def __init__(self, store: FileStore, snapshot: Snapshot, manifests: ManifestFiles, location: str) -> None:
        self._store, self._snapshot, self._manifests, self._location = store, snapshot, manifests, location

    def from_live_files(self) -> Content:
        """Write the manifests from the live files."""
        store, number = self._store, self._snapshot.id
        records = (
            record
            for entries in shown_files(store, self._snapshot)
            for record in added_records(store, entries, number, self._location)
        )
        size = _Bytes()
        metas = self._manifests.write(size.counting(records), number)
        return Content(metas, "append", _counts(metas, metas, size.added, 0, size.added, len(size.partitions)))

    def following(self, base: Record) -> Content | None:
        """Write the manifests that differ from the manifests of ``base``. `None`: the changes since are unknown."""
        store, number = self._store, self._snapshot.id
        between = [store.snapshots.find(i) for i in range(int(base["snapshot-id"]) + 1, number + 1)]
        snapshots = [snapshot for snapshot in between if snapshot is not None]
        changes = changed_files(store, snapshots) if len(snapshots) == len(between) else None
        total = (base.get("summary") or {}).get("total-files-size")
        if changes is None or total is None:
            return None
        added, removed = changes
        try:
            metas = self._manifests.read_list(base["manifest-list"])
            size = _Bytes()
            staying, rewritten = self._without(metas, removed, size)
        except CorruptedError as error:
            _log.warning("Iceberg metadata is rewritten: %s", hide_secrets(str(error)))
            return None
        new = self._manifests.write(
            size.counting(added_records(store, added.values(), number, self._location)) if added else (), number
        )
        operation = "append"
        if rewritten:
            operation = "replace" if self._snapshot.commit_kind == CommitKind.COMPACT else "overwrite"
        counts = _counts(
            [*staying, *rewritten, *new],
            [*rewritten, *new],
            size.added,
            size.removed,
            int(total) + size.added - size.removed,
            len(size.partitions),
        )
        return Content(self._merged([*staying, *rewritten, *new]), operation, counts)

    def _without(
        self, metas: Sequence[Record], removed: dict[str, ManifestEntry], size: "_Bytes"
    ) -> tuple[list[Record], list[Record]]:
        """Return the manifests without removed files, and new manifests that replace the others."""
        if not removed:
            return list(metas), []
        partitions = {entry.partition for entry in removed.values()}
        test = _PartitionTest(
            self._store.schema, [partition_record(self._store, partition) for partition in partitions]
        )
        staying, rewritten = [], []
        for meta in metas:
            if not test.may_hold(meta) or not self._holds(meta, removed):
                staying.append(meta)
                continue
            rewritten += self._manifests.write(self._marked(meta, removed, size), self._snapshot.id)
        return staying, rewritten

    def _holds(self, meta: Record, removed: dict[str, ManifestEntry]) -> bool:
        return any(
            record["status"] != DELETED and _name(record) in removed
            for block in self._manifests.read(meta)
            for record in block
        )

    def _marked(self, meta: Record, removed: dict[str, ManifestEntry], size: "_Bytes") -> Iterator[Record]:
        """Yield the live entries of a manifest, with removed files as deleted by this snapshot."""
        for block in self._manifests.read(meta):
            for record in block:
                if record["status"] == DELETED:
                    continue
                if _name(record) in removed:
                    size.remove(record)
                    yield {**record, "status": DELETED, "snapshot_id": self._snapshot.id}
                else:
                    yield {**record, "status": EXISTING}

    def _merged(self, metas: list[Record]) -> list[Record]:
        """Return the manifests. Small manifests are merged if there are too many."""
        options = self._store.options
        target = options.value(MANIFEST_TARGET_FILE_SIZE)
        small = [meta for meta in metas if meta["manifest_length"] < target * 2 // 3]
        if len(small) < options.value(METADATA_ICEBERG_COMPACTION_MIN_FILE_NUM):
            return metas
        too_many = len(small) >= options.value(METADATA_ICEBERG_COMPACTION_MAX_FILE_NUM)
        if not too_many and sum(meta["manifest_length"] for meta in small) < target:
            return metas
        merged = self._manifests.write(self._entries(small), self._snapshot.id)
        obsolete = {meta["manifest_path"] for meta in small if meta["added_snapshot_id"] == self._snapshot.id}
        for path in obsolete & set(self._manifests.written):
            self._store.io.delete(path)
            self._manifests.written.remove(path)
        return [*(meta for meta in metas if meta not in small), *merged]

    def _entries(self, metas: Iterable[Record]) -> Iterator[Record]:
        """Yield the entries of manifests in the form for a manifest of this snapshot."""
        for meta in metas:
            for block in self._manifests.read(meta):
                for record in block:
                    if record["snapshot_id"] == self._snapshot.id:
                        yield record
                    elif record["status"] != DELETED:
                        yield {**record, "status": EXISTING}


class _PartitionTest:
    """A test for manifests that may hold files of some partitions, by the bounds of their partition columns."""

    def __init__(self, schema: TableSchema, partitions: Sequence[Record]) -> None:
        self._names = [avro_name(name) for name in schema.partition_keys]
        self._decoders = [decoder(str(iceberg_type(f.type, f.id))) for f in schema.partition_fields]
        self._partitions = partitions

    def may_hold(self, meta: Record) -> bool:
        """Return True if a file of one of the partitions may be in the manifest."""
        bounds = meta["partitions"] or []
        if len(bounds) != len(self._names):
            return True
        tests = [self._column(bound, decode) for bound, decode in zip(bounds, self._decoders, strict=True)]
        return any(
            all(test(partition[name]) for test, name in zip(tests, self._names, strict=True))
            for partition in self._partitions
        )

    def _column(self, bound: Record, decode: Any) -> Any:
        low, high = bound["lower_bound"], bound["upper_bound"]
        if low is None or high is None:
            return lambda value: value is None
        smallest, largest = decode(low), decode(high)
        return lambda value: bound["contains_null"] if value is None else smallest <= value <= largest


class _Bytes:
    """Counters of the bytes and partitions of added and removed files."""

    def __init__(self) -> None:
        self.added = self.removed = 0
        self.partitions: set[tuple[Any, ...]] = set()

    def counting(self, records: Iterable[Record]) -> Iterator[Record]:
        """Count and yield the records of added files."""
        for record in records:
            assert record["status"] == ADDED
            self.added += record["data_file"]["file_size_in_bytes"]
            self._note(record)
            yield record

    def remove(self, record: Record) -> None:
        """Count a removed file."""
        self.removed += record["data_file"]["file_size_in_bytes"]
        self._note(record)

    def _note(self, record: Record) -> None:
        self.partitions.add(tuple(record["data_file"]["partition"].values()))


def _counts(
    metas: Sequence[Record], new: Sequence[Record], added: int, removed: int, total: int, partitions: int
) -> dict[str, int]:
    """Return the summary of a snapshot.

    Args:
        metas: all manifests of the snapshot.
        new: the manifests that were written for the snapshot.
        added: the bytes of the added files.
        removed: the bytes of the removed files.
        total: the bytes of all files.
        partitions: the number of changed partitions.
    """

    def of(metas: Sequence[Record], name: str) -> int:
        return sum(int(meta[name]) for meta in metas)

    return {
        "added-data-files": of(new, "added_files_count"),
        "added-records": of(new, "added_rows_count"),
        "added-files-size": added,
        "deleted-data-files": of(new, "deleted_files_count"),
        "deleted-records": of(new, "deleted_rows_count"),
        "removed-files-size": removed,
        "changed-partition-count": partitions,
        "total-records": of(metas, "added_rows_count") + of(metas, "existing_rows_count"),
        "total-data-files": of(metas, "added_files_count") + of(metas, "existing_files_count"),
        "total-files-size": total,
        "total-delete-files": 0,
        "total-position-deletes": 0,
        "total-equality-deletes": 0,
    }


def _name(record: Record) -> str:
    return str(record["data_file"]["file_path"]).rpartition("/")[2]
