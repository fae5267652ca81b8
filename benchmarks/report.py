"""Results of benchmarks: a table to print, a JSON file and a picture."""

import json
import platform
from collections.abc import Sequence
from html import escape
from pathlib import Path

import psutil
import pyarrow as pa

from benchmarks.measure import Row

OPPONENTS = (
    "pyarrow",
    "rust",
    "java",
    "pypaimon",
    "connector",
    "parquet",
    "stored",
    "sql",
    "own",
    "bare",
    "deduplicate",
    "compacted",
    "plain",
    "fixed",
    "without",
    "fresh",
)
_COLOURS = {
    "ours": "#1f77b4",
    "pyarrow": "#7f7f7f",
    "rust": "#d62728",
    "java": "#2ca02c",
    "pypaimon": "#9467bd",
    "connector": "#2ca02c",
    "parquet": "#7f7f7f",
    "stored": "#9467bd",
    "sql": "#1f77b4",
    "own": "#98df8a",
    "bare": "#7f7f7f",
    "deduplicate": "#ff7f0e",
    "compacted": "#ff7f0e",
    "plain": "#ff7f0e",
    "fixed": "#ff7f0e",
    "without": "#ff7f0e",
    "fresh": "#ff7f0e",
}
_LINE, _LEFT, _WIDE = 14, 330, 520


def machine() -> str:
    """The machine and how busy it is, in one line: ratios on a busy machine are rougher than they look."""
    load = "/".join(f"{x:.1f}" for x in psutil.getloadavg())
    python = f"Python {platform.python_version()}, pyarrow {pa.__version__}"
    return f"{psutil.cpu_count()} cores, load {load}, {python}, {platform.system()} {platform.machine()}"


def header() -> str:
    """The head of the table."""
    return f"{'':44} {'ours':>8} {'M rows/s':>9}   time of ours over the opponent's: wall (CPU), goal"


def line(row: Row) -> str:
    """One row of the table: our seconds, our rows per second, and our ratio to each opponent."""
    cells = []
    for who in OPPONENTS:
        if who in row.timings:
            goal = row.goals.get(who)
            judged = "" if goal is None else f" <= {goal:.2f} {'met' if row.met(who) else 'MISSED'}"
            cells.append(f"{who} {row.ratio(who):.2f} ({row.ratio(who, 'cpu'):.2f}){judged}")
        elif who in row.refused:
            cells.append(f"{who} refused")
    cells += [f"{key.replace('_', ' ')} {value}" for key, value in row.values.items()]
    if "ours" not in row.timings:
        return f"{row.name:44} {'':8} {'':9}   " + "; ".join(cells)
    seconds = row.best("ours")
    return f"{row.name:44} {seconds:7.3f}s {row.rows / seconds / 1e6:9.2f}   " + "; ".join(cells)


def save(rows: Sequence[Row], directory: Path) -> list[Path]:
    """Write ``benchmarks.txt``, ``benchmarks.json`` with every number and ``benchmarks.svg``; returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    text, raw, picture = (directory / f"benchmarks.{kind}" for kind in ("txt", "json", "svg"))
    text.write_text("\n".join([machine(), header(), *map(line, rows)]) + "\n")
    raw.write_text(json.dumps({"machine": machine(), "rows": [row.as_json() for row in rows]}, indent=1))
    picture.write_text(svg([row for row in rows if len(row.timings) > 1]))
    return [text, raw, picture]


def load(file: Path) -> list[Row]:
    """Return the rows of a ``benchmarks.json``."""
    return [Row.from_json(row) for row in json.loads(file.read_text())["rows"]]


def svg(rows: Sequence[Row]) -> str:
    """Bars of rows per second, or of queries, each group scaled to its fastest; least wall time of each contestant."""
    parts, y = [], 40
    for row in rows:
        speeds = {who: (row.rows or 1) / row.best(who) for who in ("ours", *OPPONENTS) if who in row.timings}
        parts.append(_text(10, y + _LINE * len(speeds) / 2 + 4, row.name, "bold"))
        for who, speed in speeds.items():
            width = max(1, _WIDE * speed / max(speeds.values()))
            parts.append(
                f'<rect x="{_LEFT}" y="{y}" width="{width:.0f}" height="{_LINE - 2}" fill="{_COLOURS[who]}"/>'
                + _text(
                    _LEFT + width + 6,
                    y + _LINE - 4,
                    f"{who}  {_speed(speed) if row.rows else f'{row.best(who):.2f} s'}",
                )
            )
            y += _LINE
        y += 10
    head = _text(10, 22, f"rows per second, longer is better; {machine()}")
    size = f'width="{_LEFT + _WIDE + 190}" height="{y}"'
    background = '<rect width="100%" height="100%" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{background}{head}{"".join(parts)}</svg>'


def _speed(rows_per_second: float) -> str:
    million = rows_per_second / 1e6
    return f"{million:.2f} M/s" if million >= 0.01 else f"{rows_per_second:.0f}/s"


def _text(x: float, y: float, text: str, weight: str = "normal") -> str:
    style = f'font-family="sans-serif" font-size="11" font-weight="{weight}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(text)}</text>'
