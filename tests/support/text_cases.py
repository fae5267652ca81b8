"""Text cases: named inputs and expected outputs of a function from text to text, in a file that reads like a page.

The file begins with an explanation of its notation, in lines that begin with `#`. Empty lines separate the cases:

    name of the case
    one or more lines of input
    ----
    lines of expected output, perhaps none

`pytest --rewrite` writes the outputs that the functions return into the files. Read the diff before you commit it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

_SEPARATOR = "\n----"


@dataclass(frozen=True)
class TextCase:
    """One case of the file `path`."""

    path: Path
    name: str
    input: str
    expected: str


def _blocks(path: Path) -> list[str]:
    return re.split(r"\n{2,}", path.read_text().strip("\n"))


def read_cases(path: Path) -> list[TextCase]:
    """Return the cases of a file. Raises ValueError for an incomplete block, and for a name that occurs twice."""
    cases = {}
    for block in _blocks(path):
        if block.startswith("#"):
            continue
        head, separator, expected = block.partition(_SEPARATOR)
        name, newline, text = head.partition("\n")
        if not (separator and newline) or name in cases:
            raise ValueError(f"{path}: the case {name!r} needs a name of its own, input lines, and ---- below them")
        cases[name] = TextCase(path, name, text, expected.strip("\n"))
    return list(cases.values())


def text_cases(test_file: str, name: str) -> pytest.MarkDecorator:
    """Parametrise a test over the argument `case`: the cases of the file `name` next to `test_file`."""
    cases = read_cases(Path(test_file).with_name(name))
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


def check(case: TextCase, function: Callable[[str], str], *, rewrite: bool = False) -> None:
    """Assert that the function returns the expected output; with `rewrite`, put its output into the file instead."""
    actual = function(case.input).strip("\n")
    if rewrite:
        blocks = [
            f"{case.name}\n{case.input}{_SEPARATOR}\n{actual}".rstrip("\n") if b.split("\n")[0] == case.name else b
            for b in _blocks(case.path)
        ]
        case.path.write_text("\n\n".join(blocks) + "\n")
    else:
        assert actual == case.expected
