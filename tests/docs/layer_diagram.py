"""The diagram of layers in docs/internals/architecture.md, from import contracts and the docstrings of packages.

``python -m tests.docs.layer_diagram`` writes it.
"""

import ast
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "internals" / "architecture.md"
BEGIN, END = "<!-- layers: begin -->\n", "<!-- layers: end -->\n"


def diagram() -> str:
    """Return the table: one row for each package, one number for each layer, the highest layer first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {c["containers"][0]: c["layers"] for c in contracts if c["type"] == "layers"}
    lines = ["| layer | package | contents |", "|---|---|---|"]
    lines += _rows([["paimon_spark", "paimon_command"]], "", len(layers["paimon_core"]) + 1)
    core = [layer.split(" | ") for layer in layers.pop("paimon_core")]
    lines += _rows(core, "paimon_core", len(core))
    for container, inner in layers.items():
        rooms = [layer.split(" | ") for layer in inner]
        name = container.removeprefix("paimon_core.").replace(".", "/")
        lines += ["", f"Inside `{name}`:", "", "| layer | package | contents |", "|---|---|---|"]
        lines += _rows(rooms, container, len(rooms))
    return "\n".join(lines) + "\n"


def _rows(layers: list[list[str]], container: str, top: int) -> list[str]:
    folder = ROOT / container.replace(".", "/")
    return [
        f"| {top - depth} | `{name}` | {_purpose(folder / name)} |"
        for depth, names in enumerate(layers)
        for name in names
    ]


def _purpose(path: Path) -> str:
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text())) or "").partition("\n")[0].rstrip(".").replace("|", "\\|")


def drawn() -> str:
    """Return the diagram that the page has."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0]


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + diagram() + END + rest.partition(END)[2])
