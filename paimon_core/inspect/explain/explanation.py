"""The explanation of a read, as a value that prints as text.

The value is small: all files of a plan are counted, but only the first splits and sections are listed.
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
from paimon_core.types.display import text_html
from paimon_core.types.human_text import count, printable


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """An explanation of one read; ``str`` returns it as text, `to_dict` as JSON values.

    Args:
        table: the directory of the table, without passwords, with its branch or view.
        snapshot_id: the snapshot that is read; `None` if the table is empty.
        schema_id: the schema of the read.
        merge_engine: the table's merge engine; `None` for a table without a primary key.
        columns: the columns of the result; `None`: all.
        filter: the filter; `None`: every row matches.
        manifests: number of manifests in the snapshot.
        manifests_read: number of manifests that planning read; the rest hold no matching partition.
        pruning: the steps that left files out, in order; the last ``after`` is the number of files that are read.
        filters: the conjuncts of the filter.
        totals: counts over all splits.
        levels: the files that are read, by level; empty for a table without a primary key.
        splits: the first splits, up to the requested number.
        engine: the engine that reads, and the reason; `None`: this process.
        executed: measurements of the read; `None` if it was not executed.
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
        """Return all fields by name, as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        name, totals = printable(self.table), self.totals
        if self.snapshot_id is None:
            return f"{name}: no snapshot, nothing to read"
        engine = f", merge engine {self.merge_engine}" if self.merge_engine else ""
        columns = "all" if self.columns is None else ", ".join(map(printable, self.columns)) or "none"
        skipped = ", the others hold no matching partition" if self.manifests_read < self.manifests else ""
        lines = [
            f"{name}: snapshot {self.snapshot_id}, schema {self.schema_id}{engine}",
            f"columns: {columns}",
            f"filter: {'none' if self.filter is None else printable(self.filter)}",
            *(f"  {filter_line(use)}" for use in self.filters),
            *([f"manifests: {self.manifests_read} of {self.manifests} read{skipped}"] if self.manifests else []),
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

    def _repr_html_(self) -> str:
        """Return the text for a notebook."""
        return text_html(str(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text in IPython."""
        printer.text(str(self))

    def __repr__(self) -> str:
        if self.snapshot_id is None:
            return "Explanation(no snapshot)"
        first = self.pruning[0].before if self.pruning else self.totals.files
        files, splits = f"{self.totals.files:,} of {count(first, 'file')}", count(self.totals.splits, "split")
        return f"Explanation(snapshot {self.snapshot_id}, {files}, {splits})"
