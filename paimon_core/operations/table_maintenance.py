"""The group `Table.maintenance`: work on files and snapshots that changes no row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from paimon_core.operations.compaction.compact_manifests import compact_manifests
from paimon_core.operations.compaction.compact_table import compact_table
from paimon_core.operations.compaction.materialize_vectors import materialize_vectors
from paimon_core.operations.compaction.request import CompactionArguments, CompactionRequest, RescaleRequest
from paimon_core.operations.compaction.rescale import check_rescale, rescale
from paimon_core.operations.compaction.rewrite_indexes import IndexRewrite, rewrite_file_index
from paimon_core.operations.compaction.rewrite_result import RewriteResult, measure_rewrite
from paimon_core.operations.compaction.sort_compact import cluster_key, sort_table
from paimon_core.operations.history.earliest import repair_earliest_snapshot
from paimon_core.operations.history.expire import expire_after_commit, expire_table
from paimon_core.operations.history.expire_snapshots import Expired
from paimon_core.operations.history.orphan_files import OrphanFiles, remove_orphan_files
from paimon_core.operations.history.purge import purge, remove_missing_files
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.operations.partitions.expire_partitions import expiration_options, expire_partitions
from paimon_core.operations.row_changes.row_ids import reassign_row_ids
from paimon_core.predicate.filter import Filter, bound_filter
from paimon_core.schema.change import SetOption
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.time_travel import epoch_millis
from paimon_core.store.current_schema import check_same_table
from paimon_core.store.file_store import FileStore

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, slots=True)
class TableMaintenance:
    """Compaction, expiry and rescaling of one table; ``runner`` runs the tasks that rewrite files.

    Examples:
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> table.maintenance.compact(full=True).commit_kind
        'COMPACT'
        >>> table.maintenance.expire_snapshots(retain_max=1, retain_min=1).snapshots
        (1, 2)
    """

    store: FileStore
    runner: Runner = LOCAL

    def compact(
        self, *, progress: Progress | None = None, **arguments: "Unpack[CompactionArguments]"
    ) -> Snapshot | None:
        """Rewrite files in one commit that changes no row; `None`: there is nothing to do.

        Rows of postponed buckets are routed to their buckets, and so become visible. Rows of concurrent writes stay.
        Files that a concurrent job rewrites are left to that job, or sorted again.

        Args:
            progress: called with the bytes done and the bytes of all tasks; `None`: no reports.
            arguments: the fields of `CompactionRequest`: ``full``, ``order_by``, ``order_strategy``, ``partitions``,
                ``filter`` and ``buckets``. Without arguments, compact all partitions as far as the options call for it.

        Raises InvalidInputError for an unknown argument and for buckets with an order; CommitConflictError if each
        attempt to sort loses; CorruptedError for a file that is missing while its snapshot exists; OutOfRangeError if
        snapshots expire faster than a plan is made.
        """
        return self.run(CompactionRequest.from_arguments(arguments), progress=progress).snapshot

    def run(self, request: CompactionRequest | RescaleRequest, *, progress: Progress | None = None) -> RewriteResult:
        """Run a request as `compact` or `rescale` does; return the snapshot, and the files and bytes before and after.

        Arguments and errors: see `compact` and `rescale`.
        """
        if isinstance(request, RescaleRequest):
            return measure_rewrite(self.store, lambda: self._rescale(request, progress))
        result = measure_rewrite(self.store, lambda: self._compact(request, progress))
        if result.snapshot is not None:
            expire_after_commit(self.store, dedicated=True)
        return result

    def _compact(self, request: CompactionRequest, progress: Progress | None) -> Snapshot | None:
        store = self.store
        if request.sorts:
            key = cluster_key(store, request.order_by, request.order_strategy)
            predicate = bound_filter(request.filter, store.schema.fields)
            return sort_table(
                store,
                key,
                partitions=request.partitions,
                filter=predicate,
                runner=self.runner,
                progress=progress,
            )
        return compact_table(store, request, runner=self.runner, progress=progress)

    def expire_snapshots(
        self,
        older_than: datetime | str | int | None = None,
        retain_max: int | None = None,
        retain_min: int | None = None,
        *,
        max_deletes: int | None = None,
        dry_run: bool = False,
    ) -> Expired:
        """Remove old snapshots and the files that only old snapshots need; return what was removed.

        Snapshots that tags, branches and consumers need stay. Changelogs that are retained longer than their snapshots
        expire as their own options say. The option ``snapshot.expire.limit`` does not count here.

        Args:
            older_than: expire snapshots before this moment (epoch ms, a datetime or text in local time); `None`: before
                the age ``snapshot.time-retained``.
            retain_max: keep no more than the newest `retain_max` snapshots; `None`: ``snapshot.num-retained.max``.
            retain_min: keep at least the newest `retain_min` snapshots; `None`: ``snapshot.num-retained.min``.
            max_deletes: remove no more than the oldest `max_deletes` snapshots; `None`: all that are due.
            dry_run: remove nothing, and return what would be removed.
        """
        check_same_table(self.store.schemas, self.store.schema)
        before = None if older_than is None else epoch_millis(older_than)
        return expire_table(self.store, before, retain_max, retain_min, max_deletes=max_deletes, dry_run=dry_run)

    def expire_partitions(
        self,
        expiration_time: timedelta | str | None = None,
        *,
        timestamp_formatter: str | None = None,
        timestamp_pattern: str | None = None,
        strategy: str | None = None,
        max_num: int | None = None,
        dry_run: bool = False,
    ) -> list[dict[str, str]]:
        """Drop old partitions, and return their values as texts, {column: text}, in the order of the values.

        Args:
            expiration_time: the age, a timedelta or text such as "30 d"; `None`: ``partition.expiration-time``.
            timestamp_formatter: the format of the time in the values, such as "yyyyMMdd"; `None`: by the options.
            timestamp_pattern: the text with the time, such as "$dt $hour:00:00"; `None`: by the options, or the first
                partition column.
            strategy: "values-time" or "update-time" (the newest file counts); `None`: by the options.
            max_num: the most partitions to drop; `None`: ``partition.expiration-max-num``.
            dry_run: drop nothing, and return what would be dropped.

        Raises InvalidInputError for a table without partitions or without an age, UnsupportedError for another strategy
        or format, CommitConflictError if others change the partitions in every attempt.
        """
        given = expiration_options(expiration_time, timestamp_formatter, timestamp_pattern, strategy, max_num)
        return expire_partitions(self.store.with_options(given), dry_run=dry_run)

    def materialize_deletion_vectors(
        self,
        *,
        partitions: Sequence[Mapping[str, object]] | None = None,
        filter: Filter = None,
        progress: Progress | None = None,
    ) -> Snapshot | None:
        """Rewrite the files that have deletion vectors in one commit that changes no rows; `None` without vectors.

        Reads then need no vectors. Arguments and errors: see `compact`.
        """
        predicate = bound_filter(filter, self.store.schema.fields)
        made = materialize_vectors(
            self.store, partitions=partitions, filter=predicate, runner=self.runner, progress=progress
        )
        if made is not None:
            expire_after_commit(self.store, dedicated=True)
        return made

    def rewrite_file_index(
        self,
        *,
        partitions: Sequence[Mapping[str, object]] | None = None,
        filter: Filter = None,
        progress: Progress | None = None,
    ) -> Snapshot | None:
        """Write the missing indexes of ``file-index.<kind>.columns``; return `None` if no file lacks an index.

        One COMPACT replaces the entries of the files; no rows and no data files are written. A missing or damaged index
        file is written again. Level-0 files whose order matters get their indexes when they are compacted. Arguments
        and errors: see `compact`.
        """
        return self.index_files(partitions=partitions, filter=filter, progress=progress).snapshot

    def index_files(
        self,
        *,
        partitions: Sequence[Mapping[str, object]] | None = None,
        filter: Filter = None,
        progress: Progress | None = None,
    ) -> IndexRewrite:
        """Do the same as `rewrite_file_index`, and return the numbers of partitions and files, too.

        Arguments and errors: see `compact`.
        """
        predicate = bound_filter(filter, self.store.schema.fields)
        result = rewrite_file_index(
            self.store, partitions=partitions, filter=predicate, runner=self.runner, progress=progress
        )
        if result.snapshot is not None:
            expire_after_commit(self.store, dedicated=True)
        return result

    def compact_manifests(self) -> Snapshot | None:
        """Merge the manifests of the newest snapshot into a few large ones, and return the new COMPACT snapshot.

        `None`: there was nothing to merge.
        """
        return compact_manifests(self.store)

    def remove_missing_files(self, *, dry_run: bool = False) -> list[str]:
        """Remove missing data files from the newest snapshot in an OVERWRITE; return their names, sorted.

        For a table whose files were deleted by mistake and cannot be restored: their rows are lost, and the other rows
        become readable. ``dry_run``: True to only return the names.
        """
        return remove_missing_files(self.store, dry_run=dry_run)

    def reassign_row_ids(
        self, *, partitions: Sequence[Mapping[str, object]] | None = None, filter: Filter = None
    ) -> Snapshot | None:
        """Assign new row ids to partitions whose id ranges interleave, in one COMPACT; `None` if no ranges do.

        Each partition then has a separate range of ids. Only metadata is written. Arguments: see `compact`. Raises
        InvalidInputError for a table without data evolution, UnsupportedError for global indexes and for files that
        store ids with their rows.
        """
        predicate = bound_filter(filter, self.store.schema.fields)
        return reassign_row_ids(self.store, partitions=partitions, filter=predicate)

    def repair_earliest_snapshot(self, snapshot_id: int) -> tuple[int, int]:
        """Make a snapshot after a gap the earliest one; return the previous and the new earliest snapshot id.

        ``snapshot_id``: the snapshot after the gap. Only the hint EARLIEST is written. Raises InvalidInputError for a
        snapshot that does not exist or that directly follows another snapshot.
        """
        return repair_earliest_snapshot(self.store, snapshot_id)

    def purge(self) -> OrphanFiles:
        """Remove all rows, branches, tags, consumers, changelogs and old snapshots; return the unreferenced files.

        One snapshot without rows remains, and all unreferenced files are deleted. REQUIRES: no writer is active. Raises
        InvalidInputError (nothing changed) if an option of the table refers to one of its branches.
        """
        return purge(self.store, self.runner)

    def remove_orphan_files(
        self, older_than: datetime | str | int | None = None, *, dry_run: bool = False
    ) -> OrphanFiles:
        """Delete unreferenced files in the table's directories, and return their paths and sizes.

        Crashes, failed writes, rollbacks and deleted branches leave these files. Safe while readers, expiries and
        writers that began after ``older_than`` are active.

        Args:
            older_than: keep files modified at or after this time (epoch ms, a datetime or text in local time); `None`:
                a day ago. REQUIRES: no write that is still running began earlier.
            dry_run: True to delete nothing and return the files that would be deleted.

        Raises InvalidInputError for a moment in the future, CorruptedError (nothing changed) if metadata are missing.
        """
        before = None if older_than is None else epoch_millis(older_than)
        return remove_orphan_files(self.store, before, dry_run=dry_run, runner=self.runner)

    def rescale(
        self,
        buckets: int | None = None,
        *,
        partitions: Sequence[Mapping[str, object]] | None = None,
        filter: Filter = None,
        progress: Progress | None = None,
    ) -> Snapshot | None:
        """Change the number of buckets, and rewrite each partition with another number in a commit of its own.

        Rows do not change. A partition that is not rewritten yet refuses new rows.

        Args:
            buckets: the new number; `None`: the number of the option ``bucket``.
            partitions: the partitions to rewrite, each {column: value}; `None`: all.
            filter: a filter on partition columns.
            progress: called with the bytes done and the bytes of all tasks.

        Returns the last snapshot; `None`: there is nothing to do.
        Raises CommitConflictError if others changed a partition in every attempt, InvalidInputError if the old or the
        new number is not fixed.
        """
        request = RescaleRequest(buckets=buckets, partitions=partitions, filter=filter)
        return self._rescale(request, progress)

    def _rescale(self, request: RescaleRequest, progress: Progress | None) -> Snapshot | None:
        store, buckets = self.store, request.buckets
        if buckets is not None and buckets != store.schema.bucket:
            check_rescale(store, buckets)
            store = store.keeping_options(store.alter([SetOption("bucket", str(buckets))]).schema)
        predicate = bound_filter(request.filter, store.schema.fields)
        return rescale(store, partitions=request.partitions, filter=predicate, progress=progress, runner=self.runner)
