"""The explanation of a read, as a value with a text.

It is small: a plan of many files is counted, and only the first of its splits and sections are listed.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from paimon_core.inspect.explain.explanation_text import (
    executed_lines,
    filter_line,
    merge_line,
    pruning_lines,
    read_line,
    split_lines,
)
from paimon_core.inspect.explain.parts import FilterUse, LevelFiles, Pruned, SplitPlan, Totals
from paimon_core.metrics.values import ReadMetrics
from paimon_core.types.human_text import count, printable


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """An explanation of one read: ``str`` gives its text, `to_dict` values of JSON.

    Args:
        table: the directory of the table, without passwords, with its branch or view.
        snapshot_id: the snapshot that is read; `None`: the table is empty.
        schema_id: the schema of the read.
        merge_engine: of the table; `None`: it has no primary key.
        columns: the columns of the result; `None`: all.
        filter: the filter; `None`: every row matches.
        manifests: manifests of the snapshot.
        manifests_read: the part of these that planning read; the others hold no matching partition.
        pruning: the steps that left files out, in order; the last ``after`` is the number of files that are read.
        filters: the conjuncts of the filter.
        totals: counts of all splits.
        levels: the files that are read, by level; empty: the table has no primary key.
        splits: the first splits, at most as many as were asked for.
        engine: who reads, and why; `None`: this process.
        executed: what the read did; `None`: it was not executed.
    """

    table: str
    snapshot_id: int | None
    schema_id: int
    merge_engine: str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    manifests: int = 0
    manifests_read: int = 0
    pruning: tuple[Pruned, ...] = ()
    filters: tuple[FilterUse, ...] = ()
    totals: Totals = field(default_factory=Totals)
    levels: tuple[LevelFiles, ...] = ()
    splits: tuple[SplitPlan, ...] = ()
    engine: str | None = None
    executed: ReadMetrics | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, as values of JSON."""
        return asdict(self)

    def __str__(self) -> str:
        name, totals = printable(self.table), self.totals
        if self.snapshot_id is None:
            return f"{name}: no snapshot, nothing to read"
        engine = f", merge engine {self.merge_engine}" if self.merge_engine else ""
        columns = "all" if self.columns is None else ", ".join(map(printable, self.columns)) or "none"
        others = ", the others hold no matching partition" if self.manifests_read < self.manifests else ""
        lines = [
            f"{name}: snapshot {self.snapshot_id}, schema {self.schema_id}{engine}",
            f"columns: {columns}",
            f"filter: {'none' if self.filter is None else printable(self.filter)}",
            *(f"  {filter_line(use)}" for use in self.filters),
            *([f"manifests: {self.manifests_read} of {self.manifests} read{others}"] if self.manifests else []),
            *pruning_lines(self.pruning),
            read_line(totals, self.levels),
            merge_line(totals),
        ]
        if self.engine is not None:
            lines.append(f"read by: {printable(self.engine)}")
        for split in self.splits:
            lines += [f"  {line}" for line in split_lines(split)]
        if totals.splits > len(self.splits):
            lines.append(f"  and {count(totals.splits - len(self.splits), 'further split')}")
        if self.executed is not None:
            lines += executed_lines(self.executed)
        return "\n".join(lines)

    def __repr__(self) -> str:
        if self.snapshot_id is None:
            return "Explanation(no snapshot)"
        first = self.pruning[0].before if self.pruning else self.totals.files
        files, splits = f"{self.totals.files:,} of {count(first, 'file')}", count(self.totals.splits, "split")
        return f"Explanation(snapshot {self.snapshot_id}, {files}, {splits})"
