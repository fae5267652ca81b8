"""Texts of SQL divided into statements."""

import re

_PARTS = re.compile(
    r"""
      (?P<comment>--[^\n]*)
    | (?P<raw>[rR]'[^']*'|[rR]"[^"]*")
    | (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)
    | (?P<bracket>/\*)
    | (?P<open>['"`])
    | (?P<end>;)
    | (?P<word>\w+)
    | (?P<other>\s+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*|\*/")
_CLOSES_OTHERS = frozenset({"IF", "WHILE", "LOOP", "REPEAT", "FOR"})
"""The words behind END that end a part of a script that `split_statements` does not count."""


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the statements that end with a semicolon, without it, and the text behind the last one.

    Semicolons within quotes, comments and scripts (BEGIN ... END) end no statement. Comments and spaces alone are no
    statement.
    """
    statements: list[str] = []
    start = position = depth = 0
    tokens: list[str] = []
    has_content = False
    while match := _PARTS.match(text, position):
        kind, position = match.lastgroup, match.end()
        if kind == "bracket":
            position = _end_of_comment(text, position)
        elif kind == "open":  # a quote that does not end
            has_content, position = True, len(text)
        elif kind == "word":
            tokens.append(match.group().upper())
            depth += _nesting(tokens)
            has_content = True
        elif kind == "end" and depth <= 0:
            if has_content:
                statements.append(text[start : match.start()].strip())
            start, depth, tokens, has_content = position, 0, [], False
        elif kind == "end":
            tokens.append(";")
        elif kind in ("raw", "quoted") or (kind == "other" and not match.group().isspace()):
            has_content = True
    return statements, text[start:].strip() if has_content else ""


def _end_of_comment(text: str, position: int) -> int:
    """Return the end of a comment, which may contain others; the end of the text if it does not end."""
    depth = 1
    for match in _BRACKETS.finditer(text, position):
        depth += 1 if match.group() == "/*" else -1
        if not depth:
            return match.end()
    return len(text)


def _nesting(tokens: list[str]) -> int:
    """Return by how much the last word of a script nests its statements: 1 or -1, or 0 outside of scripts."""
    if "BEGIN" not in tokens[:2]:  # the first word may be a label
        return 0
    word, before = tokens[-1], tokens[-2] if len(tokens) > 1 else ""
    if word in ("BEGIN", "CASE") and before != "END":
        return 1
    if word == "END":
        return -1
    return 1 if before == "END" and word in _CLOSES_OTHERS else 0
