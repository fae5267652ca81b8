"""The parts of an explanation: what pruning left out, where filters act, what is merged."""

from dataclasses import dataclass

from paimon_core.metrics.values import ReadMetrics


@dataclass(frozen=True, slots=True)
class Pruned:
    """One step of pruning: ``after`` of ``before`` files are left.

    ``by``: "partition", "visibility" (batch reads do not show all files), "bucket", "key" (statistics of the primary
    key), "statistics" (of values), "index" (file indexes in metadata) or "limit". ``note``: a limitation or a reason.
    """

    by: str
    before: int
    after: int
    note: str | None = None

    @property
    def left_out(self) -> int:
        """The number of files that the step left out."""
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class FilterUse:
    """One conjunct of the filter, and the stage at which rows are compared with it.

    ``stage``: "partition" (whole partitions are left out), "read" (as files are read), "before the merge" or "after the
    merge". ``reason``: why not earlier; `None`: no stage is earlier. ``weaker``: a predicate that follows from
    the conjunct and acts before the merge; `None`: there is none.
    """

    text: str
    stage: str
    reason: str | None = None
    weaker: str | None = None


@dataclass(frozen=True, slots=True)
class LevelFiles:
    """The files of one level that are read, their rows and bytes."""

    level: int
    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    """A sorted run of a section: files without overlap. ``level``: the highest of its files."""

    level: int
    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Section:
    """Files whose key ranges are connected, which are merged if they are of several runs.

    ``runs``: the newest runs, at most as many as the explanation lists; ``further_runs``: runs that are not listed.
    ``rows``: rows stored in all of them.
    """

    runs: tuple[Run, ...]
    further_runs: int
    rows: int

    @property
    def run_count(self) -> int:
        """The number of runs; several are merged."""
        return len(self.runs) + self.further_runs


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """One split of the plan.

    Args:
        partition: as a path, ``dt=d1``; "": the table has no partitions.
        bucket: number of the bucket.
        way: "raw" (files one after another), "merge" (sections) or "join" (columns of one row are in several files).
        files: files of the split, or one if it is a part of a file.
        rows: rows stored; of a part about the rows of its row groups.
        bytes: of the files.
        levels: the levels of the files.
        vectors: files with deletion vectors.
        part: first and last row of the part of a file; `None`: the files are read whole.
        row_ranges: ranges of rows that are joined from several files.
        sections: the sections, at most as many as the explanation lists.
        further_sections: sections that are not listed.
        executed: measurements of the read of this split; `None`: it was not read.
    """

    partition: str
    bucket: int
    way: str
    files: int
    rows: int
    bytes: int
    levels: tuple[int, ...] = ()
    vectors: int = 0
    part: tuple[int, int] | None = None
    row_ranges: int = 0
    sections: tuple[Section, ...] = ()
    further_sections: int = 0
    executed: ReadMetrics | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of all splits of a plan, listed or not.

    Args:
        splits: splits of the plan.
        raw: splits whose files are read one after another.
        merge: splits of sections.
        join: splits whose rows are joined from files with different columns.
        files: data files that a read opens.
        rows: rows stored in them, before merging and filters.
        bytes: of the files; of parts of files in proportion.
        sections: sections of all merge splits.
        merged_sections: the part of these that has several runs.
        most_runs: runs of the section that has most.
        vectors: files with deletion vectors.
        deleted_rows: rows that the vectors mark, as far as metadata tell.
        index_files: files with an index file, which is asked when the file is read.
    """

    splits: int = 0
    raw: int = 0
    merge: int = 0
    join: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    sections: int = 0
    merged_sections: int = 0
    most_runs: int = 0
    vectors: int = 0
    deleted_rows: int = 0
    index_files: int = 0
