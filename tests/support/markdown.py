"""The Markdown pages of the project, and the Python code in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_CODE = re.compile(
    r"^```python(?P<fragment> fragment)?\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


_FENCE = re.compile(r"^(?P<comment><!--[^\n]*-->\n)?```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_REASON = re.compile(r"<!-- not run: (.{10,}) -->\n")


@dataclass(frozen=True)
class Block:
    """Python code that begins at `line` of its page (0-based); `output`: what it prints, where the page shows it."""

    code: str
    line: int
    fragment: bool
    output: str | None


def named(page):
    """Return the path of a page below the project, for messages and ids."""
    return str(page.relative_to(ROOT))


def python_blocks(page):
    """Return the Python blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["code"], text.count("\n", 0, found.start("code")), found["fragment"] is not None, found["output"])
        for found in _CODE.finditer(text)
    ]


def compiled(page, block, code=None):
    """Compile a block, or another form of its code, so that errors name the page and its line."""
    return compile("\n" * block.line + (code or block.code), named(page), "exec")


@dataclass(frozen=True)
class Fence:
    """A code block of any kind; `reason`: why no test runs it, `None` if nothing says so."""

    info: str
    code: str
    reason: str | None


def fences(page):
    """Return the code blocks at the margin of a page, from top to bottom."""
    return [
        Fence(found["info"], found["code"], reason[1] if (reason := _REASON.match(found["comment"] or "")) else None)
        for found in _FENCE.finditer(page.read_text(encoding="utf-8"))
    ]


def comparison(page, heading):
    """Return the rows of the first table below a heading: the task, and the code of each other cell.

    "the same" stands for the code of the cell before it; a cell without code is `None`.
    """
    section = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
    lines = section[section.index("\n| ") :].strip().partition("\n\n")[0].splitlines()
    rows = []
    for line in lines[2:]:
        task, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        codes = []
        for cell in cells:
            codes.append(codes[-1] if cell.startswith("the same") else _first_code(cell))
        rows.append((task, *codes))
    return rows


def _first_code(cell):
    """Return the text of the first code span of a cell, `None` without one."""
    span = re.search(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", cell)
    return span and span[2].strip()
