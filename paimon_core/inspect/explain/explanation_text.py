"""The lines of the text of an explanation. Names are printed with their control characters escaped."""

from collections.abc import Iterable, Sequence
from typing import Final

from paimon_core.inspect.explain.parts import FilterUse, LevelFiles, Pruned, Section, SplitPlan, Totals
from paimon_core.metrics.values import PHASES, ReadMetrics
from paimon_core.types.human_text import count, printable, size

_STAGES: Final = {"partition": "by partition", "read": "while files are read"}


def filter_line(use: FilterUse) -> str:
    """Return the line of one conjunct."""
    reason = "" if use.reason is None else f": {printable(use.reason)}"
    weaker = "" if use.weaker is None else f"; before it {printable(use.weaker)}"
    return f"{printable(use.text)} - {_STAGES.get(use.stage, use.stage)}{reason}{weaker}"


def pruning_lines(steps: Sequence[Pruned]) -> list[str]:
    """Return a line for each step, with aligned file counts."""
    if not steps:
        return []
    width = len(f"{max(step.before for step in steps):,}")
    names = max(len(step.by) for step in steps)
    lines = [f"files: {steps[0].before:,} in the snapshot, {steps[-1].after:,} left"]
    for step in steps:
        note = "" if step.note is None else f"  ({step.note})"
        lines.append(f"  {step.by:{names}}  {step.before:{width},} -> {step.after:{width},}{note}")
    return lines


def read_line(totals: Totals, levels: Iterable[LevelFiles]) -> str:
    """Return the line with the files, rows and bytes to read."""
    by_level = ", ".join(f"level {level.level}: {level.files:,}" for level in levels)
    vectors = ""
    if totals.vectors:
        rows = count(totals.deleted_rows, "row")
        vectors = f", {totals.vectors:,} with deleted rows ({rows})"
    index = f", {totals.index_files:,} with an index file" if totals.index_files else ""
    files = count(totals.files, "file") + (f" ({by_level})" if by_level else "")
    return f"read: {files}{vectors}{index}, {count(totals.rows, 'row')} stored, {size(totals.bytes)}"


def merge_line(totals: Totals) -> str:
    """Return the line that counts splits and sections."""
    kinds = {"raw": totals.raw, "merged": totals.merge, "joined": totals.join}
    numbers = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    line = f"splits: {totals.splits:,}" + (f" ({numbers})" if numbers else "")
    if totals.sections:
        runs = f" of at most {totals.most_runs} sorted runs" if totals.merged_sections else ""
        line += f"; {count(totals.sections, 'section')}, {totals.merged_sections:,} with overlapping runs{runs}"
    return line


def split_lines(split: SplitPlan) -> list[str]:
    """Return the line of a split, followed by the lines of its sections."""
    bucket = f"{printable(split.partition) or '(no partition)'} bucket {split.bucket}"
    details = [f"{count(split.files, 'file')} {_way(split)}", count(split.rows, "row"), size(split.bytes)]
    if split.levels and split.way == "raw":
        details.append(f"levels {list(split.levels)}")
    if split.part is not None:
        details.append(f"row groups at rows {split.part[0]} to {split.part[1]}")
    if split.vectors:
        details.append(f"{split.vectors} with deleted rows")
    lines = [f"{bucket}: {', '.join(details)}{_in_short(split.executed)}"]
    lines += [f"  section {number}: {_section(section)}" for number, section in enumerate(split.sections, 1)]
    if split.further_sections:
        lines.append(f"  and {count(split.further_sections, 'further section')}")
    return lines


def _way(split: SplitPlan) -> str:
    if split.way == "raw":
        return "raw"
    if split.way == "join":
        return f"with columns of {count(split.row_ranges, 'range')} of rows"
    sections = len(split.sections) + split.further_sections
    return f"in {count(sections, 'section')}"


def _section(section: Section) -> str:
    runs = [f"L{run.level}x{run.files}" for run in section.runs]
    if section.further_runs:
        runs.append(count(section.further_runs, "further run"))
    how = f"merge of {count(section.run_count, 'run')}" if section.run_count > 1 else "no overlap, no merge"
    return f"{' + '.join(runs)}, {count(section.rows, 'row')}: {how}"


def _in_short(executed: ReadMetrics | None) -> str:
    if executed is None:
        return ""
    return f" -> {count(executed.rows, 'row')} in {executed.seconds:.3f} s"


def executed_lines(executed: ReadMetrics) -> list[str]:
    """Return the lines with the measurements of a read."""
    left_out = {
        "skipped by statistics and indexes of files": executed.rows_skipped,
        "deleted by deletion vectors": executed.rows_deleted,
        "merged into newer rows": executed.rows_merged,
        "retracted": executed.rows_retracted,
        "filtered": executed.rows_filtered,
    }
    by_index = f", {executed.files_skipped:,} of them left out by an index file" if executed.files_skipped else ""
    spent = ", ".join(f"{phase.replace('_', ' ')} {executed.phase_seconds.get(phase, 0.0):.3f}" for phase in PHASES)
    return [
        f"executed: {count(executed.splits, 'split')}, {count(executed.files, 'file')}{by_index}, "
        f"{size(executed.bytes)} decoded",
        f"  rows in: {executed.rows_stored:,}",
        *(f"    - {number:,} {why}" for why, number in left_out.items() if number),
        f"  rows out: {executed.rows:,} in {count(executed.batches, 'batch', 'batches')}",
        f"  seconds: {executed.seconds:.3f} ({spent})",
    ]
