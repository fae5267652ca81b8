"""Write the figures of docs/reference/performance.md: ``python -m benchmarks.pictures artifacts/benchmarks.json``.

Keeps the least time of each contestant in docs/reference/performance.json, draws a picture for each group of rows, and
writes the summaries and the tables between comments of the page. Groups that the results lack keep their figures.
Without an argument, it draws the kept figures again.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.measure import least

DOCS = Path(__file__).parent.parent / "docs" / "reference"
FIGURES, PAGE = "performance.json", "performance.md"


@dataclass(frozen=True, slots=True)
class Group:
    """A picture.

    Attributes:
        rows: how the names of its rows begin.
        clock: the time that its bars show, ``cpu`` or ``wall``.
        per_million: show the time for a million rows, not for the whole row.
    """

    rows: tuple[str, ...]
    clock: str = "cpu"
    per_million: bool = True

    @property
    def title(self) -> str:
        """The heading of the picture."""
        shown = {"cpu": "CPU seconds", "wall": "Seconds"}[self.clock]
        return f"{shown}{' for a million rows' if self.per_million else ''}: shorter is better"


_SQL_READS = ("SQL: all columns", "SQL: two columns", "SQL: a range", "SQL: one key", "SQL: count")
GROUPS = {
    "reads": Group(("merge read", "append read")),
    "writes": Group(("keyed write", "append write")),
    "maintenance": Group(("full compaction", "200 upserts", "reads during")),
    "spark": Group(("Spark: format('paimon')", "Spark: 5%", "Spark: 30%", "Spark: 5 runs"), "wall", False),
    "sql": Group(
        (*_SQL_READS, "SQL: DELETE", "SQL: UPDATE", "SQL: MERGE", "SQL: INSERT"),
        "wall",
        False,
    ),
    "files": Group(("Spark: write 5,000", "Spark: sum", "Spark: count", "Spark: compact 5,000"), "wall", False),
    "start": Group(("start: ",), "wall", False),
}
_COLOURS = {
    "ours": "#0072b2",
    "sql": "#56b4e9",
    "pyarrow": "#999999",
    "parquet": "#999999",
    "java": "#e69f00",
    "connector": "#e69f00",
    "deduplicate": "#009e73",
    "compacted": "#009e73",
    "without": "#cc79a7",
    "bare": "#999999",
}
"""Of Okabe and Ito; the labels say the same."""
_LABELS = {
    "ours": "pyspark-paimon",
    "sql": "pyspark-paimon, in SQL",
    "parquet": "Spark's Parquet",
    "java": "Java engine",
    "connector": "Java connector 0.9",
    "deduplicate": "ours, deduplicate",
    "compacted": "ours, compacted",
    "without": "ours, first session",
    "bare": "Python alone",
}
_NOT_COMPARED = "not compared"
_LINE, _LEFT, _WIDE, _RIGHT = 18, 250, 300, 210
_SUMMARY = {
    "merged read": ("merge read, ",),
    "write": ("keyed write", "append write"),
    "full compaction": ("full compaction",),
}
_SPARK_SUMMARY = {
    "write of an append table": ("Spark: format('paimon') by path, append",),
    "read of an append table": ("Spark: format('paimon') by path, ",),
    "read with deleted rows": ("Spark: 5%", "Spark: 30%"),
    "read of five runs, masks cached": ("Spark: 5 runs",),
    "write, read and compaction of 5,000 files": GROUPS["files"].rows,
    "read by name": _SQL_READS,
    "DELETE, UPDATE, MERGE": ("SQL: DELETE", "SQL: UPDATE", "SQL: MERGE"),
}
"""The rows of the summaries, and how the names of the rows of figures begin."""


def group_of(name: str) -> str | None:
    """Return the group of a row; `None`: no picture shows it."""
    return next((group for group in GROUPS if name.startswith(GROUPS[group].rows)), None)


def figures(results: Mapping[str, Any], kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the least seconds, wall and CPU, of each contestant: ``[group]["rows"][n]["seconds"][who]["cpu"]``.

    Args:
        results: the numbers of a run of the benchmarks.
        kept: earlier figures, for groups that the results lack; `None`: no earlier figures.
    """
    groups: dict[str, Any] = {}
    for row in results["rows"]:
        seconds = {
            who: {clock: round(least(timing[clock] for timing in timings), 4) for clock in ("wall", "cpu")}
            for who, timings in row["timings"].items()
            if who in _COLOURS and not (who == "java" and " write" in row["name"])  # Java also generates these rows
        }
        group = group_of(row["name"])
        if len(seconds) > 1 and group is not None:
            sitting = groups.setdefault(group, {"machine": results["machine"], "rows": []})
            sitting["rows"].append({"name": row["name"], "rows": row["rows"], "seconds": seconds})
    merged = {**(kept or {}), **groups}
    return {group: merged[group] for group in GROUPS if group in merged}


