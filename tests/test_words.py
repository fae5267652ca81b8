"""Names of the code avoid the words that docs/internals/glossary.md does not use."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MORE = {"told", "tells", "gone", "dealt", "pieces", "looked", "alone"}
"""Forms of words of the glossary, which lists the base forms."""

PACKAGES = [
    *sorted(path.name for path in (ROOT / "paimon_core").iterdir() if (path / "__init__.py").exists()),
    "paimon_command",
    "paimon_core",
    "paimon_spark",
]
EXCEPTIONS = {
    "fileindex": {"words"},  # of 8 bytes
    "format": {"words"},
    "merge": {"_PACKED_WORDS", "age_words", "key_words", "nullable_key_words", "sequence_words", "words"},
    "options": {"Mark", "PARTITION_MARK_DONE_ACTION", "mark"},
    "predicate": {"_WORDS"},
    "row": {"_words", "decimal_words", "header_words", "words"},  # of 8 bytes
}
"""Names by package that still have such a word. The list only shrinks."""


def unused_words() -> set[str]:
    """Return the plain names of the glossary's table of words not used, and `MORE`."""
    table = (ROOT / "docs" / "internals" / "glossary.md").read_text().split("## Words not used")[1]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    return {word.strip("_") for cell in cells for word in re.findall(r"`(\w+)`", cell)} | MORE


def names_of(tree: ast.AST) -> Iterator[str]:
    """Yield the names of functions, classes, parameters, attributes and variables that a module defines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def has_word(name: str, words: set[str]) -> bool:
    """Return True if the name, or a part of it between underscores, is one of the words.

    Words with capitals are classes and constants, which only equal names have. Other words are found in any case.
    """
    parts = {name.strip("_"), *(part.lower() for part in name.split("_")), name.strip("_").lower()}
    return not parts.isdisjoint(words)


def files_of(package: str) -> list[Path]:
    if package == "paimon_core":
        return sorted((ROOT / package).glob("*.py"))
    outside = package in ("paimon_command", "paimon_spark")
    return sorted((ROOT / package if outside else ROOT / "paimon_core" / package).rglob("*.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_names_use_words_of_glossary(package):
    names = {name for path in files_of(package) for name in names_of(ast.parse(path.read_text()))}
    words = unused_words()
    assert not {name for name in names if has_word(name, words)} - EXCEPTIONS.get(package, set())


def test_table_of_glossary_is_read():
    assert {"told", "place", "OnSpark", "carry_out"} <= unused_words()


@pytest.mark.parametrize(
    "name", ["told", "_alone", "_one_place", "PLACE_OPTIONS", "Placing", "carry_out", "_carry_out"]
)
def test_word_that_is_not_used_is_found(name):
    assert has_word(name, unused_words())


@pytest.mark.parametrize("name", ["written_files", "shared", "replace", "placement", "hold"])
def test_other_words_are_free(name):
    assert not has_word(name, unused_words())


DIRECTION = re.compile(
    r"\b(lower|deeper|bottom) levels?\b|\blevels? (below|under|beneath) (the|its) output\b", re.IGNORECASE
)
"""Phrases that call a level with older rows anything but higher. Files may be "below the highest level"."""


def test_levels_with_older_rows_are_higher():
    """In code and docs: level numbers grow with age, as in Paimon."""
    files = [path for folder in ("docs", "paimon_*", "tests", "benchmarks") for path in ROOT.glob(f"{folder}/**/*")]
    texts = [path for path in files if path.suffix in (".py", ".md", ".java") and path != Path(__file__)]
    glossary = (ROOT / "docs" / "internals" / "glossary.md").read_text()
    assert "a higher level holds older rows" in glossary
    found = [f"{path}: {match[0]}" for path in texts for match in DIRECTION.finditer(path.read_text())]
    assert len(texts) > 1000
    assert not found
