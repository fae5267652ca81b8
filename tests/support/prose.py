"""Findings in the prose of the project: phrases that read as translated, in docstrings, comments, errors and docs.

``python -m tests.support.prose [PATH ...]`` prints the findings of files or folders, by default of all.
``--check PATH ...`` prints only files with more findings than they may have, and then fails.
``python -m tests.support.prose --allow`` writes `ALLOWED` again: the number of findings that each file still has.
"""

import ast
import functools
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
ALLOWED: Final = ROOT / "tests" / "prose_allowed.txt"
CODE: Final = ("paimon_command", "paimon_core", "paimon_spark", "benchmarks", "demo", "tests")
MOST_WORDS: Final = 32  # of a sentence, without code and names in capitals


@dataclass(frozen=True, slots=True)
class Rule:
    """A phrase that is not used, and what to write instead. ``kinds``: the kinds of text it holds for; empty: all."""

    name: str
    pattern: re.Pattern[str]
    instead: str
    kinds: frozenset[str] = frozenset()


def _rule(name: str, pattern: str, instead: str, *kinds: str) -> Rule:
    return Rule(name, re.compile(pattern, re.IGNORECASE | re.MULTILINE), instead, frozenset(kinds))


RULES: Final = (
    _rule("genitive argument", r"^\s*\w[\w, ]*: (of|as of|by) [a-z]", "say what it is", "docstring"),
    _rule("that of", r"\b(those|that) of\b|\bthe ones? (of|that|which)\b", "repeat the noun"),
    _rule("those that", r"\bthose (that|which|who|with|whose|it)\b", "name the things"),
    _rule("such a", r"\bsuch an?\b", "a plain article, or 'like this'"),
    _rule("of which", r"\b(by|of) (which|whom)\b", "a relative clause, or two sentences"),
    _rule("is none", r"\b(is|are|was|has|have) none\b", "'is not a ...', 'has no ...'"),
    _rule("there is none", r"`None`: (there|nobody|no one|nothing)", "'`None` if ...'", "docstring", "doc"),
    _rule("nobody", r"\b(nobody|whoever|whatever|wherever|somebody|everybody)\b", "the process or user that is meant"),
    _rule("meanwhile", r"\b(meanwhile|anew|thereby|whereby|hereby|thereof|therein)\b", "'at the same time', 'again'"),
    _rule("beside", r"\bbeside\b", "'next to', 'in addition to'"),
    _rule("so many", r"\b(so|as) (many|much|few|little|old|long)\b(?! as)", "the number or the limit"),
    _rule("tell", r"\b(tell|tells|told|telling)\b", "'report', 'contain', 'show'"),
    _rule("lie", r"\b(lie|lies|lay|lying)\b", "'is', 'is stored'"),
    _rule("upkeep", r"\b(upkeep|verbs?)\b", "'maintenance', 'methods'"),
    _rule("the way of", r"\bways? of (a|the|which)\b", "name the strategy"),
    _rule("opening", r"\A(What|Whether|Those|That|How)\b", "begin with a verb, or a noun phrase", "docstring"),
    _rule("question", r"\?\s|\?\Z", "a statement, and what to do", "error"),
    _rule("question title", r"^#+ .*\?\s*$", "a title that states the point", "doc"),
    _rule(
        "told test",
        r"(^|_)(what|which|who|whoever|nobody|told|tells|told|thing|things|told)(_|$)",
        "subject, case, outcome",
        "test name",
    ),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A phrase, where it stands and what is better."""

    path: str
    line: int
    rule: str
    phrase: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.phrase!r}: {self.instead}"


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of prose; ``line``: of its beginning; ``kind``: docstring, comment, error, test name or doc."""

    kind: str
    line: int
    text: str


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the prose of a Python or Markdown file, without code."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blank = re.sub(r"^(```|~~~).*?^\1[^\n]*$", lambda m: "\n" * m[0].count("\n"), source, flags=re.M | re.S)
        prose = blank.partition("\n## Words not used\n")[0]  # the glossary's table of these words
        yield Text("doc", 1, re.sub(r"`[^`\n]*`", "`c`", prose))
        return
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield Text("docstring", first.lineno, first.value.value)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and "tests" in path.parts:
            yield Text("test name", node.lineno, node.name)
        if isinstance(node, ast.Raise) and node.exc is not None and "tests" not in path.parts:
            yield Text("error", node.lineno, " ".join(_strings(node.exc)))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text("comment", token.start[0], token.string)


def _strings(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value


def findings_of(path: Path) -> list[Finding]:
    """Return the findings of a file."""
    name = str(path.relative_to(ROOT))
    findings = []
    for text in texts_of(path):
        plain = text.text if text.kind == "doc" else re.sub(r"`[^`\n]*`", "`c`", text.text)
        for rule in RULES:
            if not rule.kinds or text.kind in rule.kinds:
                for match in rule.pattern.finditer(plain):
                    line = text.line + plain.count("\n", 0, match.start())
                    findings.append(Finding(name, line, rule.name, match[0].strip(), rule.instead))
        if text.kind in ("docstring", "doc"):
            for line, sentence in _sentences(plain):
                words = sum(bool(re.search("[a-z]", word.replace("`c`", ""))) for word in sentence.split())
                if words > MOST_WORDS:
                    start = " ".join(sentence.split()[:6])
                    findings.append(
                        Finding(name, text.line + line, "long", f"{start} ...", f"{words} words: divide it")
                    )
    return findings


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield sentences with the number of their line; tables, lists, titles and links each stand for themselves."""
    line = 0
    for paragraph in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.|\w+:)\s))", text):
        if paragraph.strip() and not paragraph.lstrip().startswith(("|", "#", "<", "[")):
            offset = 0
            for sentence in re.split(r"(?<=[.!?:;])\s+", paragraph):
                yield line + paragraph.count("\n", 0, offset), sentence
                offset = paragraph.find(sentence, offset) + len(sentence)
        line += paragraph.count("\n")


def files(paths: list[str] | None = None) -> list[Path]:
    """Return the files to check, by default all files of the project."""
    roots = [ROOT / path for path in paths] if paths else [*(ROOT / name for name in CODE), ROOT / "docs", ROOT]
    found: set[Path] = set()
    for root in roots:
        if root.is_file():
            found.add(root)
        elif root == ROOT:
            found.update(root.glob("*.md"))
        else:
            found.update(path for path in root.rglob("*") if path.suffix in (".py", ".md"))
    return sorted(path for path in found if "spec" not in path.parts and "corpus" not in path.parts)


def allowed() -> dict[str, int]:
    """Return the numbers of findings that files may still have."""
    lines = (line.split() for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#"))
    return {path: int(number) for number, path in lines}


def is_worse(file: Path) -> bool:
    """Return True if a file has more findings than it may still have."""
    return len(findings_of(file)) > allowed().get(str(file.relative_to(ROOT)), 0)


@functools.cache
def all_findings() -> dict[str, list[Finding]]:
    """Return the findings of each file of the project, read once."""
    return {str(path.relative_to(ROOT)): findings_of(path) for path in files()}


if __name__ == "__main__":
    if sys.argv[1:] == ["--allow"]:
        counts = {path: len(findings) for path, findings in all_findings().items()}
        lines = [f"{count:4} {path}" for path, count in counts.items() if count]
        ALLOWED.write_text("# Findings that files still have; the numbers only fall.\n" + "\n".join(lines) + "\n")
        print(sum(counts.values()), "findings in", len(lines), "files")
    elif sys.argv[1:2] == ["--check"]:
        worse = [file for file in files(sys.argv[2:]) if sys.argv[2:] and is_worse(file)]
        for file in worse:
            print(*findings_of(file), sep="\n")
        sys.exit(1 if worse else 0)
    else:
        for file in files(sys.argv[1:]):
            for finding in findings_of(file):
                print(finding)
