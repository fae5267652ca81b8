"""Write the figures of docs/reference/performance.md: ``python -m benchmarks.pictures artifacts/benchmarks.json``.

Keeps the least time of each contestant in docs/reference/performance.json, draws a picture for each group of rows, and
writes the summary and the table between comments of the page. Without an argument it draws the kept figures again.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs" / "reference"
FIGURES, PAGE = "performance.json", "performance.md"
GROUPS = {
    "reads": ("merge read", "append read"),
    "writes": ("keyed write", "append write"),
    "maintenance": ("full compaction", "200 upserts", "read after"),
}
"""The pictures, and how the names of their rows begin."""
_COLOURS = {
    "ours": "#0072b2",
    "pyarrow": "#999999",
    "java": "#e69f00",
    "deduplicate": "#009e73",
    "compacted": "#009e73",
}
"""Of Okabe and Ito; the labels say the same."""
_LABELS = {
    "ours": "pyspark-paimon",
    "java": "Java engine",
    "deduplicate": "ours, deduplicate",
    "compacted": "ours, compacted",
}
_LINE, _LEFT, _WIDE, _RIGHT = 18, 250, 300, 210
_SUMMARY = {
    "merged read": ("merge read, ",),
    "write": ("keyed write", "append write"),
    "full compaction": ("full compaction",),
}
"""The rows of the summary, and how the names of the rows of figures begin."""


def figures(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the least seconds, wall and CPU, of each contestant: ``rows[n]["seconds"][who]["cpu"]``."""
    rows = []
    for row in results["rows"]:
        seconds = {
            who: {clock: round(min(timing[clock] for timing in timings), 4) for clock in ("wall", "cpu")}
            for who, timings in row["timings"].items()
            if who in _COLOURS and not (who == "java" and " write" in row["name"])  # Java also generates these rows
        }
        if len(seconds) > 1 and any(row["name"].startswith(GROUPS[group]) for group in GROUPS):
            rows.append({"name": row["name"], "rows": row["rows"], "seconds": seconds})
    return {"machine": results["machine"], "rows": rows}


def picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return bars of CPU seconds for a million rows; the longest bar of each group of bars has the full width."""
    parts, y = [_text(10, 20, "CPU seconds for a million rows: shorter is better", "bold")], 36
    for row in rows:
        costs = {who: times["cpu"] / row["rows"] * 1e6 for who, times in row["seconds"].items()}
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
    """Return the machine and the ratios of times as Markdown: ours over the opponent's, CPU and wall."""
    lines = [
        f"Machine: {kept['machine']}.",
        *_warning(kept["machine"]),
        "",
        "| row | ours, CPU | opponent | CPU | wall |",
        "|---|---|---|---|---|",
    ]
    for row in kept["rows"]:
        ours = row["seconds"]["ours"]
        for who, times in sorted(row["seconds"].items(), key=_rank):
            if who != "ours":
                ratios = (f"{ours[clock] / times[clock]:.2f}" for clock in ("cpu", "wall"))
                lines.append(f"| {row['name']} | {ours['cpu']:.2f} s | {who} | {' | '.join(ratios)} |")
    return "\n".join([*lines, ""])


def summary(kept: Mapping[str, Any]) -> str:
    """Return the range of each kind of ratio of CPU times as Markdown."""
    lines = ["| CPU time of this engine | of pyarrow | of the Java engine 1.4.2 |", "|---|---|---|"]
    for title, names in _SUMMARY.items():
        rows = [row["seconds"] for row in kept["rows"] if row["name"].startswith(names)]
        cells = [
            _range([row["ours"]["cpu"] / row[who]["cpu"] for row in rows if who in row]) for who in ("pyarrow", "java")
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _range(ratios: Sequence[float]) -> str:
    if not ratios:
        return "not compared"
    least, most = f"{min(ratios):.1f}", f"{max(ratios):.1f}"
    return f"{least} times" if least == most else f"{least} to {most} times"


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
    for group, names in GROUPS.items():
        yield f"performance-{group}.svg", picture([row for row in kept["rows"] if row["name"].startswith(names)])


def page_with(text: str, kept: Mapping[str, Any]) -> str:
    """Return the text of the page with these figures and their summary."""
    for name, part in (("summary", summary(kept)), ("figures", table(kept))):
        place = re.search(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", text, re.DOTALL)
        assert place, f"{PAGE} lacks the comments of its {name}"
        text = text[: place.start()] + "\n" + part + "\n" + text[place.end() :]
    return text


def main(results: str | None = None) -> None:
    """Keep new results, if any; write the pictures and the table."""
    if results:
        kept = figures(json.loads(Path(results).read_text(encoding="utf-8")))
        (DOCS / FIGURES).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    kept = json.loads((DOCS / FIGURES).read_text(encoding="utf-8"))
    for name, text in drawn(kept):
        (DOCS / name).write_text(text, encoding="utf-8")
    page = DOCS / PAGE
    page.write_text(page_with(page.read_text(encoding="utf-8"), kept), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
