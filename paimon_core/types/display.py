"""Texts and HTML with which values show themselves: aligned columns, and escaped HTML without scripts or styles."""

from collections.abc import Sequence
from html import escape

from paimon_core.types.human_text import printable, short

_LENGTH = 400  # characters of a cell


def text_html(text: str) -> str:
    """Return lines of text as an HTML element; all of it is escaped."""
    return f'<pre style="white-space:pre-wrap">{escape(_lines(text))}</pre>'


def table_text(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as lines of aligned columns with a header; `None` becomes an empty text."""
    texts = [list(names), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in texts)
    return "\n".join(line.rstrip() for line in lines)


def table_html(names: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> str:
    """Return rows as an HTML table; all texts are escaped.

    Args:
        names: the names of the columns.
        rows: the values; numbers are aligned right, and `None` is an empty cell.
        note: a line under the table; empty: no line.
    """
    header = "".join(f'<th style="text-align:left">{escape(printable(name))}</th>' for name in names)
    body = "".join(f"<tr>{''.join(_cell_html(value) for value in row)}</tr>" for row in rows)
    line = f"<div>{escape(printable(note))}</div>" if note else ""
    return f"<div><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>{line}</div>"


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
    return printable(short(text, _LENGTH))


def _cell_html(value: object) -> str:
    align = "right" if isinstance(value, int) else "left"
    return f'<td style="text-align:{align}">{escape(_cell(value))}</td>'
