"""The parts of an explanation: the effect of pruning, the filters at each step, and the merged rows."""

from dataclasses import dataclass

from paimon_core.metrics.values import ReadMetrics


@dataclass(frozen=True, slots=True)
class Pruned:
    """One step of pruning, which keeps ``after`` of ``before`` files.

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
    """One conjunct of the filter, and the stage at which it is applied to rows.

    ``stage``: "partition" (whole partitions are left out), "read" (as files are read), "before the merge" or "after the
    merge". ``reason``: why no earlier stage applies the conjunct; `None` for the earliest stage. ``weaker``: a
    predicate that the conjunct implies and that is applied before the merge, or `None`.
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
    """A sorted run of a section: files without overlap. ``level``: the highest level of its files."""

    level: int
    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Section:
    """Files with connected key ranges, which are merged if they belong to several runs.

    ``runs``: the newest runs, as far as the explanation lists them; ``further_runs``: number of runs not listed.
    ``rows``: rows stored in all runs.
    """

    runs: tuple[Run, ...]
    further_runs: int
    rows: int

    @property
    def run_count(self) -> int:
        """The number of runs; more than one must be merged."""
        return len(self.runs) + self.further_runs


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """One split of the plan.

    Args:
        partition: the partition as a path, ``dt=d1``; "" for a table without partitions.
        bucket: the bucket number.
        way: "raw" (files one after another), "merge" (sections) or "join" (columns of one row are in several files).
        files: number of files in the split; 1 for a part of a file.
        rows: number of stored rows; for a part of a file, roughly the rows of its row groups.
        bytes: total size of the files.
        levels: the levels of the files.
        vectors: number of files with deletion vectors.
        part: first and last row of the part of a file; `None` if the files are read whole.
        row_ranges: number of row ranges that are joined from several files.
        sections: the sections, as far as the explanation lists them.
        further_sections: number of sections not listed.
        executed: measurements of the read of this split; `None` if it was not read.
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
        merge: splits that are read by section.
        join: splits whose rows are joined from files with different columns.
        files: data files that a read opens.
        rows: rows stored in these files, before merging and filters.
        bytes: total size of the files; parts of files count in proportion.
        sections: sections of all merge splits.
        merged_sections: sections with several runs.
        most_runs: the largest number of runs in a section.
        vectors: files with deletion vectors.
        deleted_rows: rows that the vectors mark, as far as metadata record it.
        index_files: files with an index file, which is evaluated when the file is read.
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
