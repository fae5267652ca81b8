"""The measurements of one commit, compaction, scan or read, as frozen values.

The metadata of a field defines how an exporter records it (`Measure`). So logs, OpenTelemetry and sums handle a new
field without a change.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Literal, TypeVar

M = TypeVar("M", bound="Metrics")
MEASURE: Final = "measure"
PHASES: Final = ("plan", "decode", "wait", "merge", "filter", "hand_over")
"""The phases of a read in order; see `ReadMetrics`."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The kind of a field: a sum over time, a distribution, a last value, or an attribute of the other fields.

    ``name``: name of the instrument, after ``paimon.<event>.``. ``unit``: a UCUM unit, as in OpenTelemetry.
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

    All other fields of ``a + b`` are taken from ``b``.

    Args:
        table: the directory of the table, without passwords.
        branch: the branch of the table.
        snapshot_id: id of the snapshot that was created or read; `None`: no snapshot.
    """

    event: ClassVar[str] = ""
    """The name of the measured event."""
    level: ClassVar[int] = logging.DEBUG
    """The level of the event's record in the log."""

    table: str = _attribute()
    branch: str = _attribute(default="main")
    snapshot_id: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return ``event`` and the fields that are not `None` by name, as JSON values."""
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


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, Mapping):
        return {key: left.get(key, 0.0) + right.get(key, 0.0) for key in (*left, *right)}
    return left + right


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetrics(Metrics):
    """The measurements of one commit, which created one snapshot or failed.

    A write that also compacts makes two commits: a commit of its rows, and a commit of kind COMPACT. A file that a
    compaction only moves to another level counts in ``files_moved``, not as added or deleted.

    Args:
        commit_kind: the kind of the snapshot: APPEND, COMPACT, OVERWRITE or ANALYZE.
        commit_user: the user of the commit.
        commit_identifier: the number of the commit among the commits of its user.
        error: the class of the error that ended the commit; `None`: the commit created ``snapshot_id``.
        seconds: time from the first attempt to the end, waits included.
        phase_seconds: ``seconds`` by phase: "plan" (read the newest snapshot, decide what to change), "check"
            (conflicts), "write" (manifests), "sync" (to disk), "publish", "wait" (between attempts).
        attempts: number of attempts; 1: no attempt was repeated.
        lost_attempts: attempts whose snapshot id another commit took first.
        rows_received: rows that the writers of buckets received, before rows of one key were merged in memory.
        write_seconds: time in which writers received rows and wrote files; seconds of parallel writers add up. If
            Spark's encoder writes the files, the time in which Spark computes the rows counts too.
        rows_added: rows in the added files.
        delete_rows_added: rows of kind "-U" and "-D" in the added files.
        rows_deleted: rows in the deleted files.
        rows_marked: rows that new deletion vectors mark as deleted; negative: a compaction removed the marked rows.
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
    rows_received: int = _count("rows.received", "{row}", "Rows that writers received, before merging in memory")
    write_seconds: float = _count("write.time", "s", "Time in which writers received rows and wrote files")
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
        """Attempts after the first attempt."""
        return max(0, self.attempts - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionMetrics(Metrics):
    """The measurements of the compactions that one commit published or rejected.

    Args:
        seconds: time of all tasks that merged and wrote; seconds of parallel tasks add up. 0: unknown.
        buckets: number of compacted buckets.
        rejected: compactions that were not committed, because other commits changed the same files.
        rows_in: rows in the rewritten files.
        rows_out: rows in the new files.
        files_moved: files moved to another level without a rewrite; no other count of files includes them.
        level_0_files: largest number of level-0 files that one bucket had to compact. It grows if compaction falls
            behind the writers.
    """

    event: ClassVar[str] = "compaction"
    level: ClassVar[int] = logging.INFO

    seconds: float = _duration("duration", "Time of the tasks of a compaction", default=0.0)
    buckets: int = _count("buckets", "{bucket}", "Buckets compacted, once for each commit")
    rejected: int = _count("rejected", "{compaction}", "Compactions that other commits made obsolete")
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
        seconds: time of planning.
        manifests_read: number of manifests read.
        manifests_skipped: manifests without a matching partition.
        files: data files that a read opens.
        files_skipped: files of matching partitions that bucket, statistics or an index excluded.
        files_skipped_by_index: number of these files that an index excluded.
        splits: number of planned splits.
        rows: rows stored in the splits, before merging and filters.
        bytes: bytes of the files of the splits.
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
    """The measurements of the reads of one or several splits; ``a + b`` adds them.

    For completed reads ``rows_stored`` is the sum of ``rows_skipped``, ``rows_deleted``, ``rows_merged``,
    ``rows_retracted``, ``rows_filtered`` and ``rows``.

    Args:
        error: the class of the error that ended the read; `None`: the read completed, or its reader stopped.
        splits: splits that were read.
        files: data files that were opened or skipped; the parts of one file count once.
        files_skipped: number of these files that a file index excluded.
        bytes: encoded bytes of the decoded columns and row groups; for formats other than Parquet, of whole files.
        rows_stored: rows in the files, from their metadata.
        rows_skipped: rows that statistics of row groups or file indexes excluded.
        rows_deleted: rows that deletion vectors left out.
        rows_merged: older rows of a key that the merge absorbed; with data evolution, rows joined to other rows.
        rows_retracted: rows of kind "-U" and "-D" that the merge left and the read dropped.
        rows_filtered: rows that do not match the filter.
        rows: rows of the result.
        batches: batches of the result.
        seconds: time from the first to the last batch, including the reader's own work between them; seconds of
            parallel reads add up.
        phase_seconds: time by phase. "plan": from metadata to splits. "decode": from files to batches, including
            deletion vectors and schema evolution. "wait": the merge waits for "decode", which runs in another thread.
            "merge": sort and fold. "filter": compare rows. "hand_over": create the batches of the result, and
            the caller's work to pass them on. "decode" runs in parallel to "merge", so the sum may exceed ``seconds``.
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
    rows_merged: int = _count("rows.merged", "{row}", "Older rows of a key that the merge absorbed")
    rows_retracted: int = _count("rows.retracted", "{row}", "Rows of kind -U and -D that the merge left")
    rows_filtered: int = _count("rows.filtered", "{row}", "Rows that do not match the filter")
    rows: int = _count("rows", "{row}", "Rows of results")
    batches: int = _count("batches", "{batch}", "Batches of results")
    seconds: float = _duration("duration", "Duration of the read of a split", default=0.0)
    phase_seconds: Mapping[str, float] = field(
        default_factory=lambda: dict.fromkeys(PHASES, 0.0),
        metadata={MEASURE: Measure("counter", "phase.time", "s", "Time spent in a phase of reads")},
    )

    def with_phase(self, phase: str, seconds: float) -> "ReadMetrics":
        """Return the metrics with ``seconds`` added to a phase and to the total."""
        spent = {**self.phase_seconds, phase: self.phase_seconds.get(phase, 0.0) + seconds}
        return replace(self, seconds=self.seconds + seconds, phase_seconds=spent)