def picture(group: Group, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return bars of seconds; the longest bar of each row has the full width."""
    parts, y = [_text(10, 20, group.title, "bold")], 36
    for row in rows:
        million = row["rows"] / 1e6 if group.per_million else 1
        costs = {who: times[group.clock] / million for who, times in row["seconds"].items()}
        parts += [
            _text(10, y + _LINE * (2 * number + 1) / 2 + 4, line) for number, line in enumerate(_wrapped(row["name"]))
        ]
        for number, (who, cost) in enumerate(sorted(costs.items(), key=_rank)):
            width = max(1, _WIDE * cost / max(costs.values()))
            top = y + number * _LINE
            bar = f'<rect x="{_LEFT}" y="{top}" width="{width:.0f}" height="{_LINE - 4}" fill="{_COLOURS[who]}"/>'
            parts += [bar, _text(_LEFT + width + 6, top + _LINE - 7, f"{cost:.2f} s  {_LABELS.get(who, who)}")]
        y += _LINE * max(len(costs), len(_wrapped(row["name"]))) + 12
    size = f'viewBox="0 0 {_LEFT + _WIDE + _RIGHT} {y}" font-family="sans-serif" font-size="12"'
    background = '<rect width="100%" height="100%" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{background}{"".join(parts)}</svg>\n'


def _wrapped(name: str) -> list[str]:
    """Return a name in lines that fit to the left of the bars."""
    lines = [""]
    for word in name.split():
        if len(lines[-1]) + len(word) > 34:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _text(x: float, y: float, text: str, weight: str = "normal") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-weight="{weight}">{escape(text)}</text>'


def table(kept: Mapping[str, Any]) -> str:
    """Return the ratios of times as Markdown, a table for each machine: ours over the opponent's, CPU and wall."""
    lines: list[str] = []
    for machine in dict.fromkeys(sitting["machine"] for sitting in kept.values()):
        lines += [
            f"Machine: {machine}.",
            *_warning(machine),
            "",
            "| row | ours, CPU | ours, wall | opponent | CPU | wall |",
            "|---|---|---|---|---|---|",
        ]
        for row in (row for sitting in kept.values() if sitting["machine"] == machine for row in sitting["rows"]):
            ours = row["seconds"]["ours"]
            for who, times in sorted(row["seconds"].items(), key=_rank):
                if who != "ours":
                    ratios = (f"{ours[clock] / times[clock]:.2f}" if times[clock] else "-" for clock in ("cpu", "wall"))
                    times_of_ours = f"{ours['cpu']:.2f} s | {ours['wall']:.2f} s"
                    lines.append(f"| {row['name']} | {times_of_ours} | {who} | {' | '.join(ratios)} |")
        lines.append("")
    return "\n".join(lines)


def summary(kept: Mapping[str, Any]) -> str:
    """Return the range of each kind of ratio of CPU times as Markdown."""
    return _summary(kept, _SUMMARY, "cpu", ("CPU time of this engine", "of pyarrow", "of the Java engine 1.4.2"))


def spark_summary(kept: Mapping[str, Any]) -> str:
    """Return the range of each kind of ratio of wall times through Spark as Markdown."""
    heading = ("Time of this connector", "of Spark's Parquet", "of the Java connector 0.9")
    return _summary(kept, _SPARK_SUMMARY, "wall", heading, ("parquet", "connector"))


def _summary(
    kept: Mapping[str, Any],
    parts: Mapping[str, tuple[str, ...]],
    clock: str,
    heading: tuple[str, ...],
    opponents: tuple[str, ...] = ("pyarrow", "java"),
) -> str:
    every = [row for sitting in kept.values() for row in sitting["rows"]]
    ranges: dict[str, dict[str, str]] = {}
    for title, names in parts.items():
        rows = [row["seconds"] for row in every if row["name"].startswith(names)]
        every = [row for row in every if not row["name"].startswith(names)]
        if rows:
            ranges[title] = {
                who: _range([row["ours"][clock] / row[who][clock] for row in rows if row.get(who, {}).get(clock)])
                for who in opponents
            }
    columns = [who for who in opponents if any(cells[who] != _NOT_COMPARED for cells in ranges.values())]
    titles = [heading[0], *(heading[1 + opponents.index(who)] for who in columns)]
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    lines += [f"| {' | '.join([title, *(cells[who] for who in columns)])} |" for title, cells in ranges.items()]
    return "\n".join([*lines, ""])


def _range(ratios: Sequence[float]) -> str:
    if not ratios:
        return _NOT_COMPARED
    lowest, highest = (f"{ratio:.1f}" if ratio >= 0.1 else f"{ratio:.2f}" for ratio in (min(ratios), max(ratios)))
    return f"{lowest} times" if lowest == highest else f"{lowest} to {highest} times"


def _rank(contestant: tuple[str, Any]) -> int:
    """Return the position of a contestant, given as a name and its value, in pictures and tables."""
    return list(_COLOURS).index(contestant[0])


def _warning(machine: str) -> list[str]:
    """Return a sentence if the machine was busy with other work, by its line of `report.machine`."""
    found = re.match(r"(\d+) cores, load ([\d.]+)/", machine)
    if found is None or float(found[2]) <= 2 * int(found[1]):
        return []
    return ["Other programs kept it busy: wall times say little, and ratios of CPU times are rough."]


def drawn(kept: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each picture."""
    for group, sitting in kept.items():
        yield f"performance-{group}.svg", picture(GROUPS[group], sitting["rows"])


def page_with(text: str, kept: Mapping[str, Any]) -> str:
    """Return the text of the page with these figures and their summaries."""
    parts = {"summary": summary(kept), "summary through Spark": spark_summary(kept), "figures": table(kept)}
    for name, part in parts.items():
        place = re.search(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", text, re.DOTALL)
        assert place, f"{PAGE} lacks the comments of its {name}"
        text = text[: place.start()] + "\n" + part + "\n" + text[place.end() :]
    return text


def main(results: str | None = None) -> None:
    """Keep new results, if any; write the pictures and the tables."""
    kept = json.loads((DOCS / FIGURES).read_text(encoding="utf-8"))
    if results:
        kept = figures(json.loads(Path(results).read_text(encoding="utf-8")), kept)
        (DOCS / FIGURES).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    for name, text in drawn(kept):
        (DOCS / name).write_text(text, encoding="utf-8")
    page = DOCS / PAGE
    page.write_text(page_with(page.read_text(encoding="utf-8"), kept), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
