"""The measurements of one commit, compaction, scan or read, as frozen values.

The metadata of a field says how an exporter records it (`Measure`). So logs, OpenTelemetry and sums treat a new field
without a change of their own.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Literal, TypeVar

M = TypeVar("M", bound="Metrics")
MEASURE: Final = "measure"
PHASES: Final = ("plan", "decode", "wait", "merge", "filter", "hand_over")
"""The phases of a read, in their order: see `ReadMetrics`."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The way to record a field: as a sum over time, as a distribution, as the last value, or as a property of others.

    ``name``: of the instrument, behind ``paimon.<event>.``. ``unit``: in UCUM, as OpenTelemetry has it.
    """

    kind: Literal["counter", "histogram", "gauge", "attribute"]
    name: str = ""
    unit: str = ""
    text: str = ""


def _count(name: str, unit: str, text: str) -> Any:
    return field(default=0, metadata={MEASURE: Measure("counter", name, unit, text)})


def _gauge(name: str, unit: str, text: str) -> Any:
    return field(default=0, metadata={MEASURE: Measure("gauge", name, unit, text)})


def _attribute(**default: Any) -> Any:
    return field(**default, metadata={MEASURE: Measure("attribute")})


def _duration(name: str, text: str, **default: Any) -> Any:
    return field(**default, metadata={MEASURE: Measure("histogram", name, "s", text)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The base of all measurements. ``a + b`` adds counts and times, and has the larger of two gauges.

    Every other field of ``a + b`` is that of ``b``.

    Args:
        table: the directory of the table, without passwords.
        branch: of the table.
        snapshot_id: of the snapshot that was made, or read; `None`: none.
    """

    event: ClassVar[str] = ""
    """The name of the measured event."""
    level: ClassVar[int] = logging.DEBUG
    """The level of the event's record in the log."""

    table: str = _attribute()
    branch: str = _attribute(default="main")
    snapshot_id: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, with ``event``, without those that are `None`: values of JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {name: dict(v) if isinstance(v, Mapping) else v for name, v in values.items() if v is not None}
        return {"event": self.event, **plain}

    def __add__(self: M, other: M) -> M:
        if type(other) is not type(self):
            return NotImplemented
        both = {f: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.metadata}
        kinds = {f: f.metadata[MEASURE].kind for f in both}
        added = {
            f.name: max(pair) if kinds[f] == "gauge" else _sum(*pair)
            for f, pair in both.items()
            if kinds[f] != "attribute"
        }
        return replace(other, **added)


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in (*one, *other)}
    return one + other


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetrics(Metrics):
    """The measurements of one commit, which made one snapshot or failed.

    A write that also compacts makes two commits: one of its rows, and one of kind COMPACT. Files that a compaction only
    moves to another level are ``files_moved``, and neither added nor deleted.

    Args:
        commit_kind: of the snapshot: APPEND, COMPACT, OVERWRITE or ANALYZE.
        commit_user: who committed.
        commit_identifier: of the commit among those of its user.
        error: the class of the error that ended the commit; `None`: the commit made ``snapshot_id``.
        seconds: from the first attempt to the end, waits included.
        phase_seconds: the parts of ``seconds``: "plan" (read the newest snapshot, decide what to change), "check"
            (conflicts), "write" (manifests), "sync" (to disk), "publish", "wait" (between attempts).
        attempts: attempts made; 1: the first one decided.
        lost_attempts: attempts whose snapshot id another commit took first.
        rows_received: rows that the writers of buckets got, before rows of one key were merged in memory.
        write_seconds: seconds in which writers took rows and wrote files; seconds of parallel writers add up.
        rows_added: rows in the added files.
        delete_rows_added: the part of these that deletes: rows of kind "-U" and "-D".
        rows_deleted: rows in the deleted files.
        rows_marked: rows that new deletion vectors mark as deleted; negative: a compaction applied the marks.
        total_rows: rows stored in all files of the snapshot, before merging.
    """

    event: ClassVar[str] = "commit"
    level: ClassVar[int] = logging.INFO

    commit_kind: str = _attribute()
    commit_user: str
    commit_identifier: int
    error: str | None = _attribute(default=None)
    seconds: float = _duration("duration", "Duration of a commit, with all attempts")
    phase_seconds: Mapping[str, float] = _duration("phase.duration", "Duration of a part of a commit", hash=False)
    attempts: int = _count("attempts", "{attempt}", "Attempts of commits")
    lost_attempts: int = _count("attempts.lost", "{attempt}", "Attempts that lost against another commit")
    rows_received: int = _count("rows.received", "{row}", "Rows that writers got, before merging in memory")
    write_seconds: float = _count("write.time", "s", "Time in which writers took rows and wrote files")
    files_added: int = _count("files.added", "{file}", "Data files that commits added")
    rows_added: int = _count("rows.added", "{row}", "Rows in the added files")
    delete_rows_added: int = _count("rows.added.deletes", "{row}", "Rows in the added files that delete")
    bytes_added: int = _count("bytes.added", "By", "Bytes of the added files")
    files_deleted: int = _count("files.deleted", "{file}", "Data files that commits removed from tables")
    rows_deleted: int = _count("rows.deleted", "{row}", "Rows in the removed files")
    bytes_deleted: int = _count("bytes.deleted", "By", "Bytes of the removed files")
    files_moved: int = _count("files.moved", "{file}", "Data files moved to another level")
    rows_marked: int = 0
    changelog_files: int = _count("changelog.files", "{file}", "Changelog files that commits added")
    changelog_rows: int = _count("changelog.rows", "{row}", "Rows in these changelog files")
    changelog_bytes: int = _count("changelog.bytes", "By", "Bytes of these changelog files")
    index_files_added: int = _count("index_files.added", "{file}", "Index files that commits added")
    partitions: int = _count("partitions", "{partition}", "Partitions changed, once for each commit")
    buckets: int = _count("buckets", "{bucket}", "Buckets changed, once for each commit")
    manifests_written: int = _count("manifests.written", "{file}", "Manifests written for changes")
    manifests_merged: int = _count("manifests.merged", "{file}", "Manifests replaced by merged ones")
    total_rows: int | None = None

    @property
    def rows_merged(self) -> int:
        """Received rows that were merged with another row of their key before a file was written."""
        return max(0, self.rows_received - self.rows_added) if self.rows_received else 0

    @property
    def retries(self) -> int:
        """Attempts after the first one."""
        return max(0, self.attempts - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionMetrics(Metrics):
    """The measurements of the compactions that one commit published, and of those it rejected.

    Args:
        seconds: time of all tasks that merged and wrote; seconds of parallel tasks add up. 0: unknown.
        buckets: buckets compacted.
        rejected: compactions that were not committed, because others changed the same files.
        rows_in: rows in the rewritten files.
        rows_out: rows in the new files.
        files_moved: files moved to another level without a rewrite; they are in no other count of files.
        level_0_files: files of level 0 that it took in, of the bucket with the most. It grows if compaction falls
            behind the writers.
    """

    event: ClassVar[str] = "compaction"
    level: ClassVar[int] = logging.INFO

    seconds: float = _duration("duration", "Time of the tasks of a compaction", default=0.0)
    buckets: int = _count("buckets", "{bucket}", "Buckets compacted, once for each commit")
    rejected: int = _count("rejected", "{compaction}", "Compactions that others made obsolete")
    files_in: int = _count("files.in", "{file}", "Data files that compactions rewrote")
    rows_in: int = _count("rows.in", "{row}", "Rows in these files")
    bytes_in: int = _count("bytes.in", "By", "Bytes of these files")
    files_out: int = _count("files.out", "{file}", "Data files that compactions wrote")
    rows_out: int = _count("rows.out", "{row}", "Rows in these files")
    bytes_out: int = _count("bytes.out", "By", "Bytes of these files")
    files_moved: int = _count("files.moved", "{file}", "Data files moved to another level without a rewrite")
    level_0_files: int = _gauge("level_0_files.max", "{file}", "Most files of level 0 that one bucket had to compact")
    changelog_files: int = _count("changelog.files", "{file}", "Changelog files that compactions wrote")
    changelog_rows: int = _count("changelog.rows", "{row}", "Rows in these changelog files")
    changelog_bytes: int = _count("changelog.bytes", "By", "Bytes of these changelog files")

    @property
    def rows_dropped(self) -> int:
        """Rows of the rewritten files that the new files leave out: merged, deleted or expired."""
        return self.rows_in - self.rows_out


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanMetrics(Metrics):
    """The measurements of the planning of one scan.

    Args:
        seconds: of planning.
        manifests_read: manifests read.
        manifests_skipped: manifests that hold no matching partition.
        files: data files that a read opens.
        files_skipped: files of matching partitions that are left out, by bucket, statistics or index.
        files_skipped_by_index: the part of these that an index left out.
        splits: splits planned.
        rows: rows stored in the splits, before merging and filters.
        bytes: of the files of the splits.
    """

    event: ClassVar[str] = "scan"

    seconds: float = _duration("duration", "Duration of planning")
    manifests_read: int = _count("manifests.read", "{file}", "Manifests that planning read")
    manifests_skipped: int = _count("manifests.skipped", "{file}", "Manifests without a matching partition")
    files: int = _count("files", "{file}", "Data files that reads open")
    files_skipped: int = _count("files.skipped", "{file}", "Data files left out by bucket, statistics or index")
    files_skipped_by_index: int = _count("files.skipped_by_index", "{file}", "Data files left out by an index")
    splits: int = _count("splits", "{split}", "Splits planned")
    rows: int = _count("rows", "{row}", "Rows stored in the splits")
    bytes: int = _count("bytes", "By", "Bytes of the files of the splits")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMetrics(Metrics):
    """The measurements of the reads of one split, or of several: ``a + b`` adds them.

    For reads that went on to their end ``rows_stored`` is the sum of ``rows_skipped``, ``rows_deleted``,
    ``rows_merged``, ``rows_retracted``, ``rows_filtered`` and ``rows``.

    Args:
        error: the class of the error that ended the read; `None`: it went on to its end, or its reader stopped.
        splits: splits that were read.
        files: data files that were opened or skipped; the parts of one file count once.
        files_skipped: the part of these that an index file excluded.
        bytes: encoded bytes of the columns and row groups that were decoded; of other formats than Parquet whole files.
        rows_stored: rows in the files, by their metadata.
        rows_skipped: rows that statistics of row groups or file indexes excluded.
        rows_deleted: rows that deletion vectors left out.
        rows_merged: older rows of their keys, which the merge took in; with data evolution, rows joined to others.
        rows_retracted: rows of kind "-U" and "-D" that no older row of their key followed.
        rows_filtered: rows that do not match the filter.
        rows: rows of the result.
        batches: batches of the result.
        seconds: from the first to the last batch, the reader's own work between them included; seconds of parallel
            reads add up.
        phase_seconds: the time by phase. "plan": metadata to splits. "decode": files to batches, with deletion vectors
            and changes of the schema. "wait": the merge waits for "decode", which another thread does. "merge": sort
            and fold. "filter": compare rows. "hand_over": make the batches of the result, and what the caller
            adds to pass them on. "decode" runs beside "merge", so the sum may exceed ``seconds``.
    """

    event: ClassVar[str] = "read"

    table: str = _attribute(default="")
    error: str | None = _attribute(default=None)
    splits: int = _count("splits", "{split}", "Splits read")
    files: int = _count("files", "{file}", "Data files opened, or skipped by an index")
    files_skipped: int = _count("files.skipped", "{file}", "Data files that an index excluded")
    bytes: int = _count("bytes", "By", "Encoded bytes of the columns and row groups that were decoded")
    rows_stored: int = _count("rows.stored", "{row}", "Rows in the files")
    rows_skipped: int = _count("rows.skipped", "{row}", "Rows that statistics or indexes excluded")
    rows_deleted: int = _count("rows.deleted", "{row}", "Rows that deletion vectors left out")
    rows_merged: int = _count("rows.merged", "{row}", "Older rows of their keys, which the merge took in")
    rows_retracted: int = _count("rows.retracted", "{row}", "Rows that delete, and found no row to delete")
    rows_filtered: int = _count("rows.filtered", "{row}", "Rows that do not match the filter")
    rows: int = _count("rows", "{row}", "Rows of results")
    batches: int = _count("batches", "{batch}", "Batches of results")
    seconds: float = _duration("duration", "Duration of the read of a split", default=0.0)
    phase_seconds: Mapping[str, float] = field(
        default_factory=lambda: dict.fromkeys(PHASES, 0.0),
        metadata={MEASURE: Measure("counter", "phase.time", "s", "Time spent in a phase of reads")},
    )

    def with_phase(self, phase: str, seconds: float) -> "ReadMetrics":
        """Return the metrics with ``seconds`` more in a phase, and in all."""
        spent = {**self.phase_seconds, phase: self.phase_seconds.get(phase, 0.0) + seconds}
        return replace(self, seconds=self.seconds + seconds, phase_seconds=spent)
