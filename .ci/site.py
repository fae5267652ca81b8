"""Hooks of mkdocs: pages that lie outside `docs/`, links to source files, and the Markdown that GitHub accepts.

The pages are written as GitHub shows them. Python-Markdown wants four spaces where CommonMark wants two, and an empty
line before a list; `plain` adds both. Links that leave `docs/` lead to copies: `OUTSIDE` as pages, other files as text.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "tests/conformance/README.md": "conformance.md",
    "README.md": "index.md",
}
"""Pages outside `docs/`, as paths below the project, and their place in the site."""

LINK = re.compile(r"(?<=\]\()(?!\w+://|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^ *```")
ITEM = re.compile(r"^( *)([-*]|\d+\.) ")


def on_config(config: Any) -> Any:
    """Give headings the anchors that GitHub gives them."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages outside `docs/`, and a text copy of each source file that a page links to."""
    for source, place in OUTSIDE.items():
        if place != "index.md":
            files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    for file in list(files.documentation_pages()):
        text = file.content_string
        for link, _ in LINK.findall(text):
            path = _below_root(link, file.src_uri)
            place = _place(path)
            if place.startswith("source/") and place not in files.src_uris:
                files.append(File.generated(config, place, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Return the Markdown of a page as Python-Markdown reads it, with links inside the site.

    `[1,2] [3,4]` gets a backslash: it is a cross-reference to the plugin of the API reference.
    """
    here = page.file.src_uri

    def inside(found: re.Match[str]) -> str:
        place = _place(_below_root(found[1], here))
        return posixpath.relpath(place, posixpath.dirname(here)) + (found[2] or "")

    return plain(markdown, lambda line: LINK.sub(inside, line).replace("] [", "] \\["))


def _below_root(link: str, page: str) -> str:
    """Return the path below the project that a link of a page means."""
    source = next((source for source, place in OUTSIDE.items() if place == page != "index.md"), f"docs/{page}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _place(path: str) -> str:
    """Return the place in the site of a path below the project."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/") + ("/README.md" if (ROOT / path).is_dir() else "")
    return f"source/{path}.txt"


def plain(markdown: str, text: Any = lambda line: line) -> str:
    """Return CommonMark as Python-Markdown reads it; `text` is called with each line outside of code blocks."""
    lines: list[str] = []
    inside_code = inside_list = False
    kind = ""  # of the list at the margin: its marker, without the number
    for line in markdown.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if FENCE.match(line):
            inside_code = not inside_code
            wide = " " * indent if inside_list else ""  # of the whole block
            lines.append(wide + re.sub(r"^( *```\w*) .*$", r"\1", line))
            continue
        if inside_code:
            lines.append(wide + line if line else line)
            continue
        if item := ITEM.match(line):
            before = lines[-1] if lines else ""
            if before.strip() and not inside_list:
                lines.append("")
            marker = item[2].lstrip("0123456789")
            if not indent and inside_list and marker != kind:
                lines += ["", "<!-- another list -->", ""]
            kind = kind if indent else marker
            inside_list = True
        elif line and not indent and lines and not lines[-1].strip():
            inside_list = False
        wide = " " * indent if inside_list else ""
        lines.append(wide + text(line))
    return "\n".join(lines)
