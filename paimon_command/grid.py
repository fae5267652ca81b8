"""Tables of rows for people: numbers to the right, and columns that fit the width of the terminal."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from paimon_core.types.human_text import short, size

Format: TypeAlias = Callable[[object], object]
"""A function from a value that is not NULL to the value that people see."""
Cut: TypeAlias = Callable[[str, int], str]
"""A function from a text and a number of characters to a text of at most this length."""
_WIDE = 100_000  # width for a file or a pipe, where nothing is truncated
_GAP = 2  # spaces between two columns
_LEAST = 20  # columns to which a long name is cut at most


def readable_size(value: object) -> object:
    """Return a number of bytes as text such as ``3.0 MiB``."""
    return size(value) if isinstance(value, int) else value


def without_fraction(value: object) -> object:
    """Return a text of a time without the fraction of its seconds."""
    return value.partition(".")[0] if isinstance(value, str) else value


def short_path(path: str, most: int) -> str:
    """Return a path of at most ``most`` characters: without its directories, then without the middle of its name."""
    if len(path) <= most:
        return path
    name = path.rpartition("/")[2]
    return f"…/{short(name, most - 2)}" if name != path else short(name, most)


def render(
    rows: Sequence[Mapping[str, object]],
    shown: Callable[[object], str],
    formats: Mapping[str, Format],
    cut: Mapping[str, Cut] | None = None,
) -> str:
    """Return rows as a table with a header.

    On a terminal, headers break at their underscores if the table is too wide, then the columns ``cut`` are shortened,
    and at last values are wrapped. Elsewhere nothing is truncated.

    Args:
        rows: one or more rows with the same names.
        shown: returns a value as text.
        formats: the formats of columns by name.
        cut: the functions that shorten the texts of columns, by name; `None`: no text is shortened.
    """
    names = list(rows[0])
    right = {name for name in names if _is_number(name, rows, formats)}
    cells = {name: [shown(_formatted(row[name], formats.get(name))) for row in rows] for name in names}
    headers = {name: shown(name) for name in names}
    terminal = sys.stdout.isatty()
    width = Console().width if terminal else _WIDE
    if _width(headers, cells) > width:
        headers = {name: _broken(header, max(map(cell_len, cells[name]))) for name, header in headers.items()}
    for name, shorten in (cut or {}).items():
        excess = _width(headers, cells) - width
        if name in cells and excess > 0:
            most = max(_LEAST, max(map(cell_len, cells[name])) - excess)
            cells[name] = [shorten(text, most) for text in cells[name]]
    plain = "NO_COLOR" in os.environ
    grid = Grid(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="" if plain else "bold")
    for name in names:
        least = max(map(cell_len, headers[name].split("\n")))
        grid.add_column(
            Text(headers[name]), overflow="fold", justify="right" if name in right else "left", min_width=least
        )
    for row in zip(*cells.values(), strict=True):
        grid.add_row(*map(Text, row))
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _formatted(value: object, format: Format | None) -> object:
    return value if format is None or value is None else format(value)


def _is_number(name: str, rows: Sequence[Mapping[str, object]], formats: Mapping[str, Format]) -> bool:
    """Return True if all values of a column are numbers or sizes, or empty."""
    if formats.get(name, readable_size) is not readable_size:
        return False
    values = [row[name] for row in rows if row[name] not in (None, "")]
    return bool(values) and all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in values)


def _width(headers: Mapping[str, str], cells: Mapping[str, Sequence[str]]) -> int:
    """Return the width of the table without wrapped values."""
    widths = [max(map(cell_len, (*headers[name].split("\n"), *cells[name]))) for name in headers]
    return sum(widths) + _GAP * (len(widths) - 1)


def _broken(header: str, width: int) -> str:
    """Break a header after underscores into lines of at most ``width``, or of its longest word."""
    parts = [f"{part}_" for part in header.split("_")[:-1]] + [header.split("_")[-1]]
    width = max(width, *map(len, parts))
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)
